package command_test

import (
	"errors"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

func (b bundle) invited(t *testing.T, g person.Grant) string {
	t.Helper()
	id, _, err := b.InvitePerson(t.Context(), operator(), g)
	must.NoError(t, err)
	return id
}

func memberOf(accountID string) person.Grant {
	return person.Grant{Role: person.Viewer, AccountID: accountID}
}

func worksAs(checkerID string) person.Grant {
	return person.Grant{Role: person.Checker, CheckerID: checkerID}
}

func TestInvitations(t *testing.T) {
	t.Parallel()
	b := setup(t, 0)
	t.Run("the same command makes one person", func(t *testing.T) {
		cause := operator()
		first, _, err := b.InvitePerson(t.Context(), cause, memberOf(b.account))
		must.NoError(t, err)
		b.nothing(t, func() {
			again, _, err := b.InvitePerson(t.Context(), cause, memberOf(b.account))
			if err != nil || again != first {
				t.Errorf("the repeat made %s, %v; the first was %s", again, err, first)
			}
		})
	})
	t.Run("into an account that is not there are refused", func(t *testing.T) {
		b.nothing(t, func() {
			_, _, err := b.InvitePerson(t.Context(), operator(), memberOf("nobody"))
			wantKind(t, err, domain.KindNotFound)
		})
	})
	t.Run("as a checker who is not there are refused", func(t *testing.T) {
		b.nothing(t, func() {
			_, _, err := b.InvitePerson(t.Context(), operator(), worksAs("nobody"))
			wantKind(t, err, domain.KindNotFound)
		})
	})
	t.Run("make one person of one checker", func(t *testing.T) {
		ann := b.newChecker(t)
		b.invited(t, worksAs(ann))
		b.nothing(t, func() {
			_, _, err := b.InvitePerson(t.Context(), operator(), worksAs(ann))
			wantKind(t, err, domain.KindConflict)
		})
	})
	t.Run("that crash between their two writes can be repeated", func(t *testing.T) {
		ann, cause := b.newChecker(t), operator()
		b.log.Fail(logtest.Of("person.invited"), false, errors.New("crash"))
		if _, _, err := b.InvitePerson(t.Context(), cause, worksAs(ann)); err == nil {
			t.Fatal("the crash went unnoticed")
		}
		b.log.Heal()
		if _, _, err := b.InvitePerson(t.Context(), cause, worksAs(ann)); err != nil {
			t.Error(err)
		}
	})
}

func TestARefusedGrantBindsNoChecker(t *testing.T) {
	t.Parallel()
	b := setup(t, 0)
	ann, bob := b.newChecker(t), b.newChecker(t)
	tester := b.invited(t, worksAs(ann))
	b.nothing(t, func() {
		_, err := b.GrantRole(t.Context(), operator(), tester, worksAs(bob))
		wantKind(t, err, domain.KindConflict)
	})
	b.invited(t, worksAs(bob))
}

// Whoever belongs to an account tests none of its jobs, whichever role came
// first, and whatever they held before.
func TestNobodyTestsAJobOfAnAccountTheyBelongTo(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	ann := b.newChecker(t)
	id := b.submitted(t)
	who := b.invited(t, memberOf(b.account))
	_, err := b.GrantRole(t.Context(), operator(), who, worksAs(ann))
	must.NoError(t, err)
	claim := func() (command.ClaimedJob, error) { return b.ClaimJob(t.Context(), b.checkerCause(ann), ann, id) }
	b.nothing(t, func() {
		_, err := claim()
		wantKind(t, err, domain.KindNotFound)
	})

	_, err = b.RevokeRole(t.Context(), operator(), who, memberOf(b.account))
	must.NoError(t, err)
	claimed, err := claim()
	if err != nil {
		t.Fatalf("who has left the account is refused: %v", err)
	}

	_, err = b.GrantRole(t.Context(), operator(), who, memberOf(b.account))
	must.NoError(t, err)
	if c, held, err := b.LiveClaim(t.Context(), ann); err != nil || held {
		t.Errorf("they are shown the claim %+v, %v", c, err)
	}
	b.nothing(t, func() {
		_, err := b.ReleaseJob(t.Context(), b.checkerCause(ann), command.Claim{CheckerID: ann, JobID: id, Token: claimed.Token})
		wantKind(t, err, domain.KindNotFound)
	})
}

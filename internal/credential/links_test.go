package credential_test

import (
	"errors"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/internal/credential"
	"humanqa/internal/testing/must"
)

// Whoever kept a link must not become what its person has become since.
func TestALinkIsGoodForWhatItWasMadeForOnly(t *testing.T) {
	t.Parallel()
	w := setup(t)
	developer, operator := person.Grant{Role: person.Developer, AccountID: "a1"}, person.Grant{Role: person.Operator}
	made := []person.Grant{viewer, {Role: person.Checker, CheckerID: "c1"}}
	link, err := w.Invite(t.Context(), "p1", "Ann", made, credential.LinkFor)
	must.NoError(t, err)
	for name, now := range map[string][]person.Grant{
		"one more": append(made[:2:2], operator), "one less": made[:1], "none": nil, "another": {made[1], developer},
	} {
		w.may = func() ([]person.Grant, error) { return now, nil }
		if _, err := w.Invitation(t.Context(), link); !errors.Is(err, credential.ErrNoLink) {
			t.Errorf("%s: the link is shown, %v", name, err)
		}
		if id, err := w.JoinWithPassword(t.Context(), link, ann(), "1.2.3.4"); !errors.Is(err, credential.ErrNoLink) {
			t.Errorf("%s: joined as %q, %v", name, id, err)
		}
		if _, err := w.AskToJoin(t.Context(), link, "Ann"); !errors.Is(err, credential.ErrNoLink) {
			t.Errorf("%s: asked for a passkey, %v", name, err)
		}
	}
	w.may = func() ([]person.Grant, error) { return nil, domain.NotFound("person") }
	if _, err := w.Invitation(t.Context(), link); !errors.Is(err, credential.ErrNoLink) {
		t.Errorf("who is disabled: %v", err)
	}
	w.may = func() ([]person.Grant, error) { return nil, errors.New("the log is away") }
	if _, err := w.Invitation(t.Context(), link); err == nil || errors.Is(err, credential.ErrNoLink) {
		t.Errorf("while the log is away: %v", err)
	}
	w.may = func() ([]person.Grant, error) { return []person.Grant{made[1], made[0]}, nil }
	if id, err := w.JoinWithPassword(t.Context(), link, ann(), "1.2.3.4"); err != nil || id != "p1" {
		t.Errorf("what it was made for: %q, %v", id, err)
	}
}

// What the person may do is looked up again in the transaction that spends the link:
// the password has been hashed meanwhile.
func TestARoleThatIsGivenWhileSomebodyJoinsEndsTheLink(t *testing.T) {
	t.Parallel()
	w := setup(t)
	link, looks := w.link("p1"), 0
	w.may = func() ([]person.Grant, error) {
		if looks++; looks > 1 {
			return []person.Grant{viewer, {Role: person.Operator}}, nil
		}
		return []person.Grant{viewer}, nil
	}
	if id, err := w.JoinWithPassword(t.Context(), link, ann(), "1.2.3.4"); !errors.Is(err, credential.ErrNoLink) || looks != 2 {
		t.Errorf("joined as %q, %v, after %d looks", id, err, looks)
	}
	var people, open int
	must.NoError(t, w.db.Get(&people, `SELECT count(*) FROM signin.people`))
	must.NoError(t, w.db.Get(&open, `SELECT count(*) FROM signin.invites WHERE spent_at IS NULL`))
	if people != 0 || open != 1 {
		t.Errorf("%d people joined, %d links are unspent", people, open)
	}
}

func TestEndedLinksStillSayWhatTheirPersonIsCalled(t *testing.T) {
	t.Parallel()
	w := setup(t)
	link, other := w.link("p1"), w.link("p2")
	must.NoError(t, w.EndLinks(t.Context(), "p1"))
	if _, err := w.Invitation(t.Context(), link); !errors.Is(err, credential.ErrNoLink) {
		t.Errorf("an ended link: %v", err)
	}
	if _, err := w.Invitation(t.Context(), other); err != nil {
		t.Errorf("another person's: %v", err)
	}
	if names, err := w.Names(t.Context(), "p1"); err != nil || names["p1"].Name != "Ann" {
		t.Errorf("they are called %q, %v", names["p1"].Name, err)
	}
}

// A link tells which sign-in names there are no faster than the sign-in page does, and
// no name that is taken costs a hash.
func TestGuessesAtSignInNamesArePausedByLinkAndAddress(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.joined("p0")
	release := w.HoldHashing()
	defer release()
	guess := func(link, address string) error {
		_, err := w.JoinWithPassword(t.Context(), link, ann(), address)
		return err
	}
	link := w.link("p1")
	for range 5 {
		if err := guess(link, "6.6.6.6"); !domain.IsKind(err, domain.KindInvalid) {
			t.Fatalf("a name that is taken: %v", err)
		}
	}
	if err := guess(link, "7.7.7.7"); !domain.IsKind(err, domain.KindRateLimited) {
		t.Errorf("the link's sixth guess: %v", err)
	}
	w.db.MustExec(`UPDATE signin.attempts SET failures = 20 WHERE who = 'address:6.6.6.6'`)
	if err := guess(w.link("p2"), "6.6.6.6"); !domain.IsKind(err, domain.KindInvalid) {
		t.Errorf("the address' last free guess: %v", err)
	}
	if err := guess(w.link("p3"), "6.6.6.6"); !domain.IsKind(err, domain.KindRateLimited) {
		t.Errorf("the address with another link: %v", err)
	}
	w.pass(2 * time.Second)
	if err := guess(link, "7.7.7.7"); !domain.IsKind(err, domain.KindInvalid) {
		t.Errorf("after the pause: %v", err)
	}
}

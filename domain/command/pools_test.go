package command_test

import (
	"context"
	"errors"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
	"humanqa/internal/testing/must"
)

// Decisions, "Pools": who is not in the pool that an account is kept to gets no
// test of it, whatever the list shows; what was claimed before may be finished.
func TestAnAccountKeptToAPoolGivesItsTestsToNobodyElse(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	first, second, third := s.submitted(t), s.submitted(t), s.submitted(t)
	held := s.claimed(t, first)
	trusted, stranger := s.newChecker(t), s.newChecker(t)
	pool, _, err := s.CreatePool(t.Context(), operator(), "Banking", "")
	if err == nil {
		_, err = s.AddToPool(t.Context(), operator(), pool, trusted)
	}
	if err == nil {
		_, err = s.ChoosePool(t.Context(), operator(), s.account, pool)
	}
	must.NoError(t, err)
	claim := func(checker, id string) error {
		_, err := s.ClaimJob(t.Context(), s.checkerCause(checker), checker, id)
		return err
	}
	for _, id := range []string{first, second} { // one that somebody holds, and one that waits
		s.nothing(t, func() { wantKind(t, claim(stranger, id), domain.KindNotFound) })
	}
	if err := claim(trusted, second); err != nil {
		t.Errorf("a checker of the pool: %v", err)
	}
	if live, found, err := s.LiveClaim(t.Context(), held.CheckerID); err != nil || !found || live.JobID != first {
		t.Errorf("what was claimed before: %v, %v", found, err)
	}
	s.checkAll(t, held)
	if _, _, err := s.CompleteJob(t.Context(), s.checkerCause(held.CheckerID), held, command.CompleteJob{Summary: "done"}); err != nil {
		t.Errorf("what was claimed before cannot be finished: %v", err)
	}
	_, err = s.RemoveFromPool(t.Context(), operator(), pool, trusted)
	must.NoError(t, err)
	wantKind(t, claim(trusted, third), domain.KindNotFound)
	_, err = s.ChoosePool(t.Context(), operator(), s.account, "")
	must.NoError(t, err)
	if err := claim(stranger, third); err != nil {
		t.Errorf("once any checker may: %v", err)
	}
}

func TestAPoolOfAnotherAccountCannotBeChosen(t *testing.T) {
	t.Parallel()
	b := setup(t, 0)
	other, _, err := b.CreateAccount(t.Context(), operator(), "Globex", false)
	must.NoError(t, err)
	pool, _, err := b.CreatePool(t.Context(), operator(), "Their own", other)
	must.NoError(t, err)
	b.nothing(t, func() {
		_, err := b.ChoosePool(t.Context(), operator(), b.account, pool)
		wantKind(t, err, domain.KindNotFound)
		_, err = b.ChoosePool(t.Context(), operator(), b.account, "nowhere")
		wantKind(t, err, domain.KindNotFound)
		_, _, err = b.CreatePool(t.Context(), operator(), "Nobody's", "nobody")
		wantKind(t, err, domain.KindNotFound)
		_, err = b.AddToPool(t.Context(), operator(), pool, "nobody")
		wantKind(t, err, domain.KindNotFound)
	})
	if _, err := b.ChoosePool(t.Context(), operator(), other, pool); err != nil {
		t.Error(err)
	}
}

func TestWhatAnOperatorDoesIsWrittenOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, 0)
	act := command.OperatorAct{PersonID: "ann", Act: oversight.Look, Subject: "job-1", AccountID: b.account, Reason: "They asked us to"}
	did := 0
	do := func(cause command.Cause, outcome error) error {
		_, err := b.Act(t.Context(), cause, act, func(_ context.Context, cause command.Cause) (domain.Position, error) {
			if did++; cause.AccountID != b.account {
				t.Errorf("done for account %q", cause.AccountID)
			}
			return domain.Position{}, outcome
		})
		return err
	}
	cause := operator()
	for range 2 {
		must.NoError(t, do(cause, nil))
	}
	wantKind(t, do(cause, domain.NotFound("job")), domain.KindNotFound) // the first time it was done
	wantTypes(t, b.log, domain.OperatorStream("ann"), "operator.acted")
	if e := b.log.Stream(domain.OperatorStream("ann"))[0]; e.Meta.AccountID != b.account {
		t.Errorf("the act is about account %q", e.Meta.AccountID)
	}

	refused := operator()
	wantKind(t, do(refused, domain.NotFound("job")), domain.KindNotFound)
	wantKind(t, do(refused, nil), domain.KindConflict)
	if err := do(operator(), errors.New("no database")); err == nil || domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("got %v", err)
	}
	wantTypes(t, b.log, domain.OperatorStream("ann"), "operator.acted", "operator.acted", "operator.refused", "operator.acted", "operator.refused")
	if did != 5 {
		t.Errorf("done %d times: one that was refused is not done", did)
	}

	act.Reason = " "
	wantKind(t, do(operator(), nil), domain.KindInvalid)
	if did != 5 {
		t.Error("an act without a reason is done")
	}
}

package command_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
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
	if err != nil {
		t.Fatal(err)
	}
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
	if _, err := s.RemoveFromPool(t.Context(), operator(), pool, trusted); err != nil {
		t.Fatal(err)
	}
	wantKind(t, claim(trusted, third), domain.KindNotFound)
	if _, err := s.ChoosePool(t.Context(), operator(), s.account, ""); err != nil {
		t.Fatal(err)
	}
	if err := claim(stranger, third); err != nil {
		t.Errorf("once any checker may: %v", err)
	}
}

func TestAPoolOfAnotherAccountCannotBeChosen(t *testing.T) {
	t.Parallel()
	b := setup(t, 0)
	other, _, err := b.CreateAccount(t.Context(), operator(), "Globex", false)
	if err != nil {
		t.Fatal(err)
	}
	pool, _, err := b.CreatePool(t.Context(), operator(), "Their own", other)
	if err != nil {
		t.Fatal(err)
	}
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
	cause := operator()
	act := command.OperatorAct{PersonID: "ann", Act: oversight.Look, Subject: "job-1", AccountID: b.account, Reason: "They asked us to"}
	first, err := b.RecordAct(t.Context(), cause, act)
	if err != nil || first.Repeat {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := b.RecordAct(t.Context(), cause, act); err != nil || again.ID != first.ID || !again.Repeat {
		t.Errorf("the same act again: %+v, %v", again, err)
	}
	for range 2 {
		if _, err := b.RefuseAct(t.Context(), cause, "ann", first.ID, "gone"); err != nil {
			t.Fatal(err)
		}
	}
	wantTypes(t, b.log, domain.OperatorStream("ann"), "operator.acted", "operator.refused")
	if e := b.log.Stream(domain.OperatorStream("ann"))[0]; e.Meta.AccountID != b.account {
		t.Errorf("the act is about account %q", e.Meta.AccountID)
	}
}

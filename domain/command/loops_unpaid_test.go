package command_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/loop"
	"humanqa/internal/testing/logtest"
)

// A test joins its loop before it is paid for: a crash between the two leaves
// neither a charge nor a job, and nothing that would ever settle.
func TestATestThatWasNeverPaidIsTakenOutOfItsLoop(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	first := b.iterate(t, 1)
	loopID := command.LoopID(first.ProjectID, "fix-shop")
	b.log.Fail(logtest.To(domain.CreditsStreams), false, errCut)
	c := b.cause()
	in := aTest()
	in.Loop = &command.LoopStep{Skill: "fix-shop", Iteration: 2}
	_, err := b.TestHosted(t.Context(), c, in)
	wantKind(t, err, domain.KindUnavailable)
	b.log.Heal()

	lost := domain.DeriveID(c.CommandID, "job").String()
	b.recordOutcome(t, loopID, lost)
	b.recordOutcome(t, loopID, lost) // a repeat
	if s := b.loopState(loopID).Session; s.Spent != 5 || s.Iterations != 2 || len(s.Open) != 1 {
		t.Errorf("the session is %+v, want only the first test to be paid and open", s)
	}

	t.Run("and is submitted all the same when its client comes back", func(t *testing.T) {
		j, err := b.TestHosted(t.Context(), c, in)
		if err != nil || j.JobID != lost {
			t.Fatalf("got %+v, %v", j, err)
		}
		if used := b.ledger().Used(); used != 10 {
			t.Errorf("%d credits are used, want two tests", used)
		}
	})
}

// Another charge takes the last credits between the look at the balance and
// the charge: by then the test has joined.
func TestAnEndOutOfCreditsLeavesOutTheTestThatCouldNotBePaid(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 10)
	first := b.iterate(t, 1)
	loopID := command.LoopID(first.ProjectID, "fix-shop")
	raced := false
	b.log.Before(func(stream string) {
		if raced || stream != domain.LoopStream(loopID) {
			return
		}
		raced = true
		elsewhere := newService(b.log)
		defer elsewhere.Drain()
		if _, err := elsewhere.SubmitJob(t.Context(), b.cause(), plain()); err != nil {
			t.Error(err)
		}
	})
	c := b.cause()
	in := aTest()
	in.Loop = &command.LoopStep{Skill: "fix-shop", Iteration: 2}
	for range 2 { // and a repeat says no more
		_, err := b.TestHosted(t.Context(), c, in)
		wantKind(t, err, domain.KindPayment)
		got, _ := b.loopEnd(t, loopID)
		want := loop.Ended{
			SessionID: got.SessionID, ProjectID: first.ProjectID, ProjectName: "shop.example", Skill: "fix-shop",
			FinalStatus: loop.StatusOutOfCredits, Iterations: 2, CreditsSpent: 5, Alert: true, At: got.At,
		}
		if got != want {
			t.Errorf("the end is %+v, want %+v", got, want)
		}
		wantTypes(t, b.log, domain.LoopStream(loopID), "loop_session.started", "loop_session.iterated",
			"loop_session.iterated", "loop_session.judged", "loop_session.ended")
	}
}

package command_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

// iterate submits the next test of the agent's loop.
func (b hostedBundle) iterate(t *testing.T, n int) command.HostedJob {
	t.Helper()
	in := aTest()
	in.Loop = &command.LoopStep{Skill: "fix-shop", Iteration: n}
	return b.test(t, in)
}

// tested has a checker find the same verdict on every item of the job.
func (b hostedBundle) tested(t *testing.T, jobID string, verdict job.ItemStatus) {
	t.Helper()
	checker := b.newChecker(t)
	held, err := b.ClaimJob(t.Context(), b.checkerCause(checker), checker, jobID)
	must.NoError(t, err)
	claim := command.Claim{CheckerID: checker, JobID: jobID, Token: held.Token}
	for _, item := range held.Checklist {
		_, _, err := b.CheckItem(t.Context(), b.checkerCause(checker), claim, command.CheckItem{ItemID: item.ID, Status: verdict})
		must.NoError(t, err)
	}
	_, _, err = b.CompleteJob(t.Context(), b.checkerCause(checker), claim, command.CompleteJob{})
	must.NoError(t, err)
}

func (b hostedBundle) recordOutcome(t *testing.T, loopID, jobID string) {
	t.Helper()
	_, err := b.RecordLoopOutcome(t.Context(), b.byItself(), loopID, jobID)
	must.NoError(t, err)
}

// byItself is a policy's cause. A checker's event told it of no account.
func (b hostedBundle) byItself() command.Cause {
	return command.Cause{CommandID: domain.NewCommandID(), Actor: "policy:test"}
}

// loopEnd is the last event of the loop, which must be an end.
func (b hostedBundle) loopEnd(t *testing.T, loopID string) (loop.Ended, domain.Metadata) {
	t.Helper()
	events := b.log.Stream(domain.LoopStream(loopID))
	last := events[len(events)-1]
	e, ok := last.Event.(*loop.Ended)
	if !ok {
		t.Fatalf("the loop ends with %s", last.Type)
	}
	return *e, last.Meta
}

func (b hostedBundle) loopState(loopID string) (st loop.State) {
	for _, e := range b.log.Stream(domain.LoopStream(loopID)) {
		st = loop.Evolve(st, e.Event)
	}
	return st
}

func TestALoopThatFailsTheSameWayThreeTimesIsStuck(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	var loopID string
	var last command.HostedJob
	for n := 1; n <= 3; n++ {
		last = b.iterate(t, n)
		loopID = command.LoopID(last.ProjectID, "fix-shop")
		b.tested(t, last.JobID, job.ItemFail)
		b.recordOutcome(t, loopID, last.JobID)
		b.recordOutcome(t, loopID, last.JobID) // a repeat
	}
	got, meta := b.loopEnd(t, loopID)
	want := loop.Ended{
		SessionID: got.SessionID, ProjectID: last.ProjectID, ProjectName: "shop.example", Skill: "fix-shop",
		FinalStatus: loop.StatusStuckSameBug, Iterations: 3, CreditsSpent: 15, FinalReportID: b.job(last.JobID).ReportID(),
		Alert: true, At: got.At,
	}
	if got != want || meta.AccountID != b.account {
		t.Errorf("the end is %+v of account %s, want %+v", got, meta.AccountID, want)
	}
	if kinds := b.log.Types(domain.LoopStream(loopID)); len(kinds) != 1+3+3+1 {
		t.Errorf("the loop holds %v", kinds)
	}
}

func TestASnoozedProjectHearsNothing(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	j := b.iterate(t, 1)
	until := b.clock.now().Add(time.Hour)
	if _, _, err := b.UpdateProject(t.Context(), b.cause(), j.ProjectID, command.UpdateProject{
		Changes: project.Changes{LoopAlertsSnoozedUntil: command.Field[time.Time]{Set: true, Value: &until}},
	}); err != nil {
		t.Fatal(err)
	}
	loopID := command.LoopID(j.ProjectID, "fix-shop")
	session := b.loopState(loopID).Session.ID
	_, err := b.FinalizeLoop(t.Context(), b.cause(), loopID, session, loop.StatusMaxIterations)
	must.NoError(t, err)
	if e, _ := b.loopEnd(t, loopID); e.Alert {
		t.Errorf("the end alerts although the project is snoozed: %+v", e)
	}

	t.Run("until the snooze is over", func(t *testing.T) {
		b.iterate(t, 1)
		b.clock.pass(time.Hour + time.Second)
		session := b.loopState(loopID).Session.ID
		_, err := b.FinalizeLoop(t.Context(), b.cause(), loopID, session, loop.StatusMaxIterations)
		must.NoError(t, err)
		if e, _ := b.loopEnd(t, loopID); !e.Alert {
			t.Errorf("the end does not alert: %+v", e)
		}
	})
}

func TestALoopDoesNotPayForTestsThatAreGivenBack(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	j := b.iterate(t, 1)
	loopID := command.LoopID(j.ProjectID, "fix-shop")
	_, err := b.CancelJob(t.Context(), b.cause(), j.JobID, "client")
	must.NoError(t, err)
	b.recordOutcome(t, loopID, j.JobID)
	if s := b.loopState(loopID).Session; s.Spent != 0 || s.Iterations != 1 || len(s.Open) != 0 {
		t.Errorf("the session is %+v, want one test that cost nothing", s)
	}
}

func TestATestThatNeverCameIsTakenOutOfItsLoop(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	first := b.iterate(t, 1)
	loopID := command.LoopID(first.ProjectID, "fix-shop")
	b.log.Fail(logtest.To(domain.JobStreams), false, errCut)
	c := b.cause()
	in := aTest()
	in.Loop = &command.LoopStep{Skill: "fix-shop", Iteration: 2}
	_, err := b.TestHosted(t.Context(), c, in)
	wantKind(t, err, domain.KindUnavailable)
	b.log.Heal()

	lost := domain.DeriveID(c.CommandID, "job").String()
	_, err = b.RecordLoopOutcome(t.Context(), b.byItself(), loopID, lost)
	var refusal *domain.Error
	if err == nil || errors.As(err, &refusal) {
		t.Errorf("got %v, want a failure that is tried again: its charge is not settled yet", err)
	}
	_, err = b.VoidJob(t.Context(), b.cause(), lost)
	must.NoError(t, err)
	b.recordOutcome(t, loopID, lost)
	if s := b.loopState(loopID).Session; s.Spent != 5 || len(s.Open) != 1 {
		t.Errorf("the session is %+v, want only the first test to be paid and open", s)
	}
}

func TestAnIterationThatFailsAnywhereJoinsOnce(t *testing.T) {
	t.Parallel()
	for _, persist := range []bool{false, true} {
		t.Run(map[bool]string{true: "persisted", false: "lost"}[persist], func(t *testing.T) {
			t.Parallel()
			b := setupHosted(t, 100)
			b.log.Fail(logtest.To(domain.LoopStreams), persist, errCut)
			c, in := b.cause(), aTest()
			in.Loop = &command.LoopStep{Skill: "fix-shop", Iteration: 1, MaxIterations: 4}
			_, err := b.TestHosted(t.Context(), c, in)
			wantKind(t, err, domain.KindUnavailable)
			if used := b.ledger().Used(); used != 0 {
				t.Errorf("%d credits were charged before the loop was joined", used)
			}
			b.log.Heal()
			j, err := b.TestHosted(t.Context(), c, in)
			must.NoError(t, err)
			loopID := command.LoopID(j.ProjectID, "fix-shop")
			wantTypes(t, b.log, domain.LoopStream(loopID), "loop_session.started", "loop_session.iterated")
			if s := b.loopState(loopID).Session; s.MaxIterations != 4 {
				t.Errorf("the session ends after %d tests, want the agent's 4", s.MaxIterations)
			}
		})
	}
}

func TestTwoNodesJudgeAnOutcomeOnce(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	j := b.iterate(t, 1)
	loopID := command.LoopID(j.ProjectID, "fix-shop")
	b.tested(t, j.JobID, job.ItemPass)
	nodes := []*command.Service{b.Service, b.process()}
	t.Cleanup(nodes[1].Drain)
	together(8, func(i int) error {
		_, err := nodes[i%2].RecordLoopOutcome(t.Context(), b.byItself(), loopID, j.JobID)
		return err
	}, func(err error) { t.Error(err) })
	wantTypes(t, b.log, domain.LoopStream(loopID),
		"loop_session.started", "loop_session.iterated", "loop_session.judged", "loop_session.ended")
}

func TestALoopIsAbandonedWhenItsTimerSaysSo(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	j := b.iterate(t, 1)
	loopID := command.LoopID(j.ProjectID, "fix-shop")
	before := b.log.Types(domain.LoopStream(loopID))
	_, err := b.AbandonLoop(t.Context(), b.byItself(), loopID)
	must.NoError(t, err)
	if after := b.log.Types(domain.LoopStream(loopID)); !slices.Equal(before, after) {
		t.Errorf("a timer that came early wrote %v", after)
	}
	// This machine's clock may be behind the one that the timer went by.
	due := b.byItself()
	due.NotBefore = b.loopState(loopID).Session.SeenAt.Add(loop.SilentFor)
	_, err = b.AbandonLoop(t.Context(), due, loopID)
	must.NoError(t, err)
	if e, _ := b.loopEnd(t, loopID); e.FinalStatus != loop.StatusAbandoned || e.Alert || !e.At.Equal(due.NotBefore) {
		t.Errorf("the end is %+v", e)
	}
}

func TestOnlyItsAccountFinalizesALoop(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	j := b.iterate(t, 1)
	loopID := command.LoopID(j.ProjectID, "fix-shop")
	session := b.loopState(loopID).Session.ID
	b.nothing(t, func() {
		stranger := b.cause()
		stranger.AccountID = "another"
		_, err := b.FinalizeLoop(t.Context(), stranger, loopID, session, loop.StatusPassed)
		wantKind(t, err, domain.KindNotFound)
		_, err = b.FinalizeLoop(t.Context(), b.cause(), "no-loop", session, loop.StatusPassed)
		wantKind(t, err, domain.KindNotFound)
	})
	for range 2 {
		_, err := b.FinalizeLoop(t.Context(), b.cause(), loopID, session, loop.StatusPassed)
		must.NoError(t, err)
	}
	_, err := b.FinalizeLoop(t.Context(), b.cause(), loopID, session, loop.StatusAbandoned)
	wantKind(t, err, domain.KindConflict)
	wantTypes(t, b.log, domain.LoopStream(loopID), "loop_session.started", "loop_session.iterated", "loop_session.ended")
}

package command_test

import (
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

// noLedger fails every append to a ledger.
func noLedger(stream string, _ []domain.NewEvent) *fault {
	if strings.HasPrefix(stream, domain.CreditsStreams) {
		return &fault{err: errCut}
	}
	return nil
}

func TestThreeMissedSLAsFailTheJobAndRefundIt(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	id := s.submitted(t)
	claim := s.claimed(t, id)
	s.nothing(t, func() {
		if _, err := s.MissSLA(t.Context(), s.cause(), id); err != nil {
			t.Error(err) // too early: nothing to miss
		}
	})
	for range 3 {
		s.pass(time.Hour)
		cause := s.cause()
		for range 2 { // a timer may fire twice
			if _, err := s.MissSLA(t.Context(), cause, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantTypes(t, s.log, domain.JobStream(id), "job.created", "job.claimed",
		"job.failed_sla", "job.failed_sla", "job.failed_sla", "job.failed")
	if st := s.job(id); st.Status != job.Failed || st.FailReason != job.FailSLA || s.ledger().Used() != 0 {
		t.Errorf("the job is %s for %s, %d credits are used", st.Status, st.FailReason, s.ledger().Used())
	}
	_, _, err := s.CompleteJob(t.Context(), s.checkerCause(claim.CheckerID), claim, command.CompleteJob{})
	wantKind(t, err, domain.KindConflict)
}

// A checker completes the job on one node while its SLA runs out on another.
func TestTheRaceOfACompletionAgainstTheSLAHasOneWinner(t *testing.T) {
	t.Parallel()
	s := setStage(t, 1000)
	nodes := []*command.Service{s.service(), s.service()}
	won := map[string]int{}
	for range 100 {
		id := s.submitted(t)
		claim := s.claimed(t, id)
		s.checkAll(t, claim)
		s.pass(time.Hour)
		together(2, func(i int) error {
			if i == 0 {
				_, err := nodes[0].MissSLA(t.Context(), s.cause(), id)
				return err
			}
			_, _, err := nodes[1].CompleteJob(t.Context(), s.checkerCause(claim.CheckerID), claim, command.CompleteJob{Summary: "done"})
			return err
		}, func(err error) { wantKind(t, err, domain.KindConflict) })
		types := s.log.types(domain.JobStream(id))
		if len(types) != 4 {
			t.Fatalf("both won: %v", types)
		}
		won[types[3]]++
	}
	if won["job.completed"]+won["job.failed_sla"] != 100 {
		t.Errorf("the winners are %v", won)
	}
}

func TestTheWordOfTwoCheckersFailsAJob(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	id := s.submitted(t)
	first := s.claimed(t, id)
	cause := s.checkerCause(first.CheckerID)
	for range 2 { // a repeat says nothing new
		status, _, err := s.ReportUntestable(t.Context(), cause, first, "blocked", "a login wall")
		if err != nil || status != job.Pending {
			t.Fatalf("the first word: %s, %v", status, err)
		}
	}
	t.Run("the first is not handed the job again, and free for another", func(t *testing.T) {
		_, err := s.ClaimJob(t.Context(), s.checkerCause(first.CheckerID), first.CheckerID, id)
		wantKind(t, err, domain.KindConflict)
		if _, err := s.ClaimJob(t.Context(), s.checkerCause(first.CheckerID), first.CheckerID, s.submitted(t)); err != nil {
			t.Error(err)
		}
	})
	second := s.claimed(t, id)
	_, _, err := s.ReportUntestable(t.Context(), s.checkerCause(second.CheckerID), first, "blocked", "")
	wantKind(t, err, domain.KindConflict)
	cause = s.checkerCause(second.CheckerID)
	for range 2 {
		status, _, err := s.ReportUntestable(t.Context(), cause, second, "blocked", "")
		if err != nil || status != job.Failed {
			t.Fatalf("the second word: %s, %v", status, err)
		}
	}
	wantTypes(t, s.log, domain.JobStream(id), "job.created", "job.claimed", "job.untestable_reported",
		"job.claimed", "job.untestable_reported", "job.failed")
	if used := s.ledger().Used(); used != 5 { // the other job's
		t.Errorf("%d credits used, want 5", used)
	}
}

func TestTheOperatorsWordFailsAJob(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	id := s.submitted(t)
	s.claimed(t, id)
	stranger := s.cause()
	stranger.AccountID = "somebody-else"
	_, err := s.FailJob(t.Context(), stranger, id, job.FailUntestable)
	wantKind(t, err, domain.KindNotFound)
	for range 2 {
		got, err := s.FailJob(t.Context(), s.cause(), id, job.FailUntestable)
		want := command.FailedJob{JobID: id, Status: job.Failed, CreditsRefunded: 5, CreditsRemaining: 100, Position: got.Position}
		if err != nil || got != want {
			t.Errorf("fail: %+v, %v; want %+v", got, err, want)
		}
	}
	wantTypes(t, s.log, domain.JobStream(id), "job.created", "job.claimed", "job.failed")
}

// The job has failed, the refund is lost with the connection: whoever repeats
// the command, or the policy, refunds it once.
func TestAFailureThatCrashesBeforeItsRefundIsRefundedOnce(t *testing.T) {
	t.Parallel()
	for name, repeat := range map[string]func(*testing.T, stage, command.Cause, string){
		"by the command": func(t *testing.T, s stage, cause command.Cause, id string) {
			if _, err := s.FailJob(t.Context(), cause, id, job.FailOperator); err != nil {
				t.Error(err)
			}
		},
		"by the policy": func(t *testing.T, s stage, _ command.Cause, _ string) { s.settle(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setStage(t, 100)
			id := s.submitted(t)
			cause := s.cause()
			s.log.fault = noLedger
			_, err := s.FailJob(t.Context(), cause, id, job.FailOperator)
			wantKind(t, err, domain.KindUnavailable)
			s.log.fault = nil
			for range 2 {
				repeat(t, s, cause, id)
			}
			wantTypes(t, s.log, domain.JobStream(id), "job.created", "job.failed")
			wantTypes(t, s.log, domain.CreditsStream(s.account), "credits.granted", "credits.debited", "credits.refunded")
		})
	}
}

func TestAClaimThatFallsSilentEndsAndKeepsItsDraft(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	id := s.submitted(t)
	claim := s.claimed(t, id)
	s.checkAll(t, claim)
	beat := func() error {
		dueAt, _, err := s.Heartbeat(t.Context(), s.checkerCause(claim.CheckerID), claim)
		if err == nil && !dueAt.Equal(s.job(id).DueAt) {
			t.Errorf("the SLA is said to end at %s, it is %s", dueAt, s.job(id).DueAt)
		}
		return err
	}
	s.nothing(t, func() { // within a minute of the last verdict
		if err := beat(); err != nil {
			t.Error(err)
		}
	})
	s.pass(5 * time.Minute)
	if err := beat(); err != nil {
		t.Fatal(err)
	}
	s.pass(5 * time.Minute)
	s.nothing(t, func() {
		if _, err := s.ReleaseSilent(t.Context(), s.cause(), id); err != nil {
			t.Error(err)
		}
	})
	s.pass(time.Minute)
	for range 2 {
		if _, err := s.ReleaseSilent(t.Context(), s.cause(), id); err != nil {
			t.Fatal(err)
		}
	}
	wantTypes(t, s.log, domain.JobStream(id), "job.created", "job.claimed", "job.item_checked", "job.heartbeat", "job.released")
	wantKind(t, beat(), domain.KindConflict)
	next := s.claimed(t, id)
	report, _, err := s.CompleteJob(t.Context(), s.checkerCause(next.CheckerID), next, command.CompleteJob{Summary: "done"})
	if err != nil || report.PassCount != 1 {
		t.Errorf("the next checker completes the draft: %+v, %v", report, err)
	}
}

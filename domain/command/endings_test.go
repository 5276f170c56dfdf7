package command_test

import (
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

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
			_, err := s.MissSLA(t.Context(), cause, id)
			must.NoError(t, err)
		}
	}
	wantTypes(t, s.log, domain.JobStream(id), "job.created", "job.claimed",
		"job.failed_sla", "job.failed_sla", "job.failed_sla", "job.failed")
	if st := s.job(id); st.Status != job.StatusFailed || st.FailReason != job.FailSLA || s.ledger().Used() != 0 {
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
		types := s.log.Types(domain.JobStream(id))
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
		if err != nil || status != job.StatusPending {
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
		if err != nil || status != job.StatusFailed {
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
		want := command.EndedJob{JobID: id, Status: job.StatusFailed, CreditsRefunded: 5, CreditsRemaining: 100, Position: got.Position}
		if err != nil || got != want {
			t.Errorf("fail: %+v, %v; want %+v", got, err, want)
		}
	}
	wantTypes(t, s.log, domain.JobStream(id), "job.created", "job.claimed", "job.failed")
}

// failings are the ways in which a job fails. Each gives the command that fails
// it, to be sent as often as one likes.
var failings = map[string]func(*testing.T, stage, string) func() error{
	"the operator": func(t *testing.T, s stage, id string) func() error {
		cause := s.cause()
		return func() error {
			_, err := s.FailJob(t.Context(), cause, id, job.FailOperator)
			return err
		}
	},
	"the third missed SLA": func(t *testing.T, s stage, id string) func() error {
		for range 2 {
			s.pass(time.Hour)
			_, err := s.MissSLA(t.Context(), s.cause(), id)
			must.NoError(t, err)
		}
		s.pass(time.Hour)
		cause := s.cause()
		return func() error {
			_, err := s.MissSLA(t.Context(), cause, id)
			return err
		}
	},
	"the second checker": func(t *testing.T, s stage, id string) func() error {
		first := s.claimed(t, id)
		_, _, err := s.ReportUntestable(t.Context(), s.checkerCause(first.CheckerID), first, "blocked", "")
		must.NoError(t, err)
		second := s.claimed(t, id)
		cause := s.checkerCause(second.CheckerID)
		return func() error {
			_, _, err := s.ReportUntestable(t.Context(), cause, second, "blocked", "")
			return err
		}
	},
}

// Each of the two appends fails, once persisted and once not. The command sent
// again, and the policy where nobody sends it, end in one failure and one
// refund.
func TestAFailureThatCrashesAnywhereIsRefundedOnce(t *testing.T) {
	t.Parallel()
	for name, failing := range failings {
		for _, category := range []string{domain.JobStreams, domain.CreditsStreams} {
			for _, persist := range []bool{false, true} {
				t.Run(name+" "+category+map[bool]string{true: "persisted", false: "lost"}[persist], func(t *testing.T) {
					t.Parallel()
					s := setStage(t, 100)
					id := s.submitted(t)
					fail := failing(t, s, id)
					s.log.Fail(logtest.To(category), persist, errCut)
					wantKind(t, fail(), domain.KindUnavailable)
					s.log.Heal()
					if category == domain.CreditsStreams || persist { // the job has failed
						s.settle(t)
					}
					for range 2 {
						if err := fail(); err != nil {
							t.Error(err)
						}
					}
					types := s.log.Types(domain.JobStream(id))
					if n := strings.Count(strings.Join(types, " ")+" ", "job.failed "); n != 1 {
						t.Errorf("the job failed %d times: %v", n, types)
					}
					wantTypes(t, s.log, domain.CreditsStream(s.account), "credits.granted", "credits.debited", "credits.refunded")
				})
			}
		}
	}
}

func TestAClaimThatFallsSilentEndsAndKeepsItsDraft(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	id := s.submitted(t)
	claim := s.claimed(t, id)
	s.checkAll(t, claim)
	beat := func() error {
		beat, _, err := s.Heartbeat(t.Context(), s.checkerCause(claim.CheckerID), claim)
		if j := s.job(id); err == nil && (!beat.DueAt.Equal(j.DueAt) || !beat.SilentAt.Equal(j.SignOfLife.Add(job.SilentAfter))) {
			t.Errorf("the clocks are %+v of %+v", beat, j)
		}
		return err
	}
	s.nothing(t, func() { // within a minute of the last verdict
		if err := beat(); err != nil {
			t.Error(err)
		}
	})
	s.pass(5 * time.Minute)
	must.NoError(t, beat())
	s.pass(5 * time.Minute)
	s.nothing(t, func() {
		if _, err := s.ReleaseSilent(t.Context(), s.cause(), id); err != nil {
			t.Error(err)
		}
	})
	s.pass(time.Minute)
	for range 2 {
		_, err := s.ReleaseSilent(t.Context(), s.cause(), id)
		must.NoError(t, err)
	}
	wantTypes(t, s.log, domain.JobStream(id), "job.created", "job.claimed", "job.item_checked", "job.heartbeat", "job.released")
	wantKind(t, beat(), domain.KindConflict)
	next := s.claimed(t, id)
	report, _, err := s.CompleteJob(t.Context(), s.checkerCause(next.CheckerID), next, command.CompleteJob{Summary: "done"})
	if err != nil || report.PassCount != 1 {
		t.Errorf("the next checker completes the draft: %+v, %v", report, err)
	}
}

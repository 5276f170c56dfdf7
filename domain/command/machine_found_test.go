package command_test

import (
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

// What TestNoHistoryOfCommandsBreaksTheLog has found, told shortly.

func TestLeavingGivesUpTheSlotThatIsHeldNotOneLeftBefore(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	s := b.opened(t, 2)
	ann := b.waiting(t, s, 1)
	leave := func() command.CheckerSession {
		own, err := b.LeaveSession(t.Context(), b.checkerCause(ann), ann, s.SessionID)
		must.NoError(t, err)
		return own
	}
	leave()
	b.takes(t, ann, s, 2)
	if own := leave(); own.Slot != 2 || own.JobID != s.Slots[1].JobID {
		t.Errorf("they left slot %d", own.Slot)
	}
	b.wantSession(t, s, "slot_ready slot_left", "claimed released", "claimed released")
}

func TestATimerThatFiresAgainLeavesTheNextSLAAndTheNextClaimAlone(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	id := s.submitted(t)
	at := func(due time.Time) command.Cause {
		return command.Cause{CommandID: domain.NewCommandID(), Actor: "policy:test", AccountID: s.account, NotBefore: due}
	}

	first := s.claimed(t, id)
	silent := s.job(id).SignOfLife.Add(job.SilentAfter)
	s.pass(job.SilentAfter)
	for range 2 {
		_, err := s.ReleaseSilent(t.Context(), at(silent), id)
		must.NoError(t, err)
		if s.job(id).Status == job.StatusPending {
			s.claimed(t, id)
			s.pass(job.SilentAfter) // silent again, but that is another timer's
		}
	}
	if j := s.job(id); j.Token != first.Token+1 || j.Status != job.StatusClaimed {
		t.Errorf("the job is %s under token %d", j.Status, j.Token)
	}

	due := s.job(id).DueAt
	s.pass(5 * time.Hour)
	for range 2 {
		_, err := s.MissSLA(t.Context(), at(due), id)
		must.NoError(t, err)
		s.pass(5 * time.Hour)
	}
	if j := s.job(id); j.RequeueCount != 1 {
		t.Errorf("one timer has put the job back %d times", j.RequeueCount)
	}
}

func TestCancellingASessionRefundsASlotThatFailedBeforeItsRefundCame(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	s := b.opened(t, 2)
	b.waiting(t, s, 1)
	b.waiting(t, s, 2)
	failed := s.Slots[0].JobID
	b.log.Fail(logtest.To(domain.CreditsStream(b.account)), false, errCut)
	_, err := b.FailJob(t.Context(), b.cause(), failed, job.FailOperator)
	wantKind(t, err, domain.KindUnavailable)
	b.log.Heal()
	out, err := b.CancelSession(t.Context(), b.cause(), s.SessionID)
	if err != nil || out.CreditsRefunded != 10 || out.CreditsRemaining != 100 {
		t.Errorf("cancelled: %+v, %v", out, err)
	}
	for _, e := range b.log.All() {
		if e, ok := e.Event.(*credits.Refunded); ok && e.JobID == failed && e.Reason != job.FailOperator {
			t.Errorf("the failed slot is refunded because of %q", e.Reason)
		}
	}
}

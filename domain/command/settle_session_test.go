package command_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

func TestTheDeadline(t *testing.T) {
	t.Parallel()
	t.Run("before it nothing happens", func(t *testing.T) {
		t.Parallel()
		b := setup(t, 100)
		s := b.opened(t, 3)
		b.settleAt(t, s, s.ReadyDeadline.Add(-time.Millisecond))
		b.wantSession(t, s, "", "", "", "")
	})
	t.Run("with two ready the session starts without the third", func(t *testing.T) {
		t.Parallel()
		b := setup(t, 100)
		s := b.opened(t, 3)
		b.waiting(t, s, 1)
		b.holder(t, s, 2) // never says ready
		b.waiting(t, s, 3)
		for range 2 {
			b.settleAt(t, s, s.ReadyDeadline)
		}
		b.wantSession(t, s, "slot_ready slot_ready started", "claimed slot_started", "claimed cancelled", "claimed slot_started")
		b.wantUsed(t, 10)
		e := eventOf[*job.Cancelled](t, b, domain.JobStream(s.Slots[1].JobID))
		if e.Reason != job.CancelSessionExpired || e.Refund != 5 || e.SessionID != s.SessionID {
			t.Errorf("cancelled: %+v", e)
		}
	})
	t.Run("with one ready it expires", func(t *testing.T) {
		t.Parallel()
		b := setup(t, 100)
		s := b.opened(t, 3)
		ann := b.waiting(t, s, 1)
		for range 2 {
			b.settleAt(t, s, s.ReadyDeadline)
		}
		b.wantSession(t, s, "slot_ready expired", "claimed cancelled", "cancelled", "cancelled")
		b.wantUsed(t, 0)
		_, err := b.ReadySession(t.Context(), b.checkerCause(ann), ann, s.SessionID)
		wantKind(t, err, domain.KindConflict)
	})
	t.Run("who is ready and gives the claim up is not started with", func(t *testing.T) {
		t.Parallel()
		b := setup(t, 100)
		s := b.opened(t, 2)
		ann := b.waiting(t, s, 1)
		_, err := b.ReleaseJob(t.Context(), b.checkerCause(ann), command.Claim{CheckerID: ann, JobID: s.Slots[0].JobID, Token: 1})
		must.NoError(t, err)
		b.waiting(t, s, 2)
		b.wantSession(t, s, "slot_ready slot_left slot_ready", "claimed released", "claimed")
	})
}

func TestASessionCompletesWhenItsLiveSlotsHaveEnded(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	s := b.opened(t, 4)
	ann, bob := b.waiting(t, s, 1), b.waiting(t, s, 2)
	b.waiting(t, s, 3) // misses the SLA
	b.settleAt(t, s, s.ReadyDeadline)
	b.finish(t, ann, s, 1, job.ItemPass)
	b.settleAt(t, s, s.ReadyDeadline)
	b.finish(t, bob, s, 2, job.ItemFail)
	b.settleAt(t, s, s.ReadyDeadline)
	b.wantSession(t, s, "slot_ready slot_ready slot_ready started")

	due := eventOf[*session.Started](t, b, domain.SessionStream(s.SessionID)).DueAt
	miss := b.cause()
	miss.NotBefore = due
	_, err := b.MissSLA(t.Context(), miss, s.Slots[2].JobID)
	must.NoError(t, err)
	for range 2 {
		b.settleAt(t, s, due)
	}
	b.wantSession(t, s, "slot_ready slot_ready slot_ready started completed",
		"claimed slot_started item_checked completed", "claimed slot_started item_checked completed",
		"claimed slot_started failed_sla failed", "cancelled")
	if done := eventOf[*session.Completed](t, b, domain.SessionStream(s.SessionID)); done.PassCount != 1 || done.FailCount != 1 {
		t.Errorf("completed: %+v", done)
	}
	b.wantUsed(t, 10)
	_, err = b.CancelSession(t.Context(), b.cause(), s.SessionID)
	wantKind(t, err, domain.KindConflict)
}

func TestCancellingASessionRefundsWhatHasNotEnded(t *testing.T) {
	t.Parallel()
	t.Run("a lobby", func(t *testing.T) {
		t.Parallel()
		b := setup(t, 20)
		s := b.opened(t, 3)
		b.waiting(t, s, 1)
		b.holder(t, s, 2)
		for range 2 { // a repeat answers the same
			out, err := b.CancelSession(t.Context(), b.cause(), s.SessionID)
			out.Position = domain.Position{}
			if want := (command.CancelledSession{
				SessionID: s.SessionID, Status: session.StatusCancelled, CreditsRefunded: 15, CreditsRemaining: 20,
			}); err != nil || out != want {
				t.Errorf("cancelled: %+v, %v", out, err)
			}
		}
		b.wantSession(t, s, "slot_ready cancelled", "claimed cancelled", "claimed cancelled", "cancelled")
		if e := eventOf[*job.Cancelled](t, b, domain.JobStream(s.Slots[2].JobID)); e.Reason != job.CancelSessionCancelled {
			t.Errorf("cancelled because of %s", e.Reason)
		}
	})
	t.Run("a session that has started keeps what is done", func(t *testing.T) {
		t.Parallel()
		b := setup(t, 20)
		s := b.opened(t, 3)
		ann := b.waiting(t, s, 1)
		b.waiting(t, s, 2)
		b.settleAt(t, s, s.ReadyDeadline) // drops the third
		b.finish(t, ann, s, 1, job.ItemPass)
		out, err := b.CancelSession(t.Context(), b.cause(), s.SessionID)
		if err != nil || out.CreditsRefunded != 10 || out.CreditsRemaining != 15 {
			t.Errorf("cancelled: %+v, %v", out, err)
		}
		b.wantSession(t, s, "slot_ready slot_ready started cancelled",
			"claimed slot_started item_checked completed", "claimed slot_started cancelled", "cancelled")
		b.settleAt(t, s, s.ReadyDeadline)
		b.wantUsed(t, 5)
	})
	t.Run("a session whose jobs have ended is completed, not cancelled", func(t *testing.T) {
		t.Parallel()
		b := setup(t, 20)
		s := b.opened(t, 2)
		ann, bob := b.waiting(t, s, 1), b.waiting(t, s, 2)
		b.finish(t, ann, s, 1, job.ItemPass)
		b.finish(t, bob, s, 2, job.ItemPass)
		_, err := b.CancelSession(t.Context(), b.cause(), s.SessionID) // before the policy got to it
		wantKind(t, err, domain.KindConflict)
		b.wantSession(t, s, "slot_ready slot_ready started completed")
		b.wantUsed(t, 10)
	})
	t.Run("a session whose last job is completed meanwhile is completed", func(t *testing.T) {
		t.Parallel()
		b := setup(t, 20)
		s := b.opened(t, 2)
		ann, bob := b.waiting(t, s, 1), b.waiting(t, s, 2)
		b.finish(t, ann, s, 1, job.ItemPass)
		faster := bundle{Service: newService(b.log), log: b.log, account: b.account}
		b.between(domain.JobStream(s.Slots[1].JobID), func() { faster.finish(t, bob, s, 2, job.ItemPass) })
		_, err := b.CancelSession(t.Context(), b.cause(), s.SessionID)
		wantKind(t, err, domain.KindConflict)
		b.wantSession(t, s, "slot_ready slot_ready started completed",
			"claimed slot_started item_checked completed", "claimed slot_started item_checked completed")
		b.wantUsed(t, 10)
	})
	t.Run("a crash after the first job leaves the rest to the policy", func(t *testing.T) {
		t.Parallel()
		b := setup(t, 20)
		s := b.opened(t, 2)
		b.waiting(t, s, 1)
		b.waiting(t, s, 2)
		b.log.Fail(logtest.To(domain.JobStream(s.Slots[1].JobID)), false, errCut)
		_, err := b.CancelSession(t.Context(), b.cause(), s.SessionID)
		wantKind(t, err, domain.KindUnavailable)
		b.log.Heal()
		b.settleAt(t, s, s.ReadyDeadline)
		b.wantSession(t, s, "slot_ready slot_ready started cancelled", "claimed slot_started cancelled", "claimed slot_started cancelled")
		b.wantUsed(t, 0)
		b.wantIDsApart(t)
	})
	t.Run("what had expired by then is told apart", func(t *testing.T) {
		t.Parallel()
		b := setupHosted(t, 0)
		soon := b.clock.now().Add(10 * time.Minute)
		_, _, err := b.GrantCredits(t.Context(), operator(), b.account, 7, &soon, "")
		must.NoError(t, err)
		_, _, err = b.GrantCredits(t.Context(), operator(), b.account, 5, nil, "")
		must.NoError(t, err)
		s := b.opened(t, 2) // 5, then 2 and 3
		b.clock.pass(11 * time.Minute)
		for range 2 {
			out, err := b.CancelSession(t.Context(), b.cause(), s.SessionID)
			out.Position = domain.Position{}
			if want := (command.CancelledSession{
				SessionID: s.SessionID, Status: session.StatusCancelled, CreditsRefunded: 3, CreditsExpired: 7, CreditsRemaining: 5,
			}); err != nil || out != want {
				t.Errorf("cancelled: %+v, %v", out, err)
			}
		}
		for i, want := range []domain.Credits{5, 2} {
			if e := eventOf[*job.Cancelled](t, b.bundle, domain.JobStream(s.Slots[i].JobID)); e.RefundExpired != want {
				t.Errorf("slot %d: %+v", i+1, e)
			}
		}
	})
	t.Run("another account's session does not exist", func(t *testing.T) {
		t.Parallel()
		b := setup(t, 20)
		s := b.opened(t, 2)
		thief := b.cause()
		thief.AccountID = "another"
		_, err := b.CancelSession(t.Context(), thief, s.SessionID)
		wantKind(t, err, domain.KindNotFound)
		b.wantSession(t, s, "", "", "")
	})
	t.Run("its slots' jobs are not cancelled alone", func(t *testing.T) {
		t.Parallel()
		b := setup(t, 20)
		s := b.opened(t, 2)
		_, err := b.CancelJob(t.Context(), b.cause(), s.Slots[0].JobID, job.CancelClient)
		wantKind(t, err, domain.KindConflict)
		b.wantSession(t, s, "", "", "")
	})
}

// Every append of an expiry fails once, persisted or not; the next settlement
// finishes it, and no event has another's id.
func TestASettlementThatFailsAnywhereIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	const writes = 7 // the session, and a job and a refund for each slot
	for write := range writes {
		for _, persist := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d persisted %v", write+1, persist), func(t *testing.T) {
				t.Parallel()
				b := setup(t, 100)
				s := b.opened(t, 3)
				b.log.Fail(logtest.Nth(write+1), persist, errCut)
				timer := timerOf(s.ReadyDeadline)
				_, err := b.SettleSession(t.Context(), timer, s.SessionID)
				wantKind(t, err, domain.KindUnavailable)
				b.log.Heal()
				if _, err := newService(b.log).SettleSession(t.Context(), timer, s.SessionID); err != nil { // the same timer again
					t.Fatal(err)
				}
				b.wantSession(t, s, "expired", "cancelled", "cancelled", "cancelled")
				b.wantUsed(t, 0)
				b.wantIDsApart(t)
			})
		}
	}
}

// A timer that fires again finds another session than the first time; what it
// writes then has ids of its own.
func TestATimerThatFiresAgainWritesEventsOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	s := b.opened(t, 3)
	ann, bob := b.waiting(t, s, 1), b.waiting(t, s, 2)
	timer := timerOf(s.ReadyDeadline)
	settle := func() {
		t.Helper()
		_, err := b.SettleSession(t.Context(), timer, s.SessionID)
		must.NoError(t, err)
	}
	settle()
	b.finish(t, ann, s, 1, job.ItemPass)
	b.finish(t, bob, s, 2, job.ItemPass)
	settle()
	b.wantSession(t, s, "slot_ready slot_ready started completed")
	b.wantIDsApart(t)
}

// One command may write to a stream more than once; each event is its own.
func (b bundle) wantIDsApart(t *testing.T) {
	t.Helper()
	var ids []string
	for _, e := range b.log.All() {
		ids = append(ids, e.ID.String())
	}
	slices.Sort(ids)
	if n := len(ids) - len(slices.Compact(ids)); n > 0 {
		t.Errorf("%d events share an id", n)
	}
}

// A crash between the session and its jobs leaves slots that were paid for.
func TestASlotWhoseJobNeverCameIsVoidedAndRefundedWithItsSession(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	c := b.cause()
	b.log.Fail(slot(2), false, errCut)
	_, err := b.CreateSession(t.Context(), c, aSession(3))
	wantKind(t, err, domain.KindUnavailable)
	b.log.Heal()
	id := domain.DeriveID(c.CommandID, "session").String()
	out, err := b.CancelSession(t.Context(), b.cause(), id)
	if err != nil || out.CreditsRefunded != 15 || out.CreditsRemaining != 100 {
		t.Errorf("cancelled: %+v, %v", out, err)
	}
	wantTypes(t, b.log, domain.JobStream(domain.DeriveID(c.CommandID, "slot 1").String()), "job.created", "job.cancelled")
	for _, slot := range []string{"slot 2", "slot 3"} {
		wantTypes(t, b.log, domain.JobStream(domain.DeriveID(c.CommandID, slot).String()), "job.voided")
	}
	b.wantIDsApart(t)
}

// The policies bring every session to its end by themselves.
func TestTimersBringASessionToItsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	s := b.opened(t, 2)
	b.settle(t)
	b.settle(t)
	b.wantSession(t, s, "expired", "cancelled", "cancelled")
	b.wantUsed(t, 0)
}

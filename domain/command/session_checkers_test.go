package command_test

import (
	"sync/atomic"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

func TestTheLastReadyCheckerStartsTheSession(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	s := b.opened(t, 2)
	b.waiting(t, s, 1)
	bob := b.holder(t, s, 2)
	own, err := b.ReadySession(t.Context(), b.checkerCause(bob), bob, s.SessionID)
	must.NoError(t, err)
	own.Position = domain.Position{}
	if want := (command.CheckerSession{
		SessionID: s.SessionID, Status: session.StatusActive, Slot: 2, JobID: s.Slots[1].JobID,
		ReadyCount: 2, CheckerCount: 2, ReadyDeadline: s.ReadyDeadline,
	}); own != want {
		t.Errorf("own: %+v", own)
	}
	b.wantSession(t, s, "slot_ready slot_ready started", "claimed slot_started", "claimed slot_started")
	started := eventOf[*session.Started](t, b, domain.SessionStream(s.SessionID))
	for _, slot := range s.Slots {
		e := eventOf[*job.SlotStarted](t, b, domain.JobStream(slot.JobID))
		if !e.DueAt.Equal(started.At.Add(time.Hour)) || !e.At.Equal(started.At) {
			t.Errorf("slot %d is due at %s, the session started at %s", slot.Slot, e.DueAt, started.At)
		}
	}
	t.Run("and asking again changes nothing", func(t *testing.T) {
		if _, err := b.ReadySession(t.Context(), b.checkerCause(bob), bob, s.SessionID); err != nil {
			t.Error(err)
		}
		b.wantSession(t, s, "slot_ready slot_ready started", "claimed slot_started", "claimed slot_started")
	})
}

func TestOnlyWhoHoldsASlotTakesPart(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	s := b.opened(t, 2)
	stranger, own := b.newChecker(t), b.newChecker(t, b.account)
	for name, call := range map[string]func(checkerID, sessionID string) error{
		"ready": func(checkerID, sessionID string) error {
			_, err := b.ReadySession(t.Context(), b.checkerCause(checkerID), checkerID, sessionID)
			return err
		},
		"leave": func(checkerID, sessionID string) error {
			_, err := b.LeaveSession(t.Context(), b.checkerCause(checkerID), checkerID, sessionID)
			return err
		},
		"mark": func(checkerID, sessionID string) error {
			_, err := b.MarkSlot(t.Context(), b.checkerCause(checkerID), checkerID, sessionID, "", 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantKind(t, call(stranger, s.SessionID), domain.KindConflict)
			wantKind(t, call(own, s.SessionID), domain.KindNotFound)
			wantKind(t, call(stranger, "no-such-session"), domain.KindNotFound)
		})
	}
	b.wantSession(t, s, "", "", "")
}

func TestLeavingGivesTheClaimUpAndCanBeRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	s := b.opened(t, 2)
	ann := b.waiting(t, s, 1)
	for range 2 {
		own, err := b.LeaveSession(t.Context(), b.checkerCause(ann), ann, s.SessionID)
		if err != nil || own.Status != session.StatusLobby || own.Slot != 1 || own.ReadyCount != 0 {
			t.Errorf("own: %+v, %v", own, err)
		}
	}
	b.wantSession(t, s, "slot_ready slot_left", "claimed released", "")
	if e := eventOf[*job.Released](t, b, domain.JobStream(s.Slots[0].JobID)); e.Reason != "left" {
		t.Errorf("released because %q", e.Reason)
	}
	t.Run("another checker takes the place", func(t *testing.T) {
		b.waiting(t, s, 1)
		b.waiting(t, s, 2)
		b.wantSession(t, s, "slot_ready slot_left slot_ready slot_ready started")
	})
}

func TestLeavingASessionThatHasStartedGivesTheJobBack(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	s := b.opened(t, 2)
	ann := b.waiting(t, s, 1)
	b.waiting(t, s, 2)
	_, err := b.LeaveSession(t.Context(), b.checkerCause(ann), ann, s.SessionID)
	must.NoError(t, err)
	b.wantSession(t, s, "slot_ready slot_ready started", "claimed slot_started released")
}

func TestTwoLastCheckersAtOnceStartTheSessionOnce(t *testing.T) {
	t.Parallel()
	for range 10 {
		b := setup(t, 100)
		s := b.opened(t, 3)
		b.waiting(t, s, 1)
		checkers := []string{b.holder(t, s, 2), b.holder(t, s, 3)}
		nodes := []*command.Service{b.Service, newService(b.log)}
		good := together(2, func(i int) error {
			_, err := nodes[i].ReadySession(t.Context(), b.checkerCause(checkers[i]), checkers[i], s.SessionID)
			return err
		}, func(err error) { t.Error(err) })
		if good != 2 {
			t.Fatalf("%d of 2 were ready", good)
		}
		slot := "claimed slot_started"
		b.wantSession(t, s, "slot_ready slot_ready slot_ready started", slot, slot, slot)
	}
}

func TestReadyAgainstTheDeadlineHasOneWinner(t *testing.T) {
	t.Parallel()
	for range 20 {
		b := setup(t, 100)
		s := b.opened(t, 2)
		b.waiting(t, s, 1)
		bob := b.holder(t, s, 2)
		other := newService(b.log)
		var lost atomic.Bool
		together(2, func(i int) error {
			if i == 0 {
				_, err := b.ReadySession(t.Context(), b.checkerCause(bob), bob, s.SessionID)
				return err
			}
			_, err := other.SettleSession(t.Context(), timerOf(s.ReadyDeadline), s.SessionID)
			return err
		}, func(err error) {
			lost.Store(true)
			wantKind(t, err, domain.KindConflict)
		})
		if lost.Load() {
			b.wantSession(t, s, "slot_ready expired", "claimed cancelled", "claimed cancelled")
			b.wantUsed(t, 0)
		} else {
			b.wantSession(t, s, "slot_ready slot_ready started", "claimed slot_started", "claimed slot_started")
			b.wantUsed(t, 10)
		}
	}
}

func TestAMomentIsMarkedOnceByWhoIsInTheRoom(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	s := b.opened(t, 2)
	ann := b.waiting(t, s, 1)
	cause := b.checkerCause(ann)
	for range 2 {
		_, err := b.MarkSlot(t.Context(), cause, ann, s.SessionID, "here", 0)
		must.NoError(t, err)
	}
	e := eventOf[*session.Marked](t, b, domain.SessionStream(s.SessionID))
	if e.Slot != 1 || e.CheckerID != ann || e.PersonID != "" || e.Note != "here" || e.At.IsZero() {
		t.Errorf("marked: %+v", e)
	}
	_, err := b.MarkSession(t.Context(), b.cause(), s.SessionID, "owner", "")
	must.NoError(t, err)
	stranger := b.cause()
	stranger.AccountID = "another account"
	_, err = b.MarkSession(t.Context(), stranger, s.SessionID, "eve", "")
	wantKind(t, err, domain.KindNotFound)
	b.wantSession(t, s, "slot_ready marked marked", "claimed", "")
}

// What a checker marks at their list is marked for all in the room, once.
func TestAMomentMarkedInASlotIsTheRooms(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	s := b.opened(t, 2)
	ann := b.waiting(t, s, 1)
	b.waiting(t, s, 2)
	claim := command.Claim{CheckerID: ann, JobID: s.Slots[0].JobID, Token: 1}
	cause := b.checkerCause(ann)
	for range 2 {
		_, err := b.MarkMoment(t.Context(), cause, claim, "here", 0)
		must.NoError(t, err)
	}
	e := eventOf[*session.Marked](t, b, domain.SessionStream(s.SessionID))
	if e.Slot != 1 || e.CheckerID != ann || e.Note != "here" {
		t.Errorf("marked: %+v", e)
	}
	b.wantSession(t, s, "slot_ready slot_ready started marked", "claimed slot_started moment_marked", "claimed slot_started")
}

// The room's mark is of the press, also if the first try lost it.
func TestAMomentThatIsMarkedAgainAfterACrashIsTheRoomsAtItsOwnTime(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	s := b.opened(t, 2)
	ann := b.waiting(t, s, 1)
	b.waiting(t, s, 2)
	jobID := s.Slots[0].JobID
	cause, claim := b.checkerCause(ann), command.Claim{CheckerID: ann, JobID: jobID, Token: 1}
	b.log.Fail(logtest.Of("session.marked"), false, errCut)
	if _, err := b.MarkMoment(t.Context(), cause, claim, "here", 0); err == nil {
		t.Fatal("the room was marked")
	}
	b.log.Heal()
	b.clock.pass(time.Minute)
	_, err := b.MarkMoment(t.Context(), cause, claim, "here", 0)
	must.NoError(t, err)
	pressed := eventOf[*job.MomentMarked](t, b.bundle, domain.JobStream(jobID))
	shared := eventOf[*session.Marked](t, b.bundle, domain.SessionStream(s.SessionID))
	if !shared.At.Equal(pressed.At) {
		t.Errorf("the room is marked at %s, the moment was at %s", shared.At, pressed.At)
	}
}

package command

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/repository"
	"humanqa/domain/session"
)

// ReadySession records that the checker waits in the lobby. The last checker to become
// ready starts the session. The checker must hold the claim of one of its jobs. A session
// of an account that the checker belongs to is not found: the checker must not learn that
// it exists.
func (s *Service) ReadySession(ctx context.Context, cause Cause, checkerID, sessionID string) (CheckerSession, error) {
	st, err := s.sessionFor(ctx, checkerID, sessionID)
	if err != nil {
		return CheckerSession{}, err
	}
	slot, err := s.slotOf(ctx, st, func(j job.State) bool { return j.ClaimedBy(checkerID) })
	if err != nil {
		return CheckerSession{}, err
	}
	return s.enterSession(ctx, cause, sessionID, st, slot, checkerID)
}

// enterSession makes the holder of the slot's job ready, and begins the slots' work if
// that starts the session.
func (s *Service) enterSession(
	ctx context.Context, cause Cause, sessionID string, st session.State, slot session.Slot, checkerID string,
) (CheckerSession, error) {
	cause.AccountID, cause.Sandbox = st.AccountID, st.Sandbox
	work, err := s.slotWork(ctx, st)
	if err != nil {
		return CheckerSession{}, err
	}
	after, ready, err := s.onSession(ctx, cause, sessionID, func(st session.State, now time.Time) ([]domain.Event, error) {
		return session.DecideReady(st, slot.Slot, checkerID, work, now)
	})
	if err != nil {
		return CheckerSession{}, err
	}
	own := checkerSession(sessionID, after, slot)
	at, err := s.settleSlots(ctx, cause, after, false)
	own.Position = ready.Max(at)
	return own, err
}

// LeaveSession takes the checker out of the session and gives their claim up. A checker
// that has left already gets the same answer again.
func (s *Service) LeaveSession(ctx context.Context, cause Cause, checkerID, sessionID string) (CheckerSession, error) {
	st, err := s.sessionFor(ctx, checkerID, sessionID)
	if err != nil {
		return CheckerSession{}, err
	}
	slot, err := s.slotOf(ctx, st, func(j job.State) bool { return j.ClaimedBy(checkerID) })
	if err == nil && slot.Slot == 0 { // a repeat, unless the checker took another slot since
		slot, err = s.slotOf(ctx, st, func(j job.State) bool { return j.Status == job.StatusPending && j.ReleasedBy == checkerID })
	}
	if err != nil {
		return CheckerSession{}, err
	}
	cause.AccountID, cause.Sandbox = st.AccountID, st.Sandbox
	after, left, err := s.onSession(ctx, cause, sessionID, func(st session.State, now time.Time) ([]domain.Event, error) {
		return session.DecideLeave(st, slot.Slot, checkerID, now)
	})
	if err != nil {
		return CheckerSession{}, err
	}
	own := checkerSession(sessionID, after, slot)
	released, err := s.onJob(ctx, cause, slot.JobID, func(j job.State, now time.Time) ([]domain.Event, error) {
		return job.DecideLeave(j, checkerID, now)
	})
	own.Position = left.Max(released)
	return own, err
}

// sessionFor reads a session that the checker may know of.
func (s *Service) sessionFor(ctx context.Context, checkerID, sessionID string) (session.State, error) {
	st, err := s.Session(ctx, sessionID)
	if err != nil {
		return session.State{}, err
	}
	hidden, err := s.HiddenFrom(ctx, checkerID)
	switch {
	case err != nil:
		return session.State{}, err
	case !st.Exists || hidden(st.AccountID):
		return session.State{}, domain.NotFound("session")
	}
	return st, nil
}

// slotOf finds the slot with such a job; the zero slot if there is none.
func (s *Service) slotOf(ctx context.Context, st session.State, such func(job.State) bool) (session.Slot, error) {
	for _, slot := range st.Slots {
		found, err := repository.Read(ctx, s.Jobs, domain.JobStream(slot.JobID), such)
		if err != nil || found {
			return slot, err
		}
	}
	return session.Slot{}, nil
}

func checkerSession(sessionID string, st session.State, slot session.Slot) CheckerSession {
	return CheckerSession{
		SessionID: sessionID, Status: st.Status, Slot: slot.Slot, JobID: slot.JobID,
		ReadyCount: len(st.Ready), CheckerCount: len(st.Slots), ReadyDeadline: st.ReadyDeadline,
	}
}

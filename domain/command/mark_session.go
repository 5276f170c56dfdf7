package command

import (
	"context"
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/session"
)

// MarkSession records a moment that a person of the account marks for all participants.
// The same command marks once.
func (s *Service) MarkSession(ctx context.Context, cause Cause, sessionID, personID, note string) (domain.Position, error) {
	st, err := s.Session(ctx, sessionID)
	if err != nil {
		return domain.Position{}, err
	}
	if !st.Exists || st.AccountID != cause.AccountID {
		return domain.Position{}, domain.NotFound("session")
	}
	return s.recordMark(ctx, cause, sessionID, st, session.Marked{PersonID: personID, Note: note}, 0)
}

// MarkSlot is MarkSession by the checker of a slot that holds its job or has completed
// it. ago is the age of the moment.
func (s *Service) MarkSlot(
	ctx context.Context, cause Cause, checkerID, sessionID, note string, ago time.Duration,
) (domain.Position, error) {
	st, err := s.sessionFor(ctx, checkerID, sessionID)
	if err != nil {
		return domain.Position{}, err
	}
	slot, err := s.slotOf(ctx, st, func(j job.State) bool {
		return j.CheckerID == checkerID && (j.Status == job.StatusClaimed || j.Status == job.StatusCompleted)
	})
	if err != nil {
		return domain.Position{}, err
	}
	return s.recordMark(ctx, cause, sessionID, st, session.Marked{Slot: slot.Slot, CheckerID: checkerID, Note: note}, ago)
}

func (s *Service) recordMark(
	ctx context.Context, cause Cause, sessionID string, st session.State, m session.Marked, ago time.Duration,
) (domain.Position, error) {
	cause.AccountID, cause.Sandbox = st.AccountID, st.Sandbox
	m.ID = domain.DeriveID(cause.CommandID, "mark").String()
	_, at, err := s.onSession(ctx, cause, sessionID, func(st session.State, now time.Time) ([]domain.Event, error) {
		m.At = now.Add(-ago)
		return session.DecideMark(st, m)
	})
	return at, err
}

// MarkMoment marks a moment of the test, ago before now, under an id that derives from
// the command. In a session's slot it also marks the moment for all participants, as long
// as the session takes marks. After a crash between the two, a repeat adds the missing
// mark.
func (s *Service) MarkMoment(ctx context.Context, cause Cause, claim Claim, label string, ago time.Duration) (domain.Position, error) {
	now := s.Now()
	m := job.Moment{ID: domain.DeriveID(cause.CommandID, "moment").String(), Label: label, At: now.Add(-ago)}
	st, at, err := s.Run(ctx, cause, claim, func(st job.State) ([]domain.Event, error) {
		return job.DecideMarkMoment(st, claim.CheckerID, claim.Token, m, now)
	})
	if err != nil || st.SessionID == "" {
		return at, err
	}
	marked := st.Moments[slices.IndexFunc(st.Moments, func(known job.Moment) bool { return known.ID == m.ID })]
	shared, err := s.MarkSlot(ctx, cause.Step("room"), claim.CheckerID, st.SessionID, label, now.Sub(marked.At))
	if domain.IsKind(err, domain.KindConflict) {
		err = nil // the session is full of marks or over: only the slot has the moment
	}
	return at.Max(shared), err
}

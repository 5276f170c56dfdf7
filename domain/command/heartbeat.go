package command

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// Heartbeat says that the claimant is still at work; it answers when the SLA
// ends.
func (s *Service) Heartbeat(ctx context.Context, cause Cause, claim Claim) (dueAt time.Time, at domain.Position, err error) {
	return claimant(ctx, s, cause, claim, func(st job.State, dueAt *time.Time) ([]domain.Event, error) {
		*dueAt = st.DueAt
		return job.DecideHeartbeat(st, claim.CheckerID, claim.Token, s.Now())
	})
}

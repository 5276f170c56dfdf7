package command

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// Beat is what a claimant is told of the clock: when the SLA ends. Stands says that a
// question is open, so the clock stands and DueAt will be later.
type Beat struct {
	DueAt  time.Time
	Stands bool
}

// Heartbeat says that the claimant is still at work.
func (s *Service) Heartbeat(ctx context.Context, cause Cause, claim Claim) (Beat, domain.Position, error) {
	return claimant(ctx, s, cause, claim, func(st job.State, beat *Beat) ([]domain.Event, error) {
		beat.DueAt = st.DueAt
		_, beat.Stands = st.OpenQuestion()
		return job.DecideHeartbeat(st, claim.CheckerID, claim.Token, s.Now())
	})
}

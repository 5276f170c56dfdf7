package claims

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// Beat tells a claimant the ends of both clocks. Stands says that a question is open:
// both clocks stand then, and their ends will be later.
type Beat struct {
	DueAt    time.Time // the end of the SLA
	SilentAt time.Time // when the claim ends without a further sign of life
	Stands   bool
}

// Heartbeat says that the claimant is still at work.
func (s *Claims) Heartbeat(ctx context.Context, cause domain.Cause, claim Claim) (Beat, domain.Position, error) {
	return Run(ctx, s, cause, claim, func(st job.State, beat *Beat) ([]domain.Event, error) {
		now := s.Now()
		events, err := job.DecideHeartbeat(st, claim.CheckerID, claim.Token, now)
		heard := st.SignOfLife
		if len(events) > 0 {
			heard = now
		}
		*beat = Beat{DueAt: st.DueAt, SilentAt: heard.Add(job.SilentAfter)}
		_, beat.Stands = st.OpenQuestion()
		return events, err
	})
}

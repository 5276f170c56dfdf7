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
	st, at, err := s.Run(ctx, cause, claim, func(st job.State) ([]domain.Event, error) {
		return job.DecideHeartbeat(st, claim.CheckerID, claim.Token, s.now())
	})
	_, asks := st.OpenQuestion()
	return Beat{DueAt: st.DueAt, SilentAt: st.SignOfLife.Add(job.SilentAfter), Stands: asks}, at, err
}

package command

import (
	"context"
	"humanqa/domain"
	"time"
)

// Heartbeat says that the claimant is still at work; it answers when the SLA
// ends.
func (s *Service) Heartbeat(ctx context.Context, cause Cause, claim Claim) (dueAt time.Time, at domain.Position, err error) {
	panic("not built yet")
}

package command

import (
	"context"
	"humanqa/domain"
	"humanqa/domain/loop"
)

// FinalizeLoop ends a loop session at the agent's word.
func (s *Service) FinalizeLoop(ctx context.Context, cause Cause, loopID, sessionID string, final loop.Status) (domain.Position, error) {
	panic("not built yet")
}

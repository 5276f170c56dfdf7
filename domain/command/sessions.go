package command

import (
	"context"
	"humanqa/domain"
)

// CreateSession opens a session's lobby; every slot becomes a job.
func (s *Service) CreateSession(ctx context.Context, cause Cause, in NewSession) (CreatedSession, error) {
	panic("not built yet")
}

// CancelSession ends a session and refunds the slots that have not ended.
func (s *Service) CancelSession(ctx context.Context, cause Cause, sessionID string) (CancelledSession, error) {
	panic("not built yet")
}

// SessionReady says that the checker waits in the lobby.
func (s *Service) SessionReady(ctx context.Context, cause Cause, checkerID, sessionID string) (SessionStanding, error) {
	panic("not built yet")
}

// SessionLeave takes the checker out of the session and gives up their claim.
func (s *Service) SessionLeave(ctx context.Context, cause Cause, checkerID, sessionID string) (SessionStanding, error) {
	panic("not built yet")
}

// SettleSession does what the session's time and its jobs ask for.
func (s *Service) SettleSession(ctx context.Context, cause Cause, sessionID string) (domain.Position, error) {
	panic("not built yet")
}

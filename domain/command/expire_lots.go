package command

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/credits"
)

// ExpireLots records the expiry of the account's lots whose time has come.
func (s *Service) ExpireLots(ctx context.Context, cause Cause) (domain.Position, error) {
	_, at, err := s.onLedger(ctx, cause, credits.DecideExpire)
	return at, err
}

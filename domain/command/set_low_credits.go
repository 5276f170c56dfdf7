package command

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
)

// SetLowCredits sets below how many credits the account is told that they are low;
// 0: never. Invalid, path "below", is what is no such number.
func (s *Service) SetLowCredits(ctx context.Context, cause Cause, below domain.Credits) (domain.Position, error) {
	cause, err := s.withLedger(ctx, cause, cause.AccountID)
	if err != nil {
		return domain.Position{}, err
	}
	_, at, err := s.onLedger(ctx, cause, func(st credits.State, now time.Time) ([]domain.Event, error) {
		return credits.DecideLow(st, below, now)
	})
	return at, err
}

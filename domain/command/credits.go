package command

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
)

// GrantCredits adds a lot to the account's ledger and says what is available
// then. expiresAt, in the account's time, nil: the lot never expires.
func (s *Service) GrantCredits(
	ctx context.Context, cause Cause, accountID string, amount domain.Credits, expiresAt *time.Time, reason string,
) (domain.Credits, domain.Position, error) {
	cause, err := s.withLedger(ctx, cause, accountID)
	if err != nil {
		return 0, domain.Position{}, err
	}
	lotID := domain.DeriveID(cause.CommandID, "lot").String()
	return s.ledger.Execute(ctx, cause, func(st credits.State, now time.Time) ([]domain.Event, error) {
		return credits.DecideGrant(st, lotID, amount, expiresAt, reason, now)
	})
}

// withLedger gives the cause of a command on the account's ledger. A missing or erased
// account has no ledger.
func (s *Service) withLedger(ctx context.Context, cause Cause, accountID string) (Cause, error) {
	st, err := s.ExistingAccount(ctx, accountID)
	cause.AccountID, cause.Sandbox = accountID, st.Sandbox
	return cause, err
}

// ExpireLots records the expiry of the account's expired lots.
func (s *Service) ExpireLots(ctx context.Context, cause Cause) (domain.Position, error) {
	_, at, err := s.ledger.Execute(ctx, cause, credits.DecideExpire)
	return at, err
}

// SetLowCredits sets below how many credits the account is told that they are low; 0:
// never. A number out of bounds is Invalid, path "below".
func (s *Service) SetLowCredits(ctx context.Context, cause Cause, below domain.Credits) (domain.Position, error) {
	cause, err := s.withLedger(ctx, cause, cause.AccountID)
	if err != nil {
		return domain.Position{}, err
	}
	_, at, err := s.ledger.Execute(ctx, cause, func(st credits.State, now time.Time) ([]domain.Event, error) {
		return credits.DecideLow(st, below, now)
	})
	return at, err
}

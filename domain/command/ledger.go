package command

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
)

// debits charges the account for jobs, all or none and each once, in one
// append, and says what is left.
func (s *Service) debits(ctx context.Context, cause Cause, charges ...credits.Charge) (remaining domain.Credits, err error) {
	remaining, _, err = s.onLedger(ctx, cause, func(st credits.State, now time.Time) ([]domain.Event, error) {
		return credits.DecideDebits(st, charges, now)
	})
	return remaining, err
}

// affords fails as debits would, and writes nothing. A command that has
// settings to write asks first, so that a want of credits leaves no trace.
func (s *Service) affords(ctx context.Context, cause Cause, charges ...credits.Charge) error {
	now, err := s.clock(ctx, cause)
	if err != nil {
		return err
	}
	refusal, err := read(ctx, s.ledgers, domain.CreditsStream(cause.AccountID), func(st credits.State) error {
		_, err := credits.DecideDebits(st, charges, now)
		return err
	})
	if err != nil {
		return err
	}
	return refusal
}

// refund gives a job's debit back, once, and says what is left.
func (s *Service) refund(ctx context.Context, cause Cause, jobID, reason string) (remaining domain.Credits, at domain.Position, err error) {
	return s.onLedger(ctx, cause, func(st credits.State, now time.Time) ([]domain.Event, error) {
		return credits.DecideRefund(st, jobID, reason, now)
	})
}

// onLedger runs a command on the account's ledger and says what is available
// after it.
func (s *Service) onLedger(
	ctx context.Context, cause Cause, decide func(credits.State, time.Time) ([]domain.Event, error),
) (domain.Credits, domain.Position, error) {
	now, err := s.clock(ctx, cause)
	if err != nil {
		return 0, domain.Position{}, err
	}
	available, written, err := execute(ctx, s.ledgers, cause, domain.CreditsStream(cause.AccountID),
		func(st credits.State, available *domain.Credits) ([]domain.Event, error) {
			events, err := decide(st, now)
			*available = balanceAfter(st, events, now)
			return events, err
		})
	return available, written.Position, err
}

// balanceAfter is what the account has left after the events; without any,
// what it has now.
func balanceAfter(st credits.State, events []domain.Event, now time.Time) domain.Credits {
	if len(events) == 0 {
		return st.Available(now)
	}
	switch e := events[len(events)-1].(type) {
	case *credits.Granted:
		return e.BalanceAfter
	case *credits.Debited:
		return e.BalanceAfter
	case *credits.Refunded:
		return e.BalanceAfter
	case *credits.LotExpired:
		return e.BalanceAfter
	}
	return st.Available(now)
}

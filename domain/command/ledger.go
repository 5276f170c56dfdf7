package command

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
)

// debits charges the account for jobs, all or none and each once, in one
// append, and says what is left.
func (s *Service) debits(ctx context.Context, cause Cause, charges ...credits.Charge) (remaining domain.Credits, at domain.Position, err error) {
	err = s.charge(ctx, cause, charges, func(charges []credits.Charge) (err error) {
		remaining, at, err = s.onLedger(ctx, cause, func(st credits.State, now time.Time) ([]domain.Event, error) {
			return credits.DecideDebits(st, charges, now)
		})
		return err
	})
	return remaining, at, err
}

// affords fails as debits would, and writes nothing. A command that has
// settings to write asks first, so that a want of credits leaves no trace.
func (s *Service) affords(ctx context.Context, cause Cause, charges ...credits.Charge) error {
	now, err := s.clock(ctx, cause)
	if err != nil {
		return err
	}
	return s.charge(ctx, cause, charges, func(charges []credits.Charge) error {
		refusal, err := read(ctx, s.ledgers, domain.CreditsStream(cause.AccountID), func(st credits.State) error {
			_, err := credits.DecideDebits(st, charges, now)
			return err
		})
		if err != nil {
			return err
		}
		return refusal
	})
}

// refunded is a refund: what of it went into expired lots, and what is left
// after it.
type refunded struct {
	expired   domain.Credits
	remaining domain.Credits
	at        domain.Position
}

// refund gives a job's debit back, once. A repeat says the same of it, also of a
// debit that a close left behind.
func (s *Service) refund(ctx context.Context, cause Cause, jobID, reason string) (refunded, error) {
	now, err := s.clock(ctx, cause)
	if err != nil {
		return refunded{}, err
	}
	type outcome struct {
		refunded
		leftBehind, full bool
	}
	out, written, err := execute(ctx, s.ledgers, cause, domain.CreditsStream(cause.AccountID),
		func(st credits.State, out *outcome) (events []domain.Event, err error) {
			out.leftBehind, out.full = st.LeftBehind(jobID), s.isFull(cause.AccountID, st)
			if !out.leftBehind {
				events, err = credits.DecideRefund(st, jobID, reason, now)
			}
			out.expired, out.remaining = st.Lost(jobID, now), balanceAfter(st, events, now)
			return events, err
		})
	if err == nil && out.leftBehind {
		var past *credits.Debit
		switch past, err = s.past(ctx, cause.AccountID, jobID); {
		case err != nil:
		case past == nil || !past.Refunded:
			err = domain.NotFound("debit")
		default:
			out.expired = past.Expired
		}
	}
	if out.full {
		s.closeSoon(cause)
	}
	out.at = written.Position
	return out.refunded, err
}

// wouldExpire is what of a job's refund would go into expired lots now. Whoever
// ends a job asks before, because the job's end is announced before the refund.
func (s *Service) wouldExpire(ctx context.Context, cause Cause, jobID string) (domain.Credits, error) {
	now, err := s.clock(ctx, cause)
	if err != nil {
		return 0, err
	}
	return read(ctx, s.ledgers, domain.CreditsStream(cause.AccountID), func(st credits.State) domain.Credits {
		return st.Lost(jobID, now)
	})
}

// foretold are the events that end a job, with what its refund will lose.
func foretold(events []domain.Event, expired domain.Credits) []domain.Event {
	for _, e := range events {
		switch e := e.(type) {
		case *job.Cancelled:
			e.RefundExpired = expired
		case *job.Failed:
			e.RefundExpired = expired
		case *job.SLAMissed:
			if !e.Requeued {
				e.RefundExpired = expired
			}
		}
	}
	return events
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
	type outcome struct {
		available domain.Credits
		full      bool
	}
	out, written, err := execute(ctx, s.ledgers, cause, domain.CreditsStream(cause.AccountID),
		func(st credits.State, out *outcome) ([]domain.Event, error) {
			events, err := decide(st, now)
			out.available, out.full = balanceAfter(st, events, now), s.isFull(cause.AccountID, st)
			return events, err
		})
	if out.full {
		s.closeSoon(cause)
	}
	return out.available, written.Position, err
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
	case *credits.LowSet:
		return e.BalanceAfter
	case *credits.Closed:
		return e.BalanceAfter
	}
	return st.Available(now)
}

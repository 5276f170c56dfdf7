package money

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

// Ledger runs commands on the accounts' ledgers. It may be used by many goroutines.
// All exported fields but CloseFailed are required.
type Ledger struct {
	Log domain.Log
	// Now is the service's clock, Clock an account's.
	Now   func() time.Time
	Clock func(context.Context, domain.Cause) (time.Time, error)
	// Ended picks those of the account's jobs that may have ended.
	Ended   func(ctx context.Context, accountID string, jobIDs []string) ([]string, error)
	Ledgers *repository.Repository[credits.State]
	Jobs    *repository.Repository[job.State]
	// CloseEvery is the number of events after which a ledger is closed.
	CloseEvery int
	// CloseFailed gets the reason why a ledger could not be closed after a command. The
	// command is not affected: the ledger stays long, and costs memory and time.
	CloseFailed func(accountID string, err error)
	books       books
}

// Debit charges the account for jobs, all or none and each once, in one append. remaining
// is the available amount after it.
func (l *Ledger) Debit(ctx context.Context, cause domain.Cause, charges ...credits.Charge) (remaining domain.Credits, err error) {
	err = l.charge(ctx, cause, charges, func(charges []credits.Charge) (err error) {
		remaining, _, err = l.Execute(ctx, cause, func(st credits.State, now time.Time) ([]domain.Event, error) {
			return credits.DecideDebits(st, charges, now)
		})
		return err
	})
	return remaining, err
}

// CheckFunds fails as debits would, and writes nothing. A command that has
// settings to write asks first, so that a want of credits leaves no trace.
func (l *Ledger) CheckFunds(ctx context.Context, cause domain.Cause, charges ...credits.Charge) error {
	now, err := l.Clock(ctx, cause)
	if err != nil {
		return err
	}
	return l.charge(ctx, cause, charges, func(charges []credits.Charge) error {
		refusal, err := repository.Read(ctx, l.Ledgers, domain.CreditsStream(cause.AccountID), func(st credits.State) error {
			_, err := credits.DecideDebits(st, charges, now)
			return err
		})
		if err != nil {
			return err
		}
		return refusal
	})
}

// Refund is a refund. Expired is its part for expired lots; Remaining is the available
// amount after it.
type Refund struct {
	Expired   domain.Credits
	Remaining domain.Credits
	At        domain.Position
}

// Refund refunds a job's debit, once. A repeat gives the same answer, also for a debit
// that a close left behind.
func (l *Ledger) Refund(ctx context.Context, cause domain.Cause, jobID, reason string) (Refund, error) {
	now, err := l.Clock(ctx, cause)
	if err != nil {
		return Refund{}, err
	}
	type outcome struct {
		Refund
		leftBehind, full bool
	}
	out, written, err := repository.Execute(ctx, l.Ledgers, cause, domain.CreditsStream(cause.AccountID),
		func(st credits.State) ([]domain.Event, error) {
			if st.LeftBehind(jobID) {
				return nil, nil
			}
			return credits.DecideRefund(st, jobID, reason, now)
		},
		func(st credits.State) outcome {
			back := Refund{Expired: st.Lost(jobID, now), Remaining: st.Available(now)}
			return outcome{back, st.LeftBehind(jobID), l.recordBook(cause.AccountID, st)}
		})
	if err == nil && out.leftBehind {
		var past *credits.Debit
		switch past, err = l.PastDebit(ctx, cause.AccountID, jobID); {
		case err != nil:
		case past == nil || !past.Refunded:
			err = domain.NotFound("debit")
		default:
			out.Expired = past.Expired
		}
	}
	if out.full {
		l.closeSoon(cause)
	}
	out.At = written
	return out.Refund, err
}

// ExpiringRefund is the part of a job's refund that would go into expired lots now. A
// command that ends a job asks earlier, because the job's end is announced before the
// refund.
func (l *Ledger) ExpiringRefund(ctx context.Context, cause domain.Cause, jobID string) (domain.Credits, error) {
	now, err := l.Clock(ctx, cause)
	if err != nil {
		return 0, err
	}
	return repository.Read(ctx, l.Ledgers, domain.CreditsStream(cause.AccountID), func(st credits.State) domain.Credits {
		return st.Lost(jobID, now)
	})
}

// Execute runs a command on the account's ledger and gives the available amount after it.
func (l *Ledger) Execute(
	ctx context.Context, cause domain.Cause, decide func(credits.State, time.Time) ([]domain.Event, error),
) (domain.Credits, domain.Position, error) {
	now, err := l.Clock(ctx, cause)
	if err != nil {
		return 0, domain.Position{}, err
	}
	type outcome struct {
		available domain.Credits
		full      bool
	}
	out, written, err := repository.Execute(ctx, l.Ledgers, cause, domain.CreditsStream(cause.AccountID),
		func(st credits.State) ([]domain.Event, error) { return decide(st, now) },
		func(st credits.State) outcome { return outcome{st.Available(now), l.recordBook(cause.AccountID, st)} })
	if out.full {
		l.closeSoon(cause)
	}
	return out.available, written, err
}

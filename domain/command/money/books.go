package money

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

// A ledger is closed from time to time (docs/decisions.md, "Closing the books"). So the
// cost of its first command after a restart, and its memory, don't grow with it.

const (
	// CloseEvery is the default number of events after which a ledger is closed: folding
	// that many takes some milliseconds.
	CloseEvery = 250
	// booksSeen bounds the ledgers with a remembered length.
	booksSeen = 1024
	// askedAtOnce bounds how many jobs a close reads from the log at a time.
	askedAtOnce = 4
	// closeRetry is the time after a failed close in which the account's commands start
	// no other close.
	closeRetry = time.Minute
)

// books are the closes under way, one an account at most.
type books struct {
	mu      sync.Mutex
	closing map[string]context.CancelFunc
	failed  map[string]time.Time    // when the account's last close failed, if it did
	seen    map[string]credits.Book // by account, as its last command found it
	busy    sync.WaitGroup
}

// recordBook says whether it is time to close the book, and notes how long it is.
func (l *Ledger) recordBook(accountID string, st credits.State) bool {
	b := &l.books
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil || len(b.seen) >= booksSeen {
		b.seen = map[string]credits.Book{}
	}
	b.seen[accountID] = st.Book()
	return st.Full(l.CloseEvery)
}

// LongestBooks gives the maximum of each number over all open books. OpenedAt is that of
// the oldest book, among ledgers that were closed before.
func (l *Ledger) LongestBooks() credits.Book {
	l.books.mu.Lock()
	defer l.books.mu.Unlock()
	var most credits.Book
	for _, b := range l.books.seen {
		most.Events, most.Debits = max(most.Events, b.Events), max(most.Debits, b.Debits)
		most.Lots, most.Closes = max(most.Lots, b.Lots), max(most.Closes, b.Closes)
		if !b.OpenedAt.IsZero() && (most.OpenedAt.IsZero() || b.OpenedAt.Before(most.OpenedAt)) {
			most.OpenedAt = b.OpenedAt
		}
	}
	return most
}

// startClose returns nil while a close of that account is under way, or has just failed.
func (b *books) startClose(accountID string, now time.Time) context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, failed := b.failed[accountID]
	if b.closing[accountID] != nil || failed && now.Sub(at).Abs() < closeRetry {
		return nil
	}
	if b.closing == nil {
		b.closing, b.failed = map[string]context.CancelFunc{}, map[string]time.Time{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.closing[accountID] = cancel
	return ctx
}

func (b *books) endClose(accountID string, now time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if delete(b.failed, accountID); err != nil {
		b.failed[accountID] = now
	}
	b.closing[accountID]()
	delete(b.closing, accountID)
}

// StopCloses ends the closes under way, so that a stop does not wait for a long one.
func (l *Ledger) StopCloses() {
	b := &l.books
	b.mu.Lock()
	for _, cancel := range b.closing {
		cancel()
	}
	b.mu.Unlock()
	b.busy.Wait()
}

// closeSoon closes the account's book behind the command that found it full. After a
// crash, the next command that finds the book full begins the close again. A close that
// fails is reported, and begun again a minute later at the earliest.
func (l *Ledger) closeSoon(of domain.Cause) {
	ctx := l.books.startClose(of.AccountID, l.Now())
	if ctx == nil {
		return
	}
	l.books.busy.Go(func() {
		_, err := l.CloseBook(ctx, domain.Cause{
			CommandID: domain.NewCommandID(), CorrelationID: of.CorrelationID, Trace: of.Trace,
			Actor: "policy:close_book", AccountID: of.AccountID,
		}, l.CloseEvery)
		if ctx.Err() != nil {
			err = nil // stopped
		}
		l.books.endClose(of.AccountID, l.Now(), err)
		if err != nil && l.CloseFailed != nil {
			l.CloseFailed(of.AccountID, err)
		}
	})
}

// CloseBook closes a book that is full after so many events; 0: however short it is. It first
// reads from the log which jobs have ended; an end is final, so the answer stays true. If two
// processes close at once, one finds an empty book.
func (l *Ledger) CloseBook(ctx context.Context, cause domain.Cause, every int) (domain.Position, error) {
	stream := domain.CreditsStream(cause.AccountID)
	type unsettled struct {
		full           bool
		refunded, open []string
	}
	ask, err := repository.Read(ctx, l.Ledgers, stream, func(st credits.State) (u unsettled) {
		if u.full = every == 0 || st.Full(every); u.full {
			u.refunded, u.open = st.Unsettled()
		}
		return u
	})
	if err != nil || !ask.full {
		return domain.Position{}, err
	}
	ended, err := l.Ended(ctx, cause.AccountID, ask.open)
	if err != nil {
		return domain.Position{}, domain.Unavailable(err)
	}
	settled, err := l.settled(ctx, cause.AccountID, append(ended, ask.refunded...))
	if err != nil {
		return domain.Position{}, err
	}
	return repository.Decide(ctx, l.Ledgers, cause, stream, func(st credits.State) ([]domain.Event, error) {
		if every > 0 && !st.Full(every) {
			return nil, nil // another process was first
		}
		return credits.DecideClose(st, settled, l.Now())
	})
}

// settled reads from the log which of the account's jobs have ended. It bypasses the
// cache, since these jobs are over.
func (l *Ledger) settled(ctx context.Context, accountID string, jobIDs []string) (map[string]credits.Settled, error) {
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(askedAtOnce)
	var mu sync.Mutex // guards found
	found := make(map[string]credits.Settled, len(jobIDs))
	for _, id := range jobIDs {
		asking.Go(func() error {
			d, err := l.debitInLog(ctx, accountID, id)
			switch {
			case err != nil:
				return domain.Unavailable(err)
			case d != nil:
				mu.Lock()
				defer mu.Unlock()
				found[id] = credits.Settled{Completed: !d.Refunded, RefundExpired: d.Expired}
			}
			return nil
		})
	}
	return found, asking.Wait()
}

// debitInLog is PastDebit without the cache.
func (l *Ledger) debitInLog(ctx context.Context, accountID, jobID string) (*credits.Debit, error) {
	var st job.State
	err := l.Log.Load(ctx, domain.JobStream(jobID), 0, func(r domain.Recorded) error {
		st = job.Evolve(st, r.Event)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return pastOf(st, accountID), nil
}

// PastDebit is the debit of a job that a close may have left behind, from the job's own
// stream. It is nil if the job has not ended: then no close left it behind.
func (l *Ledger) PastDebit(ctx context.Context, accountID, jobID string) (*credits.Debit, error) {
	return repository.Read(ctx, l.Jobs, domain.JobStream(jobID), func(st job.State) *credits.Debit { return pastOf(st, accountID) })
}

func pastOf(st job.State, accountID string) *credits.Debit {
	if st.AccountID != accountID {
		return nil
	}
	switch st.Status {
	case job.StatusCompleted:
		return &credits.Debit{Amount: st.Price}
	case job.StatusCancelled, job.StatusFailed, job.StatusVoided:
		return &credits.Debit{Amount: st.Price, Refunded: true, Expired: st.RefundExpired}
	case job.StatusPending, job.StatusClaimed:
	}
	return nil
}

// charge runs decide until it is sure of all charges. For the jobs that decide is unsure
// of, charge reads the log, and runs decide again. It reads the ledger before the log, so
// a job that has not ended in the log was not left behind by any close in the ledger.
func (l *Ledger) charge(ctx context.Context, cause domain.Cause, charges []credits.Charge, decide func([]credits.Charge) error) error {
	charges = slices.Clone(charges)
	for i := range charges {
		charges[i].AskedAt = cause.AskedAt
	}
	for {
		err := decide(charges)
		var unsure *credits.UnsureError
		if !errors.As(err, &unsure) {
			return err
		}
		charges = slices.Clone(charges) // an earlier decide may still read the old slice
		for i := range charges {
			c := &charges[i]
			if c.Past, err = l.PastDebit(ctx, cause.AccountID, c.JobID); err != nil {
				return err
			}
			c.KnownTo = unsure.Closes
		}
	}
}

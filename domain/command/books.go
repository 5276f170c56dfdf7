package command

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
)

// A ledger is closed from time to time, so that its first command after a
// restart, and its place in memory, don't grow with it (docs/decisions.md,
// "Closing the books").

const (
	// closeEvery is after how many events a ledger is closed: folding as many
	// takes some milliseconds.
	closeEvery = 1000
	// askedAtOnce bounds how many jobs a close asks the log after at a time.
	askedAtOnce = 4
	// closeRetry is how long an account's commands leave its book alone after a
	// close that failed.
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

// isFull says whether it is time to close the book, and notes how long it is.
func (s *Service) isFull(accountID string, st credits.State) bool {
	b := &s.books
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil || len(b.seen) >= ledgersCached {
		b.seen = map[string]credits.Book{}
	}
	b.seen[accountID] = st.Book()
	return st.Full(s.CloseEvery)
}

// Growth is how long the streams are that this process has run commands on, in
// events by their category, and how large the ledgers' open books.
type Growth struct {
	Streams map[string]uint64
	// Book is the most of each, over all ledgers; OpenedAt is the oldest book's,
	// of those that were closed before.
	Book credits.Book
}

// Growth says what has grown.
func (s *Service) Growth() Growth {
	g := Growth{Streams: map[string]uint64{
		"account": s.accounts.longest.Load(), "checker": s.checkers.longest.Load(), "credits": s.ledgers.longest.Load(),
		"project": s.projects.longest.Load(), "job": s.jobs.longest.Load(), "host": s.hosts.longest.Load(),
		"session": s.sessions.longest.Load(), "loop": s.loops.longest.Load(), "person": s.people.longest.Load(),
	}}
	s.books.mu.Lock()
	defer s.books.mu.Unlock()
	for _, b := range s.books.seen {
		g.Book.Events, g.Book.Debits = max(g.Book.Events, b.Events), max(g.Book.Debits, b.Debits)
		g.Book.Lots, g.Book.Closes = max(g.Book.Lots, b.Lots), max(g.Book.Closes, b.Closes)
		if !b.OpenedAt.IsZero() && (g.Book.OpenedAt.IsZero() || b.OpenedAt.Before(g.Book.OpenedAt)) {
			g.Book.OpenedAt = b.OpenedAt
		}
	}
	return g
}

// begin is nil while a close of that account is under way, or has just failed.
func (b *books) begin(accountID string, now time.Time) context.Context {
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

func (b *books) end(accountID string, now time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if delete(b.failed, accountID); err != nil {
		b.failed[accountID] = now
	}
	b.closing[accountID]()
	delete(b.closing, accountID)
}

// stop ends the closes under way: a long one is no reason to wait.
func (b *books) stop() {
	b.mu.Lock()
	for _, cancel := range b.closing {
		cancel()
	}
	b.mu.Unlock()
	b.busy.Wait()
}

// closeSoon closes the account's book behind the command that found it full. A
// close that dies with the process is begun again by the next command that finds
// it so; one that fails is told, and begun again a minute later.
func (s *Service) closeSoon(of Cause) {
	ctx := s.books.begin(of.AccountID, s.Now())
	if ctx == nil {
		return
	}
	s.books.busy.Go(func() {
		_, err := s.closeBook(ctx, Cause{
			CommandID: NewCommandID(), CorrelationID: of.CorrelationID, Actor: "policy:close_book", AccountID: of.AccountID,
		}, s.CloseEvery)
		if ctx.Err() != nil {
			err = nil // stopped
		}
		s.books.end(of.AccountID, s.Now(), err)
		if err != nil && s.CloseFailed != nil {
			s.CloseFailed(of.AccountID, err)
		}
	})
}

// CloseBook closes the account's book, however short it is. It changes nothing
// that anybody is answered.
func (s *Service) CloseBook(ctx context.Context, cause Cause) (domain.Position, error) {
	return s.closeBook(ctx, cause, 0)
}

// closeBook closes a book that is full: what has ended is asked of the log
// first, since an end stays one. Of two processes at it, one finds an empty book.
func (s *Service) closeBook(ctx context.Context, cause Cause, every int) (domain.Position, error) {
	stream := domain.CreditsStream(cause.AccountID)
	type unsettled struct {
		full           bool
		refunded, open []string
	}
	ask, err := read(ctx, s.ledgers, stream, func(st credits.State) (u unsettled) {
		if u.full = every == 0 || st.Full(every); u.full {
			u.refunded, u.open = st.Unsettled()
		}
		return u
	})
	if err != nil || !ask.full {
		return domain.Position{}, err
	}
	ended, err := s.Reads.Ended(ctx, cause.AccountID, ask.open)
	if err != nil {
		return domain.Position{}, domain.Unavailable(err)
	}
	settled, err := s.settled(ctx, cause.AccountID, append(ended, ask.refunded...))
	if err != nil {
		return domain.Position{}, err
	}
	_, written, err := execute(ctx, s.ledgers, cause, stream, func(st credits.State, _ *none) ([]domain.Event, error) {
		if every > 0 && !st.Full(every) {
			return nil, nil // another process was first
		}
		return credits.DecideClose(st, settled, s.Now())
	})
	return written.Position, err
}

// settled asks the log which of the account's jobs have ended, past the cache:
// these jobs are over.
func (s *Service) settled(ctx context.Context, accountID string, jobIDs []string) (map[string]credits.Settled, error) {
	var (
		mu    sync.Mutex
		found = make(map[string]credits.Settled, len(jobIDs))
	)
	err := together(min(askedAtOnce, len(jobIDs)), func(worker int) error {
		for i := worker; i < len(jobIDs); i += askedAtOnce {
			var st job.State
			err := s.Log.Load(ctx, domain.JobStream(jobIDs[i]), 0, func(r domain.Recorded) error {
				st = job.Evolve(st, r.Event)
				return nil
			})
			if err != nil {
				return domain.Unavailable(err)
			}
			if d := pastOf(st, accountID); d != nil {
				mu.Lock()
				found[jobIDs[i]] = credits.Settled{Completed: !d.Refunded, RefundExpired: d.Expired}
				mu.Unlock()
			}
		}
		return nil
	})
	return found, err
}

// past is the debit of a job that a close may have left behind, as the job's own
// stream tells it; nil if the job has not ended, and so was not left behind.
func (s *Service) past(ctx context.Context, accountID, jobID string) (*credits.Debit, error) {
	return read(ctx, s.jobs, domain.JobStream(jobID), func(st job.State) *credits.Debit { return pastOf(st, accountID) })
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

// charge runs what decides the charges, and asks the log after the jobs that it
// is unsure of, until it is not. Whoever asks the log has read the ledger before:
// a job that has not ended by then was not left behind by any close up to there.
func (s *Service) charge(ctx context.Context, cause Cause, charges []credits.Charge, decide func([]credits.Charge) error) error {
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
		charges = slices.Clone(charges) // the ledger may still be at the ones before
		for i := range charges {
			c := &charges[i]
			if c.Past, err = s.past(ctx, cause.AccountID, c.JobID); err != nil {
				return err
			}
			c.KnownTo = unsure.Closes
		}
	}
}

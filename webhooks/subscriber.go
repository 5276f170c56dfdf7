package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore"
)

const (
	// pageSize bounds one transaction.
	pageSize = 500
	// lazyCommit is how long pages without news for any endpoint may go
	// uncommitted: they are cheap to read again.
	lazyCommit = time.Second
	// stoppedLook is how often a stopped subscriber looks for an operator's
	// word.
	stoppedLook = time.Second
)

// Feed is the tail of the log.
type Feed interface {
	Next(ctx context.Context, after eventstore.Checkpoint, maxEvents int) (eventstore.Page, error)
}

// Subscriber turns events into deliveries. One works at a time; others, in any
// process, stand by. It never goes back behind its checkpoint, so nothing is
// announced twice, whatever is rebuilt elsewhere.
type Subscriber struct {
	db    *sqlx.DB
	feed  Feed
	jobs  *book
	cfg   Config
	log   logrus.FieldLogger
	owner uuid.UUID

	committed eventstore.Checkpoint // as the row has it
	read      eventstore.Checkpoint // committed, and pages behind it without news
	at        time.Time             // of the last commit: the lease counts from there

	// urls holds the projects that have a URL, and maybe some that had one: the
	// events of all others are not worth a look. Only the owner of the lease
	// changes URLs, so it stays true as long as the checkpoint is where we left
	// it.
	urls map[string]bool
}

// NewSubscriber prepares a subscriber; Run starts it. log is asked about jobs
// that were submitted long ago.
func NewSubscriber(db *sqlx.DB, feed Feed, log domain.Log, cfg Config) *Subscriber {
	cfg = cfg.withDefaults()
	return &Subscriber{
		db:    db,
		feed:  feed,
		jobs:  newBook(log),
		cfg:   cfg,
		log:   cfg.Log,
		owner: uuid.New(),
	}
}

// errNotOwner says that another subscriber has the lease.
var errNotOwner = errors.New("another subscriber has taken over")

// Run follows the log until the context ends, through outages of log and
// database.
func (s *Subscriber) Run(ctx context.Context) error {
	defer s.release(ctx)
	for ctx.Err() == nil {
		err := s.reign(ctx)
		wait := faultWait
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errNotOwner):
			wait = s.cfg.SubscriberLease / 3
			s.log.Debug("standing by: another webhook subscriber works")
		default:
			s.log.WithError(err).Warn("the webhook subscriber is interrupted")
		}
		pause(ctx, wait)
	}
	return nil
}

// reign takes the lease and works until something goes wrong.
func (s *Subscriber) reign(ctx context.Context) error {
	live, err := s.take(ctx)
	for err == nil && ctx.Err() == nil {
		if live {
			err = s.step(ctx)
		} else {
			pause(ctx, stoppedLook)
		}
		switch {
		case err != nil:
		case !live || time.Since(s.at) > s.cfg.SubscriberLease/3:
			live, err = s.renew(ctx)
		}
	}
	return err
}

// renew keeps the lease; what was read without news is committed with it.
func (s *Subscriber) renew(ctx context.Context) (live bool, err error) {
	if s.read != s.committed {
		if err := s.commit(ctx, work{}, s.read, 0); err != nil {
			return false, err
		}
		return true, nil
	}
	return s.take(ctx)
}

// step reads one page and commits what it leads to. An event that nothing can
// be made of stops the line right before it.
func (s *Subscriber) step(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, s.cfg.SubscriberLease/3)
	defer cancel()
	page, err := s.feed.Next(within, s.read, pageSize)
	var undecoded *eventstore.DecodeError
	switch {
	case err == nil:
	case within.Err() != nil:
		return nil // nothing came
	case errors.As(err, &undecoded):
		return s.stop(ctx, poison{
			category: "decode", stream: undecoded.Stream, eventType: undecoded.Type,
			position: undecoded.Position, err: undecoded.Err,
		})
	default:
		return fmt.Errorf("read the log: %w", err)
	}

	w, reached, bad, err := s.prepare(ctx, page)
	if err != nil {
		return err
	}
	to := s.read
	if reached {
		to = eventstore.At(page.Next)
	} else if len(w.passed) > 0 {
		to = eventstore.At(w.passed[len(w.passed)-1].Position)
	}
	if w.idle() && bad == nil && time.Since(s.at) < min(lazyCommit, s.cfg.SubscriberLease/3) {
		s.read = to
		return nil
	}
	if to != s.committed {
		if err := s.commit(ctx, w, to, len(w.passed)); err != nil {
			return err
		}
	}
	if bad != nil {
		return s.stop(ctx, *bad)
	}
	return nil
}

// takeLease succeeds for the owner, and for others once the lease ran out.
const takeLease = `
UPDATE webhooks.checkpoint
SET owner = $1, lease_until = now() + $2 * interval '1 millisecond'
WHERE name = 'webhooks' AND (owner = $1 OR lease_until < now())
RETURNING started, commit_position, prepare_position, status = 'live' AS live`

// take gets or keeps the lease and reads the checkpoint. live is false while
// the line is stopped.
func (s *Subscriber) take(ctx context.Context) (live bool, err error) {
	var rows []struct {
		Started bool  `db:"started"`
		Commit  int64 `db:"commit_position"`
		Prepare int64 `db:"prepare_position"`
		Live    bool  `db:"live"`
	}
	if err := s.db.SelectContext(ctx, &rows, takeLease, s.owner, s.cfg.SubscriberLease.Milliseconds()); err != nil {
		return false, fmt.Errorf("take the subscriber's lease: %w", err)
	}
	if len(rows) == 0 {
		return false, errNotOwner
	}
	r := rows[0]
	at := eventstore.Checkpoint{Start: true}
	if r.Started {
		at = eventstore.At(position(r.Commit, r.Prepare))
	}
	if s.urls == nil || at != s.committed {
		if err := s.loadURLs(ctx); err != nil {
			return false, err
		}
	}
	s.committed, s.read, s.at = at, at, time.Now()
	return r.Live, nil
}

const listURLs = `
SELECT project_id
FROM webhooks.endpoints
WHERE url <> ''`

func (s *Subscriber) loadURLs(ctx context.Context) error {
	var ids []string
	if err := s.db.SelectContext(ctx, &ids, listURLs); err != nil {
		return fmt.Errorf("list endpoints: %w", err)
	}
	s.urls = make(map[string]bool, len(ids))
	for _, id := range ids {
		s.urls[id] = true
	}
	return nil
}

const releaseLease = `
UPDATE webhooks.checkpoint
SET lease_until = now()
WHERE name = 'webhooks' AND owner = $1`

// release lets the next one start at once. Without it they wait for the lease
// to run out.
func (s *Subscriber) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Drain)
	defer cancel()
	if _, err := s.db.ExecContext(ctx, releaseLease, s.owner); err != nil {
		s.log.WithError(err).Debug("the webhook subscriber's lease is left to run out")
	}
}

// pause waits, or less when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/internal/backoff"
	"humanqa/internal/pgpool"
)

const (
	// sharedTime bounds a shared transaction: so long may one rider hold up the
	// others, once in apartTime.
	sharedTime = time.Second
	// apartTime is how long who was to blame for a failed transaction goes by itself.
	apartTime = time.Minute
	// fewer is by how much the convoy's pages are smaller than a runner's own: of
	// larger batches what they share costs little, and each by itself writes them at
	// the same time as the others.
	fewer = 4
)

// convoy does the work of the runners of one process that have caught up, and so
// stand at the same place: it reads a page once for all, and writes their rows and
// checkpoints in one transaction (package documentation, "Together").
//
// A rider's lease and all that its runner knows belong to the convoy's goroutine
// until the rider is set down.
type convoy struct {
	db       *sqlx.DB
	source   Source
	limits   Limits
	arrivals *arrivals
	notifies *atomic.Bool
	log      logrus.FieldLogger

	riders []*rider
	at     time.Time // of the last batch

	boarded chan struct{} // somebody waits in boarding
	mu      sync.Mutex
	ended   bool
	waiting []*rider
}

// rider is a runner whose work the convoy does.
type rider struct {
	*following
	down chan error // gets why it was set down, once
	part part
}

// part is a rider's share of a transaction.
type part struct {
	write  Write
	events int
	before lease // the counts to go back to
	took   time.Duration
}

func newConvoy(s *Supervisor) *convoy {
	return &convoy{
		db: s.db, source: s.source, limits: s.limits, arrivals: s.arrivals, notifies: &s.notifies, log: s.log,
		boarded: make(chan struct{}, 1),
	}
}

// carry does the runner's work until it has to go on by itself, which gives nil,
// or the convoy ends.
func (c *convoy) carry(f *following) error {
	r := &rider{following: f, down: make(chan error, 1)}
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return context.Canceled
	}
	c.waiting = append(c.waiting, r)
	c.mu.Unlock()
	select {
	case c.boarded <- struct{}{}:
	default: // it has been told
	}
	return <-r.down
}

// run ends with ctx, and so with the runners.
func (c *convoy) run(ctx context.Context) {
	defer c.end()
	timer := time.NewTimer(c.limits.Lease)
	defer timer.Stop()
	var ahead *lookout
	defer func() {
		if ahead != nil {
			ahead.stop()
		}
	}()
	for {
		if ahead == nil && len(c.riders) > 0 {
			ahead = c.look(ctx, c.rest())
		}
		select {
		case next := <-ahead.found():
			from := ahead.from
			ahead.cancel()
			ahead = nil
			c.take(ctx, from, next)
		case <-c.boarded:
			if ahead != nil { // who comes may stand behind what is waited for
				ahead.stop()
				ahead = nil
			}
			c.board()
		case <-timer.C:
			c.store(ctx)
		case <-ctx.Done():
			return
		}
		timer.Reset(c.pause())
	}
}

// board takes up who waits.
func (c *convoy) board() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.riders = append(c.riders, c.waiting...)
	c.waiting = nil
}

// end sets everybody down, also who comes later.
func (c *convoy) end() {
	c.board()
	c.mu.Lock()
	c.ended = true
	late := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	for _, r := range append(c.riders, late...) {
		r.down <- context.Canceled
	}
	c.riders = nil
}

// lookout reads the log for the convoy.
type lookout struct {
	from   eventstore.Checkpoint
	pages  chan read
	cancel context.CancelFunc
}

// look begins to read from where the last of the riders stands.
func (c *convoy) look(ctx context.Context, rest time.Duration) *lookout {
	from := c.riders[0].seen
	for _, r := range c.riders {
		if !atLeast(r.seen, from) {
			from = r.seen
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &lookout{from: from, pages: make(chan read, 1), cancel: cancel}
	go func() { l.pages <- c.read(ctx, from, rest) }()
	return l
}

// read gives what lies behind a place. What arrives while nobody waits for it is not
// applied at once: a command's next event may come right behind it.
func (c *convoy) read(ctx context.Context, from eventstore.Checkpoint, rest time.Duration) read {
	if err := backoff.Wait(ctx, rest); err != nil {
		return read{err: err}
	}
	page, err := c.source.Next(ctx, from, c.size())
	until := time.Now().Add(c.limits.Gather)
	for err == nil && page.Live && time.Now().Before(until) {
		wanted, asked := c.arrivals.wanted(page.Next)
		if wanted || c.notifies.Load() || !c.more(ctx, page.Next, until, asked) {
			break
		}
		page, err = c.source.Next(ctx, from, c.size())
	}
	return read{page, err}
}

// size is how many events the convoy writes at once.
func (c *convoy) size() int { return max(c.limits.Live/fewer, 1) }

// more waits until something lies behind the position, or somebody asks for something;
// it gives up at a time.
func (c *convoy) more(ctx context.Context, behind domain.Position, until time.Time, asked <-chan struct{}) bool {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	go func() {
		select {
		case <-asked:
			cancel()
		case <-ctx.Done():
		}
	}()
	_, _ = c.source.Next(ctx, eventstore.At(behind), 1) // whoever reads the page meets the error
	return time.Now().Before(until)
}

// found gives nothing while nobody looks out.
func (l *lookout) found() <-chan read {
	if l == nil {
		return nil
	}
	return l.pages
}

// stop ends it; what it has found is read again.
func (l *lookout) stop() {
	l.cancel()
	<-l.pages
}

// rest lets a busy log gather: see following.rest.
func (c *convoy) rest() time.Duration { return c.limits.Gather - time.Since(c.at) }

// take deals with what was read from a place on.
func (c *convoy) take(ctx context.Context, from eventstore.Checkpoint, next read) {
	if ctx.Err() != nil {
		return
	}
	if next.err != nil || !next.page.Live {
		// What cannot be read each deals with by itself. So it does while the log grows
		// faster: not only for a page, or they would come and go.
		for _, r := range c.riders {
			r.apart = time.Now().Add(storeBusy * c.limits.Store)
		}
		c.setDown(c.riders)
		return
	}
	to := eventstore.At(next.page.Next)
	var writing, passing []*rider
	for _, r := range c.riders {
		if !atLeast(r.seen, from) || atLeast(r.seen, to) {
			continue // it came while this was read, or has been there
		}
		r.part = part{before: *r.lease}
		batch := r.choose(eventsAfter(next.page.Events, r.seen))
		write, _, _ := r.prepare(ctx, batch) // a Projector's: nothing that could fail
		switch {
		case len(batch) > 0:
			r.part.write, r.part.events = write, len(batch)
			writing = append(writing, r)
		default:
			passing = append(passing, r)
		}
	}
	for _, r := range passing {
		r.seen = to
		c.arrivals.advance(r.Name, to)
	}
	c.commit(ctx, to, slices.Concat(writing, c.overdue(passing, storeBusy*c.limits.Store)))
	if len(writing) > 0 {
		c.at = time.Now()
	}
}

// eventsAfter are those that lie behind a place.
func eventsAfter(events []domain.Recorded, at eventstore.Checkpoint) []domain.Recorded {
	first := slices.IndexFunc(events, func(e domain.Recorded) bool { return !reached(at, e.Position) })
	if first < 0 {
		return nil
	}
	return events[first:]
}

// overdue are the riders whose checkpoint was not stored for some time.
func (c *convoy) overdue(riders []*rider, since time.Duration) (late []*rider) {
	for _, r := range riders {
		if time.Since(r.kept) >= since {
			late = append(late, r)
		}
	}
	return late
}

// pause is how long the checkpoints, and the leases with them, may stay as they are.
func (c *convoy) pause() time.Duration {
	if slices.ContainsFunc(c.riders, func(r *rider) bool { return r.seen != r.stored }) {
		return c.limits.Store
	}
	return c.limits.Lease / 3
}

// store writes down where everybody stands, which renews the leases. Riders at
// different places, which are rare, take a statement each.
func (c *convoy) store(ctx context.Context) {
	left := slices.Clone(c.riders)
	for len(left) > 0 && ctx.Err() == nil {
		to := left[0].seen
		var here, others []*rider
		for _, r := range left {
			if r.seen == to {
				r.part = part{before: *r.lease}
				here = append(here, r)
			} else {
				others = append(others, r)
			}
		}
		c.commit(ctx, to, here)
		left = others
	}
}

// commit moves the checkpoints of riders to a place, with the rows of those that
// write. If that fails nothing is written, and all of them go on by themselves,
// who is to blame for a while.
func (c *convoy) commit(ctx context.Context, to eventstore.Checkpoint, riders []*rider) {
	if len(riders) == 0 {
		return
	}
	blamed, err := c.write(ctx, to, riders)
	if err != nil {
		for _, r := range riders {
			*r.lease = r.part.before
		}
		if blamed != nil {
			blamed.apart = time.Now().Add(apartTime)
		}
		if ctx.Err() == nil {
			c.tell(blamed, err)
			c.setDown(riders)
		}
		return
	}
	now := time.Now()
	for _, r := range riders {
		r.applied += r.handled + int64(r.part.events)
		r.advanced(to)
		r.kept = now
		if r.part.write != nil {
			r.at = now
		}
		c.arrivals.advance(r.Name, to)
	}
}

// tell says why they part: what follows from it each of them says itself.
func (c *convoy) tell(blamed *rider, err error) {
	log := c.log.WithError(err)
	if blamed != nil {
		log = log.WithField("consumer", blamed.Name)
	}
	log.Debug("a shared transaction failed, each of its consumers goes on by itself")
}

// errMissing says that a checkpoint is not where, or not whose, its rider
// believes, or that somebody has it locked.
var errMissing = errors.New("a checkpoint of the shared transaction cannot be moved")

// write is the transaction. Who is to blame for its failure may be unknown: nil.
func (c *convoy) write(ctx context.Context, to eventstore.Checkpoint, riders []*rider) (blamed *rider, err error) {
	ctx, cancel := context.WithTimeout(ctx, sharedTime)
	defer cancel()
	if !slices.ContainsFunc(riders, func(r *rider) bool { return r.part.write != nil }) {
		return c.advance(ctx, c.db, to, riders) // one statement is a transaction
	}
	err = pgpool.InTx(ctx, c.db, func(tx *sqlx.Tx) (err error) {
		if blamed, err = c.advance(ctx, tx, to, riders); err != nil {
			return err
		}
		for _, r := range riders {
			if r.part.write == nil {
				continue
			}
			began := time.Now()
			err := r.part.write(ctx, tx)
			r.part.took = time.Since(began)
			if err != nil {
				blamed = r
				return err
			}
		}
		return nil
	})
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		blamed = slices.MaxFunc(riders, func(a, b *rider) int { return int(a.part.took - b.part.took) })
	}
	return blamed, err
}

// Each moves under the conditions of advanceSQL. Nobody is waited for: a row that is
// locked, as those of a generation that is being replaced are, would hold up all.
const advanceAllSQL = `
WITH mine AS MATERIALIZED (
    SELECT c.name, c.generation, m.applied, m.unknown, m.skipped
    FROM unnest($1::text[], $2::integer[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[])
        AS m (name, generation, owner, epoch, commit_position, prepare_position, applied, unknown, skipped)
    JOIN projection_checkpoints c USING (name, generation, owner, epoch, commit_position, prepare_position)
    FOR NO KEY UPDATE OF c SKIP LOCKED
)
UPDATE projection_checkpoints c
SET commit_position = $10,
    prepare_position = $11,
    applied = c.applied + mine.applied,
    unknown = c.unknown + mine.unknown,
    skipped = c.skipped + mine.skipped,
    lease_until = clock_timestamp() + make_interval(secs => $12),
    updated_at = clock_timestamp()
FROM mine
WHERE c.name = mine.name
  AND c.generation = mine.generation
  AND set_config('synchronous_commit', 'off', true) = 'off'
  AND CASE WHEN $13 THEN pg_notify('` + checkpointsChannel + `', '') IS NOT NULL ELSE true END
RETURNING c.name`

// advance moves the riders' checkpoints, all of them or an error.
func (c *convoy) advance(ctx context.Context, q sqlx.QueryerContext, to eventstore.Checkpoint, riders []*rider) (missing *rider, err error) {
	var (
		names, owners                                                 []string
		numbers, epochs, commits, prepares, applied, unknown, skipped []int64
	)
	for _, r := range riders {
		commit, prepare := columns(r.stored)
		names, owners = append(names, r.Name), append(owners, r.lease.owner)
		numbers, epochs = append(numbers, int64(r.Number)), append(epochs, r.FencingToken)
		commits, prepares = append(commits, commit), append(prepares, prepare)
		applied = append(applied, r.handled+int64(r.part.events))
		unknown, skipped = append(unknown, r.unknown), append(skipped, r.skipped)
	}
	commit, prepare := columns(to)
	var moved []string
	err = sqlx.SelectContext(ctx, q, &moved, advanceAllSQL, pq.Array(names), pq.Array(numbers), pq.Array(owners), pq.Array(epochs),
		pq.Array(commits), pq.Array(prepares), pq.Array(applied), pq.Array(unknown), pq.Array(skipped),
		commit, prepare, c.limits.Lease.Seconds(), c.notifies.Load())
	if err != nil {
		return nil, fmt.Errorf("move the checkpoints: %w", err)
	}
	for _, r := range riders {
		if !slices.Contains(moved, r.Name) {
			return r, errMissing
		}
	}
	return nil, nil
}

// setDown has riders go on by themselves, until each has caught up again.
func (c *convoy) setDown(riders []*rider) {
	leaving := slices.Clone(riders)
	c.riders = slices.DeleteFunc(c.riders, func(r *rider) bool { return slices.Contains(leaving, r) })
	for _, r := range leaving {
		r.down <- nil
	}
}

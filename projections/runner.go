package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore"
)

// limits are the sizes and times of the runners; tests shorten them.
type limits struct {
	live, rebuild int           // events in a page
	lease         time.Duration // how long a silent owner keeps a projection
	standBy       time.Duration // how often a lease that another has is asked for, and orders are looked for
	store         time.Duration // how long a checkpoint may be ahead in memory
	gather        time.Duration // the least time between two batches of a live projection
	backoff       time.Duration // the first pause after a transient failure
	maxBackoff    time.Duration
	retired       time.Duration // how long a replaced generation is kept
	report        time.Duration // how often a build that nobody watches tells of itself
}

func defaultLimits() limits {
	return limits{
		live: 500, rebuild: 2000,
		lease: 15 * time.Second, standBy: 250 * time.Millisecond, store: 100 * time.Millisecond,
		gather:  5 * time.Millisecond,
		backoff: 50 * time.Millisecond, maxBackoff: 5 * time.Second,
		retired: time.Minute, report: 5 * time.Second,
	}
}

// errStopped says that the line stopped at a poison event, and that this is
// recorded.
var errStopped = errors.New("the projection stopped")

// runner advances one generation while it has the lease, and stands by while
// it has not.
type runner struct {
	db        *sqlx.DB
	source    Source
	log       logrus.FieldLogger
	arrivals  *arrivals
	limits    limits
	projector Projector
	handles   map[string]bool
	owner     string
	target    generation // which generation; its state is read anew with every lease
}

// run ends with ctx, or when the generation was replaced or removed.
func (r *runner) run(ctx context.Context) {
	wait := r.limits.backoff
	for ctx.Err() == nil {
		progressed, err := r.hold(ctx)
		pause := r.limits.standBy
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errGone):
			return
		case err == nil, errors.Is(err, errNotOwner), errors.Is(err, errStopped):
			wait = r.limits.backoff
		default:
			if progressed {
				wait = r.limits.backoff
			}
			pause = wait
			wait = min(2*wait, r.limits.maxBackoff)
			r.log.WithError(err).WithField("again_in", pause.String()).Warn("the projection ran into trouble, trying again")
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// takeTime bounds the taking of a lease.
const takeTime = 2 * time.Second

// errGone says that the generation was replaced or removed.
var errGone = errors.New("the generation is gone")

// hold takes the lease, if it can be had, and follows the log until it loses it.
func (r *runner) hold(ctx context.Context) (progressed bool, err error) {
	// Not cut off by a stop: a lease that was taken is always given back.
	taking, done := context.WithTimeout(context.WithoutCancel(ctx), takeTime)
	l, err := acquire(taking, r.db, r.target, r.owner, r.limits.lease)
	done()
	if err != nil {
		return false, err
	}
	if l == nil {
		g, exists, err := getGeneration(ctx, r.db, r.target.Name, r.target.Number)
		if err == nil && (!exists || g.State == Retired) {
			err = errGone
		}
		return false, err
	}
	f := &following{runner: r, lease: l}
	if l.Serving {
		f.serve()
	}
	defer f.leave()
	before := l.stored
	err = f.follow(ctx)
	if errors.Is(err, errNotOwner) {
		r.log.Info("another runner has taken the projection over, standing by")
	}
	// Also when ctx has ended: a service that stops lets the next one start.
	farewell, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if ctx.Err() != nil && l.seen != l.stored {
		_ = f.store(farewell) // else those events are read again, which is harmless
	}
	if releaseErr := l.release(farewell, r.db); releaseErr != nil {
		r.log.WithError(releaseErr).Debug("the lease was not released and will end by itself")
	}
	return l.stored != before, err
}

// following is one tenure of the lease.
type following struct {
	*runner
	*lease
	skips   map[domain.Position]bool
	serving bool      // reported to arrivals
	applied int64     // in this tenure
	at      time.Time // of the last batch
}

// serve makes this runner's word count for those who wait.
func (f *following) serve() {
	f.serving = true
	f.arrivals.runsHere(f.Name, f.seen)
}

// leave ends that.
func (f *following) leave() {
	if f.serving {
		f.serving = false
		f.arrivals.leftHere(f.Name)
	}
}

// read is a page, or why there is none.
type read struct {
	page eventstore.Page
	err  error
}

// follow reads and applies until something is in the way.
func (f *following) follow(ctx context.Context) error {
	var err error
	if f.skips, err = loadSkips(ctx, f.db, f.Name); err != nil {
		return err
	}
	if err := f.catchUp(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	meter := newMeter(f.generation)
	report := time.NewTicker(f.limits.report)
	defer report.Stop()
	pages, reading := make(chan read), false
	defer func() {
		cancel()
		if reading {
			<-pages
		}
	}()
	timer := time.NewTimer(f.pause())
	defer timer.Stop()
	for {
		if !reading {
			reading = true
			from, size, rest := f.seen, f.pageSize(), f.rest()
			go func() {
				if err := sleep(ctx, rest); err != nil {
					pages <- read{err: err}
					return
				}
				page, err := f.source.Next(ctx, from, size)
				pages <- read{page, err}
			}()
		}
		select {
		case next := <-pages:
			reading = false
			err = f.take(ctx, next)
		case <-timer.C:
			err = f.store(ctx)
		case <-report.C:
			if f.State == Building {
				f.tell(meter.progress(f.applied, f.stored, f.source.Head()))
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if err == nil {
			err = f.catchUp(ctx)
		}
		if err != nil {
			return err
		}
		timer.Reset(f.pause())
	}
}

func (f *following) pageSize() int {
	if f.State == Building {
		return f.limits.rebuild
	}
	return f.limits.live
}

// rest lets a busy log gather into larger batches: each costs Postgres the same
// few statements, however many events it holds. After a quiet moment the first
// event is applied at once.
func (f *following) rest() time.Duration {
	if f.State == Building {
		return 0
	}
	gather := f.limits.gather
	if p, ok := f.projector.(Patient); ok {
		gather = p.Patience()
	}
	return gather - time.Since(f.at)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pause is how long the runner may wait for a page before the stored
// checkpoint, and the lease with it, has to be renewed. One that is building
// also looks whether it has caught up.
func (f *following) pause() time.Duration {
	if f.seen != f.stored || f.State == Building {
		return f.limits.store
	}
	return f.limits.lease / 3
}

// take deals with what was read.
func (f *following) take(ctx context.Context, next read) error {
	var undecodable *eventstore.DecodeError
	switch {
	case errors.As(next.err, &undecodable):
		if f.skips[undecodable.Position] {
			f.skipped++
			f.see(eventstore.At(undecodable.Position))
			return nil
		}
		return f.stop(ctx, failureAt(undecodable.Position, next.err))
	case next.err != nil:
		return fmt.Errorf("read the log: %w", next.err)
	}
	batch := f.choose(next.page.Events)
	if len(batch) == 0 {
		f.see(eventstore.At(next.page.Next))
		return nil
	}
	return f.apply(ctx, batch, next.page.Next)
}

// choose keeps the events that the projector handles and counts the others.
func (f *following) choose(events []domain.Recorded) []domain.Recorded {
	batch := make([]domain.Recorded, 0, len(events))
	for _, e := range events {
		switch {
		case f.skips[e.Position]:
			f.skipped++
		case e.Event == nil:
			f.unknown++
		case f.handles[e.Type]:
			batch = append(batch, e)
		}
	}
	return batch
}

// see moves past events that change nothing.
func (f *following) see(at eventstore.Checkpoint) {
	f.seen = at
	if f.serving {
		f.arrivals.advance(f.Name, at)
	}
}

// apply commits the batch with the checkpoint behind it. If the projector
// refuses it, its halves are tried by themselves, down to the one event that
// is to blame: what precedes that is applied, then the line stops.
func (f *following) apply(ctx context.Context, batch []domain.Recorded, next domain.Position) error {
	err := f.commit(ctx, batch, eventstore.At(next))
	switch {
	case err == nil:
		return nil
	case transient(err):
		return err
	case len(batch) == 1:
		return f.stop(ctx, failureAt(batch[0].Position, err))
	}
	half := len(batch) / 2
	if err := f.apply(ctx, batch[:half], batch[half-1].Position); err != nil {
		return err
	}
	return f.apply(ctx, batch[half:], next)
}

// commit writes rows and checkpoint in one transaction. The checkpoint comes
// first: its row lock makes a runner that lost the lease wait, and then fail
// before it writes anything.
func (f *following) commit(ctx context.Context, batch []domain.Recorded, to eventstore.Checkpoint) error {
	err := inTx(ctx, f.db, func(tx *sqlx.Tx) error {
		if err := f.advance(ctx, tx, to, len(batch), f.limits.lease); err != nil {
			return err
		}
		if len(batch) == 0 {
			return nil
		}
		return f.projector.Apply(ctx, tx, f.Schema, batch)
	})
	if err != nil {
		return err
	}
	f.advanced(to)
	if len(batch) > 0 {
		f.applied += int64(len(batch))
		f.at = time.Now()
	}
	if f.serving {
		f.arrivals.advance(f.Name, to)
	}
	return nil
}

// store writes the checkpoint where the runner stands, which also renews the
// lease.
func (f *following) store(ctx context.Context) error {
	return f.commit(ctx, nil, f.seen)
}

// catchUp lets a generation that is building go live, or take over, as soon as
// it is far enough.
func (f *following) catchUp(ctx context.Context) error {
	switch {
	case f.State != Building:
		return nil
	case f.Serving:
		if !atLeast(f.seen, headOf(f.source)) {
			return nil
		}
		f.State = Live
		return f.store(ctx)
	}
	serving, err := f.servingCheckpoint(ctx)
	if err != nil || !atLeast(f.seen, serving) {
		return err
	}
	if err := f.store(ctx); err != nil {
		return err
	}
	flipped, err := flip(ctx, f.db, f.projector, f.lease)
	if err != nil || !flipped {
		return err
	}
	f.State, f.Serving = Live, true
	f.serve()
	f.log.WithField("position", f.seen.Position.String()).Info("the new generation serves")
	return nil
}

func (f *following) tell(p Progress) {
	f.log.WithFields(logrus.Fields{
		"position": p.Position.String(), "head": p.Head.String(),
		"events_per_second": int64(p.EventsPerSecond), "eta": p.ETA.String(),
	}).Info("building")
}

const servingGenerationSQL = `
SELECT *
FROM projection_checkpoints
WHERE name = $1
  AND serving`

func (f *following) servingCheckpoint(ctx context.Context) (eventstore.Checkpoint, error) {
	var g generation
	if err := f.db.GetContext(ctx, &g, servingGenerationSQL, f.Name); err != nil {
		return eventstore.Checkpoint{}, fmt.Errorf("read the serving checkpoint of %s: %w", f.Name, err)
	}
	return g.checkpoint(), nil
}

// stop records the poison event and gives the lease back. What was seen before
// it is stored first, so that a retry starts at the event itself.
func (f *following) stop(ctx context.Context, failure Failure) error {
	if f.seen != f.stored {
		if err := f.store(ctx); err != nil {
			return err
		}
	}
	if err := f.lease.stop(ctx, f.db, failure); err != nil {
		return err
	}
	f.log.WithFields(logrus.Fields{
		"category": failure.Category, "position": failure.Position.String(), "detail": failure.Detail,
	}).Error("the projection stopped: look at the event, then `humanqa projections retry` or `skip`")
	return errStopped
}

// headOf is the log's end as far as the source knows it.
func headOf(s Source) eventstore.Checkpoint {
	head := s.Head()
	return eventstore.Checkpoint{Position: head, Start: head == domain.Position{}}
}

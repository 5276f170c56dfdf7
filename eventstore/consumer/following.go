package consumer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/internal/pgpool"
)

// following is one tenure of the lease.
type following struct {
	*runner
	*lease
	skips   map[domain.Position]bool
	aside   map[string]domain.Position // streams that wait, and from which event on
	serving bool                       // reported to arrivals
	build   *reader                    // while it is being built
	applied int64                      // in this tenure
	at      time.Time                  // of the last batch
	kept    time.Time                  // when the checkpoint was stored
	refused time.Time                  // when a flip was
	atEnd   bool                       // the last page reached the end of the log
	apart   time.Time                  // until when it goes by itself, caught up or not
	indexed bool                       // a build that has what readers need
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
	rows, err := loadAside(ctx, f.db, f.generation, false)
	if err != nil {
		return err
	}
	f.aside = byStream(rows)
	if p, ok := f.consumer.(Preparer); ok {
		if err := p.Begin(ctx); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
	}
	f.kept = time.Now()
	if err := f.catchUp(ctx); err != nil {
		return err
	}
	if err := f.tryAgain(ctx, false); err != nil { // this binary may be another one
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	meter := newMeter(f.generation)
	report := time.NewTicker(f.limits.Report)
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
	begin := func(from eventstore.Checkpoint) {
		reading = true
		go func(next func(context.Context, eventstore.Checkpoint) (eventstore.Page, error), rest time.Duration) {
			if err := f.arrivals.rest(ctx, rest, []string{f.Name}); err != nil {
				pages <- read{err: err}
				return
			}
			page, err := next(ctx, from)
			pages <- read{page, err}
		}(f.next(), f.rest())
	}
	for {
		if !reading && f.caughtUp() {
			f.atEnd = false
			if err := f.group.join(f); err != nil {
				return err
			}
		}
		if !reading {
			begin(f.seen)
		}
		select {
		case next := <-pages:
			reading = false
			if f.State == Building && next.err == nil {
				begin(eventstore.At(next.page.Next)) // while Postgres writes this one
			}
			err = f.take(ctx, next)
		case <-f.due:
			err = f.tryAgain(ctx, true)
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

// caughtUp says that the group can go on with the work: the generation serves, and
// stands at the end of the log. Before its first event nobody does.
func (f *following) caughtUp() bool {
	if f.group == nil || f.State != Live || !f.serving || len(f.due) > 0 || time.Now().Before(f.apart) {
		return false
	}
	head := headOf(f.source)
	return f.atEnd || !head.Start && atLeast(f.seen, head)
}

// next is where the following page comes from: whoever is being built reads
// the log together with all others that are.
func (f *following) next() func(context.Context, eventstore.Checkpoint) (eventstore.Page, error) {
	if f.State == Building && f.build != nil {
		return f.build.next
	}
	var types map[string]bool // what is live is decoded for all
	if f.witness {
		types = f.handles
	}
	next := nextOf(f.source, types)
	return func(ctx context.Context, after eventstore.Checkpoint) (eventstore.Page, error) {
		return next(ctx, after, f.limits.Live)
	}
}

// built has the others not wait for this one any more.
func (f *following) built() {
	f.State = Live
	if f.build != nil {
		f.build.leave()
	}
}

// rest lets a busy log gather into larger batches: each costs Postgres the same
// few statements, however many events it holds. After a quiet moment the first
// event is applied at once.
func (f *following) rest() time.Duration {
	if f.State == Building {
		return 0
	}
	gather := f.limits.Gather
	if _, lazy := f.consumer.(Lazy); lazy {
		gather = gatherOf(f.consumer)
	}
	return gather - time.Since(f.at)
}

// pause is how long the runner may wait for a page before the stored
// checkpoint, and the lease with it, has to be renewed. One that is building
// also looks whether it has caught up.
func (f *following) pause() time.Duration {
	if f.seen != f.stored || f.State == Building {
		return f.limits.Store
	}
	return f.limits.Lease / 3
}

// take deals with what was read.
func (f *following) take(ctx context.Context, next read) error {
	var undecodable *eventstore.DecodeError
	switch {
	case errors.As(next.err, &undecodable) && f.witness:
		return f.apply(ctx, []domain.Recorded{undecodable.Event}, undecodable.Position)
	case errors.As(next.err, &undecodable):
		switch e := &undecodable.Event; {
		case f.skips[e.Position]:
			f.skipped++
		case f.handles[e.Type] && !f.waits(e):
			return f.setAside(ctx, *e, next.err)
		}
		return f.pass(ctx, eventstore.At(undecodable.Position))
	case next.err != nil:
		return fmt.Errorf("read the log: %w", next.err)
	}
	f.atEnd = next.page.Live
	batch := f.choose(next.page.Events)
	if len(batch) == 0 {
		return f.pass(ctx, eventstore.At(next.page.Next))
	}
	return f.apply(ctx, batch, next.page.Next)
}

// choose keeps the events that the consumer handles and counts the others. What it
// gives is the page itself where that is all of it, which nobody may change.
func (f *following) choose(events []domain.Recorded) []domain.Recorded {
	if f.witness {
		return events
	}
	chosen := make([]int, 0, len(events)) // an event is large
	for i := range events {
		switch e := &events[i]; {
		case f.skips[e.Position]:
			f.skipped++
		case e.Event == nil && eventstore.Version(e.Type) > 0: // left undecoded
		case e.Event == nil:
			f.unknown++
		case f.handles[e.Type] && !f.waits(e):
			chosen = append(chosen, i)
		}
	}
	if len(chosen) == len(events) {
		return events
	}
	batch := make([]domain.Recorded, len(chosen))
	for i, at := range chosen {
		batch[i] = events[at]
	}
	return batch
}

// storeBusy is how many times as long as usual a checkpoint stays in memory while
// events keep coming: each store is a transaction, and none shows any rows.
const storeBusy = 10

// pass moves past events that change nothing: in memory at once, in Postgres once
// no more have come for a little while, or a longer one has passed.
func (f *following) pass(ctx context.Context, at eventstore.Checkpoint) error {
	f.seen = at
	if f.serving {
		f.arrivals.advance(f.Name, at)
	}
	if time.Since(f.kept) < storeBusy*f.limits.Store {
		return nil
	}
	return f.store(ctx)
}

// apply commits the batch with the checkpoint behind it. If it is refused, its
// halves are tried by themselves, down to the one event that is to blame: what
// precedes that is applied, then its stream is set aside, or the line stops.
func (f *following) apply(ctx context.Context, batch []domain.Recorded, next domain.Position) error {
	if batch = f.without(batch); len(batch) == 0 {
		return f.pass(ctx, eventstore.At(next))
	}
	write, done, poison := f.prepare(ctx, batch)
	if poison != nil && !poisonous(poison) {
		return fmt.Errorf("prepare: %w", poison)
	}
	if poison != nil {
		return f.applyBefore(ctx, batch, write, done, poison, next)
	}
	err := f.commit(ctx, write, len(batch), eventstore.At(next))
	switch {
	case err == nil:
		return nil
	case transient(err):
		return err
	case len(batch) == 1:
		if err := f.setAside(ctx, batch[0], err); err != nil {
			return err
		}
		return f.pass(ctx, eventstore.At(next))
	}
	half := len(batch) / 2
	if err := f.apply(ctx, batch[:half], batch[half-1].Position); err != nil {
		return err
	}
	return f.apply(ctx, batch[half:], next)
}

// applyBefore applies what was prepared of a batch, sets the event behind it aside, and
// goes on.
func (f *following) applyBefore(ctx context.Context, batch []domain.Recorded, write Write, done int, poison error, next domain.Position) error {
	if done > 0 {
		if err := f.commit(ctx, write, done, eventstore.At(batch[done-1].Position)); err != nil {
			return err
		}
	}
	if err := f.setAside(ctx, batch[done], poison); err != nil {
		return err
	}
	return f.apply(ctx, batch[done+1:], next)
}

// without leaves out what waits by now.
func (f *following) without(batch []domain.Recorded) []domain.Recorded {
	if len(f.aside) == 0 {
		return batch
	}
	return slices.DeleteFunc(slices.Clone(batch), func(e domain.Recorded) bool { return f.waits(&e) })
}

// prepare says what is to be written for a batch.
func (f *following) prepare(ctx context.Context, batch []domain.Recorded) (write Write, done int, err error) {
	if p, ok := f.consumer.(Preparer); ok {
		return p.Prepare(ctx, batch)
	}
	return func(ctx context.Context, tx *sqlx.Tx) error {
		return f.fold(ctx, tx, f.Schema, batch)
	}, len(batch), nil
}

// fold applies a batch; a panic fails it, as any error of the fold does.
func (f *following) fold(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) (err error) {
	defer func() {
		if found := recover(); found != nil {
			err = fmt.Errorf("panic: %v", found)
			f.log.WithField("stack", string(debug.Stack())).Error(err)
		}
	}()
	return f.consumer.(Projector).Apply(ctx, tx, schema, batch)
}

// commit writes rows and checkpoint in one transaction; events that lead to
// nothing are passed. The checkpoint comes first: its row lock makes a runner
// that lost the lease wait, and then fail before it writes anything.
func (f *following) commit(ctx context.Context, write Write, events int, to eventstore.Checkpoint) error {
	if write == nil && events > 0 {
		f.handled += int64(events)
		return f.pass(ctx, to)
	}
	handled := f.handled + int64(events)
	news := ""
	if f.serving && f.notifies.Load() {
		news = newsOf(f.lease.owner, to, f.Name)
	}
	_, projects := f.consumer.(Projector)
	planned := f.State == Live || !projects
	all := func(ctx context.Context, tx *sqlx.Tx) error {
		if err := f.advance(ctx, tx, to, handled, f.limits.Lease, news, planned); err != nil {
			return err
		}
		return write(ctx, tx)
	}
	var err error
	if write == nil {
		err = f.advance(ctx, f.db, to, handled, f.limits.Lease, news, false) // one statement is a transaction
	} else {
		err = pgpool.InTxPipelined(ctx, f.db, all)
	}
	if projects && write != nil && err != nil && !transient(err) && !errors.Is(err, errNotOwner) {
		// Once more, to be told by the statement that is to blame.
		err = pgpool.InTx(ctx, f.db, func(tx *sqlx.Tx) error { return all(ctx, tx) })
	}
	if c, ok := f.consumer.(Committer); ok && write != nil {
		c.Committed(err)
	}
	if err != nil {
		return err
	}
	f.advanced(to)
	f.kept = time.Now()
	f.applied += handled
	if write != nil {
		f.at = f.kept
	}
	if f.serving {
		f.arrivals.advance(f.Name, to)
	}
	return nil
}

// store writes the checkpoint where the runner stands, which also renews the
// lease.
func (f *following) store(ctx context.Context) error {
	return f.commit(ctx, nil, 0, f.seen)
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
		f.built()
		return f.store(ctx)
	}
	serving, err := f.servingCheckpoint(ctx)
	if err != nil || !atLeast(f.seen, serving) {
		return err
	}
	if err := f.store(ctx); err != nil {
		return err
	}
	if !f.indexed {
		return f.index(ctx)
	}
	if time.Since(f.refused) < f.limits.MaxBackoff {
		return nil
	}
	flipped, err := flip(ctx, f.db, f.consumer.(Projector), f.lease, flipWait(f.limits.Lease))
	if err != nil {
		return f.cannotFlip(ctx, err)
	}
	if !flipped {
		return nil
	}
	f.Obstacle = ""
	f.built()
	f.Serving = true
	f.serve()
	f.log.WithField("position", f.seen.Position.String()).Info("the new generation serves")
	return nil
}

// index makes a build ready for readers, and looks again: the serving rows may have
// gone on meanwhile. It may outlast the lease; whoever takes over then finds the indexes
// there.
func (f *following) index(ctx context.Context) error {
	err := f.commit(ctx, func(ctx context.Context, tx *sqlx.Tx) error {
		return createIndexes(ctx, tx, f.consumer.(Projector), f.Schema)
	}, 0, f.seen)
	if err != nil {
		return fmt.Errorf("index %s: %w", f.Schema, err)
	}
	f.indexed = true
	return f.catchUp(ctx)
}

// cannotFlip notes what is in the way, and goes on following the log: what it is
// may go away.
func (f *following) cannotFlip(ctx context.Context, err error) error {
	what := inTheWay(ctx, f.db, flipWait(f.limits.Lease), err)
	if what == "" {
		return err
	}
	f.refused = time.Now()
	if what == f.Obstacle {
		return nil
	}
	f.log.WithField("obstacle", what).Warn("the new generation cannot serve yet")
	return f.tellObstacle(ctx, f.db, what)
}

func (f *following) tell(p Progress) {
	f.log.WithFields(logrus.Fields{
		"position": p.Position.String(), "head": p.Head.String(),
		"events_per_second": int64(p.EventsPerSecond), "eta": p.ETA.String(),
	}).Info("building")
}

const servingGenerationSQL = `
SELECT ` + generationColumns + `
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
	}).Error("the line stopped: look at the event, then `humanqa projections retry` or `skip`")
	return errStopped
}

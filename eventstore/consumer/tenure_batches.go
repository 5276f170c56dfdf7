package consumer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
	"humanqa/internal/pgpool"
	"humanqa/internal/tracing"
)

// handlePage applies the page that was read, or handles the error of reading it.
func (t *tenure) handlePage(ctx context.Context, next pageRead) error {
	var undecodable *eventstore.DecodeError
	switch {
	case errors.As(next.err, &undecodable) && t.runner.raw:
		return t.applyBatch(ctx, []domain.Recorded{undecodable.Recorded}, undecodable.Position)
	case errors.As(next.err, &undecodable):
		switch e := &undecodable.Recorded; {
		case t.skips[e.Position]:
			t.lease.Skipped++
		case t.runner.handles[e.Type] && !t.isSetAside(e):
			return t.setEventAside(ctx, *e, next.err)
		}
		return t.advancePast(ctx, eventstore.At(undecodable.Position))
	case next.err != nil:
		return fmt.Errorf("read the log: %w", next.err)
	}
	if t.atEnd = next.page.Live; t.atEnd && t.lease.Gen.State == generation.Live {
		t.leaveScan()
	}
	return t.applyEvents(ctx, next.page.Events, next.page.Next)
}

// applyEvents applies those of the events that the consumer handles. An event that it must
// not pass is set aside in its place.
func (t *tenure) applyEvents(ctx context.Context, events []domain.Recorded, next domain.Position) error {
	if at := slices.IndexFunc(events, t.mustNotPass); at >= 0 {
		unknown := events[at]
		if at > 0 {
			if err := t.applyEvents(ctx, events[:at], events[at-1].Position); err != nil {
				return err
			}
		}
		if err := t.setEventAside(ctx, unknown, unknownTo(unknown)); err != nil {
			return err
		}
		return t.applyEvents(ctx, events[at+1:], next)
	}
	batch := t.selectEvents(events)
	if len(batch) == 0 {
		return t.advancePast(ctx, eventstore.At(next))
	}
	return t.applyBatch(ctx, batch, next)
}

// mustNotPass says that the event is of a type that this binary does not know, and that a
// newer one may announce. A read model passes over it, because the newer version builds it
// anew. A Preparer cannot be rebuilt: it sets the stream aside for the newer version.
func (t *tenure) mustNotPass(e domain.Recorded) bool { return t.isUnknown(e) && !t.isSetAside(&e) }

func (t *tenure) isUnknown(e domain.Recorded) bool {
	return e.Event == nil && t.runner.families[familyOf(e.Type)] && eventstore.Version(e.Type) == 0 && !t.skips[e.Position]
}

// familyOf is the aggregate that a type belongs to: job of job.created.
func familyOf(eventType string) string {
	family, _, _ := strings.Cut(eventType, ".")
	return family
}

func unknownTo(e domain.Recorded) *eventstore.DecodeError {
	return &eventstore.DecodeError{Recorded: e, Err: fmt.Errorf("this binary does not know the type: %w", domain.ErrNewer)}
}

// selectEvents keeps the events that the consumer handles and counts the others. If it
// keeps all, it gives the page itself, which must not be changed.
func (t *tenure) selectEvents(events []domain.Recorded) []domain.Recorded {
	if t.runner.raw {
		return events
	}
	chosen := make([]int, 0, len(events)) // an event is large
	for i := range events {
		switch e := &events[i]; {
		case t.skips[e.Position]:
			t.lease.Skipped++
		case e.Event == nil && eventstore.Version(e.Type) > 0: // left undecoded
		case e.Event == nil:
			t.lease.Unknown++
		case t.runner.handles[e.Type] && !t.isSetAside(e):
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

// advancePast moves past events that change nothing: in memory at once, in Postgres once
// no more have come for a little while, or once a longer time has passed.
func (t *tenure) advancePast(ctx context.Context, at eventstore.Checkpoint) error {
	t.lease.Seen = at
	if t.reporting {
		t.runner.tracker.noteProgress(t.lease.Gen.Name, at)
	}
	if time.Since(t.lastStore) < storeBusy*t.runner.limits.Store {
		return nil
	}
	return t.storeCheckpoint(ctx)
}

// applyBatch commits the batch with the checkpoint behind it. If it is refused, its
// halves are tried by themselves, down to the one event that is to blame. The events
// before it are applied; then its stream is set aside, or the line stops.
func (t *tenure) applyBatch(ctx context.Context, batch []domain.Recorded, next domain.Position) error {
	if batch = t.withoutSetAside(batch); len(batch) == 0 {
		return t.advancePast(ctx, eventstore.At(next))
	}
	write, done, poison := t.prepareBatch(ctx, batch)
	if poison != nil && !poisonous(poison) {
		return fmt.Errorf("prepare: %w", poison)
	}
	if err := t.awaitReads(ctx, write, batch[:done]); err != nil {
		return err
	}
	if poison != nil {
		return t.applyPrefix(ctx, batch, write, done, poison, next)
	}
	within, span := ctx, tracing.Span{}
	if write != nil && t.lease.Gen.State != generation.Building { // a build would add spans to traces that ended long ago
		within, span = startBatch(ctx, t.runner.tracer, batch, t.lease.Gen.Name)
	}
	err := t.commitBatch(within, write, len(batch), eventstore.At(next))
	span.End()
	_, hopeless := errors.AsType[*HopelessError](err)
	switch {
	case err == nil:
		return nil
	case hopeless:
		return t.stopLine(ctx, failureAt(batch[0].Position, err))
	case transient(err):
		return err
	case len(batch) == 1:
		if err := t.setEventAside(ctx, batch[0], err); err != nil {
			return err
		}
		return t.advancePast(ctx, eventstore.At(next))
	}
	half := len(batch) / 2
	if err := t.applyBatch(ctx, batch[:half], batch[half-1].Position); err != nil {
		return err
	}
	return t.applyBatch(ctx, batch[half:], next)
}

// applyPrefix applies the events of a batch that were prepared, sets the next one aside, and
// goes on.
func (t *tenure) applyPrefix(
	ctx context.Context, batch []domain.Recorded, write Write, done int, poison error, next domain.Position,
) error {
	if done > 0 {
		if err := t.commitBatch(ctx, write, done, eventstore.At(batch[done-1].Position)); err != nil {
			return err
		}
	}
	if err := t.setEventAside(ctx, batch[done], poison); err != nil {
		return err
	}
	return t.applyBatch(ctx, batch[done+1:], next)
}

// withoutSetAside leaves out the events that are set aside by now.
func (t *tenure) withoutSetAside(batch []domain.Recorded) []domain.Recorded {
	if len(t.aside) == 0 {
		return batch
	}
	return slices.DeleteFunc(slices.Clone(batch), func(e domain.Recorded) bool { return t.isSetAside(&e) })
}

// prepareBatch gives the writes of a batch.
func (t *tenure) prepareBatch(ctx context.Context, batch []domain.Recorded) (write Write, done int, err error) {
	if p, ok := t.runner.consumer.(Preparer); ok {
		return p.Prepare(ctx, batch)
	}
	return func(ctx context.Context, tx *sqlx.Tx) error {
		return t.foldBatch(ctx, tx, t.lease.Gen.Schema, batch)
	}, len(batch), nil
}

// foldBatch applies a batch; a panic fails it, as any error of the fold does.
func (t *tenure) foldBatch(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) (err error) {
	defer func() {
		if found := recover(); found != nil {
			err = fmt.Errorf("panic: %v", found)
			t.runner.log.WithField("stack", string(debug.Stack())).Error(err)
		}
	}()
	return t.runner.consumer.(Projector).Apply(ctx, tx, schema, batch)
}

// commitBatch writes rows and checkpoint in one transaction; events that lead to
// nothing are passed. The checkpoint comes first: its row lock makes a runner
// that lost the lease wait, and then fail before it writes anything.
func (t *tenure) commitBatch(ctx context.Context, write Write, events int, to eventstore.Checkpoint) error {
	if write == nil && events > 0 {
		t.lease.Handled += int64(events)
		return t.advancePast(ctx, to)
	}
	handled := t.lease.Handled + int64(events)
	notify := t.reporting && t.runner.notifies.Load()
	_, projects := t.runner.consumer.(Projector)
	planned := t.lease.Gen.State == generation.Live || !projects
	var err error
	if write == nil {
		err = t.lease.Advance(ctx, t.runner.db, to, handled, t.runner.limits.Lease, notify, false) // one statement is a transaction
	} else {
		err = pgpool.InTx(ctx, t.runner.db, func(tx *sqlx.Tx) error {
			if err := t.lease.Advance(ctx, tx, to, handled, t.runner.limits.Lease, notify, planned); err != nil {
				return err
			}
			return write(ctx, tx)
		})
	}
	if c, ok := t.runner.consumer.(Committer); ok && write != nil {
		c.Committed(err)
	}
	if err != nil {
		return err
	}
	t.noteCommitted(to, events, write != nil)
	return nil
}

// noteCommitted notes that the checkpoint was committed, and whether rows were.
func (t *tenure) noteCommitted(to eventstore.Checkpoint, events int, rows bool) {
	t.applied += t.lease.Handled + int64(events)
	t.lease.NoteAdvanced(to)
	if t.lastStore = time.Now(); rows {
		t.lastBatch = t.lastStore
	}
	if t.reporting {
		t.runner.tracker.noteProgress(t.lease.Gen.Name, to)
	}
}

// storeCheckpoint writes the checkpoint where the runner stands, which also renews the
// lease.
func (t *tenure) storeCheckpoint(ctx context.Context) error {
	return t.commitBatch(ctx, nil, 0, t.lease.Seen)
}

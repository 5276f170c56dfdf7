package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
	"humanqa/internal/pgpool"
)

// InOrder is a consumer that needs every event of some streams. Without one, its rows of
// later events would be wrong, or readers would pass the place of the missing one. It stops
// at such an event; an event of any other stream is set aside with its stream.
type InOrder interface {
	// InOrder says that the stream is one of these.
	InOrder(stream string) bool
}

// SetAside is a stream that a generation goes on without, and the first event of it that
// could not be applied.
type SetAside struct {
	Stream   string
	Revision uint64
	Position domain.Position
	Type     string
	Category generation.Category
	Detail   string
	Attempts int // at this event
	At       time.Time
	Due      time.Time // when it is tried again
}

// asideRow is a row of projection_set_aside.
type asideRow struct {
	Name       string `db:"name"`
	Generation int    `db:"generation"`
	SetAside
}

const asideColumns = `
    name, generation, stream, revision, commit_position AS "position.commit", prepare_position AS "position.prepare", type, category,
    detail, attempts, set_aside_at AS at, due_at AS due`

const asideStreamSQL = `
WHERE name = $1
  AND generation = $2
  AND stream = $3`

// maxAgain is the longest pause before an event that was set aside is tried again.
const maxAgain = time.Hour

const listAsideSQL = `
SELECT ` + asideColumns + `
FROM projection_set_aside
ORDER BY name, generation, commit_position, prepare_position`

const asideOfSQL = `
SELECT ` + asideColumns + `
FROM projection_set_aside
WHERE name = $1
  AND generation = $2
  AND (NOT $3 OR due_at <= clock_timestamp())
ORDER BY commit_position, prepare_position`

// A stream that is set aside already moves to another event, or has one more failure of the
// same event: then each pause is twice as long as the one before.
const setAsideSQL = `
INSERT INTO projection_set_aside AS a (name, generation, stream, revision, commit_position, prepare_position, type, category, detail, due_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp() + make_interval(secs => $10))
ON CONFLICT (name, generation, stream) DO UPDATE
SET revision = excluded.revision,
    commit_position = excluded.commit_position,
    prepare_position = excluded.prepare_position,
    type = excluded.type,
    category = excluded.category,
    detail = excluded.detail,
    attempts = CASE WHEN a.revision = excluded.revision THEN a.attempts + 1 ELSE 1 END,
    due_at = clock_timestamp() +
        make_interval(secs => least($10 * 2 ^ CASE WHEN a.revision = excluded.revision THEN least(a.attempts, 30) ELSE 0 END, $11))`

// The row keeps the failure of the event before, until this event is tried.
const waitsAtSQL = `
UPDATE projection_set_aside
SET revision = $4,
    commit_position = $5,
    prepare_position = $6,
    type = $7,
    attempts = 0` + asideStreamSQL

const noLongerAsideSQL = `
DELETE FROM projection_set_aside` + asideStreamSQL

// listAside gives the streams that each generation has set aside, by generationKey.
func listAside(ctx context.Context, q sqlx.QueryerContext) (map[string][]SetAside, error) {
	rows, err := pgpool.List[asideRow](ctx, q, "the events that are set aside", listAsideSQL)
	all := map[string][]SetAside{}
	for _, r := range rows {
		of := generationKey(r.Name, r.Generation)
		all[of] = append(all[of], r.SetAside)
	}
	return all, err
}

func generationKey(name string, number int) string { return fmt.Sprintf("%s %d", name, number) }

// loadAside gives the streams that a generation has set aside, or those that are due.
func loadAside(ctx context.Context, q sqlx.QueryerContext, g generation.Generation, due bool) ([]asideRow, error) {
	return pgpool.List[asideRow](ctx, q, "what "+g.Schema+" has set aside", asideOfSQL, g.Name, g.Number, due)
}

// byStream gives the position at which each stream waits.
func byStream(rows []asideRow) map[string]domain.Position {
	of := make(map[string]domain.Position, len(rows))
	for _, r := range rows {
		of[r.Stream] = r.Position
	}
	return of
}

// isSetAside says that the event is set aside, or waits behind one that is.
func (t *tenure) isSetAside(e *domain.Recorded) bool {
	at, is := t.aside[e.Stream]
	return is && e.Position.Compare(at) >= 0
}

// ofEvent says that the event is the cause of a failure, once it was tried by itself, and
// not trouble of Postgres or a mistake in its tables.
func ofEvent(err error) bool {
	var refused *pq.Error
	switch {
	case transient(err):
		return false
	case !errors.As(err, &refused):
		return true // an error of the fold, or of the codec
	}
	switch refused.Code.Class() {
	case "21", // a statement that meets a row twice
		"22", // a value that a column cannot hold
		"23", // a constraint
		"54", // too long for an index
		"P0": // raised by a function
		return true
	}
	return false
}

// setEventAside goes on without an event that failed by itself, and without its stream. It
// stops the line instead where the order of the stream matters to others, or the event is
// not known to be the cause. It also does so where so many streams are set aside that it is
// the code.
func (t *tenure) setEventAside(ctx context.Context, e domain.Recorded, cause error) error {
	failure := failureAt(e.Position, cause)
	ordered, _ := t.runner.consumer.(InOrder)
	inOrder := ordered != nil && ordered.InOrder(e.Stream) &&
		!errors.Is(cause, domain.ErrForged) // nothing of the service follows it
	if t.runner.raw || !ofEvent(cause) || len(t.aside) >= t.runner.limits.Aside || inOrder {
		if errors.Is(cause, domain.ErrNewer) && !t.runner.raw {
			return t.leaveToNewer(ctx, failure)
		}
		return t.stopLine(ctx, failure)
	}
	if err := t.noteAside(ctx, e, failure, eventstore.At(e.Position)); err != nil {
		return fmt.Errorf("set %s aside: %w", e.Stream, err)
	}
	t.runner.log.WithFields(logrus.Fields{
		"stream": e.Stream, "category": failure.Category, "position": failure.Position.String(), "detail": failure.Detail,
	}).Error("an event cannot be applied, its stream was set aside: see `humanqa projections list`")
	return nil
}

// retrySetAside tries to apply the events that were set aside: all of them, or those that are
// due. A generation that is being built skips this: it would meet the events out of order.
func (t *tenure) retrySetAside(ctx context.Context, due bool) error {
	if t.lease.Gen.State != generation.Live {
		return nil
	}
	rows, err := loadAside(ctx, t.runner.db, t.lease.Gen, due)
	if err != nil || len(rows) == 0 {
		return err
	}
	if t.skips, err = generation.LoadSkips(ctx, t.runner.db, t.lease.Gen.Name); err != nil {
		return err
	}
	for _, row := range rows {
		if err := t.retryStream(ctx, row); err != nil {
			return fmt.Errorf("try %s again: %w", row.Stream, err)
		}
	}
	return nil
}

// retryStream applies the events of a stream, from the one that was set aside to where the
// checkpoint stands, up to the first that fails. Other streams have gone on meanwhile, so
// a read model is built anew then, in the log's order.
func (t *tenure) retryStream(ctx context.Context, row asideRow) error {
	w, err := t.loadBacklog(ctx, row)
	if err != nil {
		return err
	}
	for len(w.events) > 0 {
		n := min(len(w.events), t.runner.limits.Live)
		err := t.applyBacklog(ctx, row, w, n)
		if n > 1 && err != nil && !transient(err) {
			n = 1 // to find the event that is to blame
			err = t.applyBacklog(ctx, row, w, n)
		}
		switch {
		case err == nil:
		case transient(err):
			return err
		default:
			return t.noteAside(ctx, w.events[0], failureAt(w.events[0].Position, err), t.lease.Seen)
		}
		w.events = w.events[n:]
	}
	if w.unreadable != nil {
		return t.noteAside(ctx, w.unreadable.Recorded, failureAt(w.unreadable.Position, w.unreadable), t.lease.Seen)
	}
	if _, waits := t.aside[row.Stream]; waits { // all events that waited were skipped
		if err := t.applyBacklog(ctx, row, w, 0); err != nil {
			return err
		}
	}
	t.lease.Skipped += w.skipped
	t.runner.log.WithField("stream", row.Stream).Info("the events that were set aside are applied")
	return nil
}

// backlog holds the events of a stream that a generation has set aside: those that it
// handles, up to one that cannot be read.
type backlog struct {
	events     []domain.Recorded
	unreadable *eventstore.DecodeError // nil: there is none
	skipped    int64
}

// errEnough ends a load early.
var errEnough = errors.New("enough")

func (t *tenure) loadBacklog(ctx context.Context, row asideRow) (w backlog, err error) {
	for from := row.Revision; ; from = w.unreadable.Revision + 1 {
		w.unreadable = nil
		err := t.runner.source.Load(ctx, row.Stream, from, func(e domain.Recorded) error {
			switch {
			case !generation.Reached(t.lease.Seen, e.Position):
				return errEnough
			case t.skips[e.Position]:
				w.skipped++
			case e.Disowned:
			case t.isUnknown(e):
				w.unreadable = unknownTo(e)
				return errEnough
			case t.runner.handles[e.Type]:
				w.events = append(w.events, e)
			}
			return nil
		})
		switch known := errors.As(err, &w.unreadable); {
		case err == nil, errors.Is(err, errEnough):
			return w, nil
		case !known:
			return w, fmt.Errorf("read it: %w", err)
		case !generation.Reached(t.lease.Seen, w.unreadable.Position):
			w.unreadable = nil
			return w, nil
		case t.skips[w.unreadable.Position]:
			w.skipped++
		case t.runner.handles[w.unreadable.Type]:
			return w, nil
		}
	}
}

// applyBacklog applies the first n of the events that wait, and writes the event at which
// the stream waits then.
func (t *tenure) applyBacklog(ctx context.Context, row asideRow, w backlog, n int) error {
	write, _, err := t.prepareBatch(ctx, w.events[:n])
	switch {
	case err != nil && !poisonous(err):
		return fmt.Errorf("%w: prepare: %w", errLater, err)
	case err != nil:
		return err
	}
	_, projects := t.runner.consumer.(Projector)
	next, left := w.nextAfter(n)
	err = t.commitBatch(ctx, func(ctx context.Context, tx *sqlx.Tx) error {
		if write != nil && n > 0 {
			if err := write(ctx, tx); err != nil {
				return err
			}
		}
		if projects && n > 0 {
			if err := generation.RequestRebuild(ctx, tx, t.lease.Gen.Name); err != nil {
				return err
			}
		}
		if !left {
			_, err := tx.ExecContext(ctx, noLongerAsideSQL, t.lease.Gen.Name, t.lease.Gen.Number, row.Stream)
			return err
		}
		commit, prepare := generation.PositionColumns(eventstore.At(next.Position))
		_, err := tx.ExecContext(ctx, waitsAtSQL, t.lease.Gen.Name, t.lease.Gen.Number, row.Stream, int64(next.Revision),
			commit, prepare, next.Type)
		return err
	}, n, t.lease.Seen)
	switch {
	case err != nil:
		return err
	case left:
		t.aside[row.Stream] = next.Position
	default:
		delete(t.aside, row.Stream)
	}
	return nil
}

// nextAfter is the event at which the stream waits once n events were applied.
func (w backlog) nextAfter(n int) (next domain.Recorded, left bool) {
	switch {
	case n < len(w.events):
		return w.events[n], true
	case w.unreadable != nil:
		return w.unreadable.Recorded, true
	}
	return next, false
}

// noteAside writes at a checkpoint that the stream waits at the event, and why.
func (t *tenure) noteAside(ctx context.Context, e domain.Recorded, failure generation.Failure, at eventstore.Checkpoint) error {
	commit, prepare := generation.PositionColumns(eventstore.At(e.Position))
	err := t.commitBatch(ctx, func(ctx context.Context, tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, setAsideSQL, t.lease.Gen.Name, t.lease.Gen.Number, e.Stream, int64(e.Revision),
			commit, prepare, e.Type, failure.Category, failure.Detail, t.runner.limits.Again.Seconds(), maxAgain.Seconds())
		return err
	}, 0, at)
	if err == nil {
		t.aside[e.Stream] = e.Position
	}
	return err
}

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
)

// InOrder is a consumer that does not go on without an event of some streams: what it
// writes of the others would be wrong without it, or be read past its place. It stops at
// such an event; one of any other stream is set aside with its stream.
type InOrder interface {
	// InOrder says that the stream is such a one.
	InOrder(stream string) bool
}

// SetAside is a stream that a generation goes on without, and the first event of it that
// could not be applied.
type SetAside struct {
	Stream   string
	Revision uint64
	Position domain.Position
	Type     string
	Category Category
	Detail   string
	Attempts int // at this event
	At       time.Time
	Due      time.Time // when it is tried again
}

// asideRow is a row of projection_set_aside.
type asideRow struct {
	Name       string    `db:"name"`
	Generation int       `db:"generation"`
	Stream     string    `db:"stream"`
	Revision   int64     `db:"revision"`
	Commit     int64     `db:"commit_position"`
	Prepare    int64     `db:"prepare_position"`
	Type       string    `db:"type"`
	Category   Category  `db:"category"`
	Detail     string    `db:"detail"`
	Attempts   int       `db:"attempts"`
	At         time.Time `db:"set_aside_at"`
	Due        time.Time `db:"due_at"`
}

func (r asideRow) position() domain.Position {
	return domain.Position{Commit: uint64(r.Commit), Prepare: uint64(r.Prepare)}
}

func (r asideRow) told() SetAside {
	return SetAside{
		Stream: r.Stream, Revision: uint64(r.Revision), Position: r.position(), Type: r.Type,
		Category: r.Category, Detail: r.Detail, Attempts: r.Attempts, At: r.At.UTC(), Due: r.Due.UTC(),
	}
}

const asideColumns = `
    name, generation, stream, revision, commit_position, prepare_position, type, category, detail, attempts, set_aside_at, due_at`

// maxAgain is the longest pause before what was set aside is tried again.
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

const setAsideSQL = `
INSERT INTO projection_set_aside (name, generation, stream, revision, commit_position, prepare_position, type, category, detail, due_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp() + make_interval(secs => $10))`

// It goes on to another event of the stream, or has failed at the same once more: each
// pause is twice as long as the one before.
const stillAsideSQL = `
UPDATE projection_set_aside
SET revision = $4,
    commit_position = $5,
    prepare_position = $6,
    type = $7,
    category = $8,
    detail = $9,
    attempts = CASE WHEN revision = $4 THEN attempts + 1 ELSE 1 END,
    due_at = clock_timestamp() + make_interval(secs => least($10 * 2 ^ CASE WHEN revision = $4 THEN least(attempts, 30) ELSE 0 END, $11))
WHERE name = $1
  AND generation = $2
  AND stream = $3`

// What the row says of the failure is the event's before, until this one is tried.
const waitsAtSQL = `
UPDATE projection_set_aside
SET revision = $4,
    commit_position = $5,
    prepare_position = $6,
    type = $7,
    attempts = 0
WHERE name = $1
  AND generation = $2
  AND stream = $3`

const noLongerAsideSQL = `
DELETE FROM projection_set_aside
WHERE name = $1
  AND generation = $2
  AND stream = $3`

const asideDueSQL = `
UPDATE projection_set_aside
SET due_at = clock_timestamp()
WHERE name = $1
  AND ($2 < 0 OR commit_position = $2 AND prepare_position = $3)`

// listAside gives what every generation has set aside, by schema's name and number.
func listAside(ctx context.Context, q sqlx.QueryerContext) (map[string][]SetAside, error) {
	var rows []asideRow
	if err := sqlx.SelectContext(ctx, q, &rows, listAsideSQL); err != nil {
		return nil, fmt.Errorf("read what was set aside: %w", err)
	}
	all := map[string][]SetAside{}
	for _, r := range rows {
		of := generationKey(r.Name, r.Generation)
		all[of] = append(all[of], r.told())
	}
	return all, nil
}

func generationKey(name string, number int) string { return fmt.Sprintf("%s %d", name, number) }

// loadAside gives what a generation has set aside, or what of it is due.
func loadAside(ctx context.Context, q sqlx.QueryerContext, g generation, due bool) ([]asideRow, error) {
	var rows []asideRow
	if err := sqlx.SelectContext(ctx, q, &rows, asideOfSQL, g.Name, g.Number, due); err != nil {
		return nil, fmt.Errorf("read what %s has set aside: %w", g.Schema, err)
	}
	return rows, nil
}

// byStream is where each stream waits.
func byStream(rows []asideRow) map[string]domain.Position {
	of := make(map[string]domain.Position, len(rows))
	for _, r := range rows {
		of[r.Stream] = r.position()
	}
	return of
}

// waits says that the event is set aside, or waits behind one that is.
func (f *following) waits(e *domain.Recorded) bool {
	at, is := f.aside[e.Stream]
	return is && e.Position.Compare(at) >= 0
}

// ofEvent says that a failure is the event's, once the event was tried by itself, and no
// trouble of Postgres or mistake in its tables.
func ofEvent(err error) bool {
	var refused *pq.Error
	switch {
	case transient(err):
		return false
	case !errors.As(err, &refused):
		return true // the fold's own word, or the codec's
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

// setAside goes on without an event that failed by itself, and without its stream; or it
// stops there: where the order of the stream matters to others, where the event is not
// known to be the cause, and where so much was set aside that it is the code.
func (f *following) setAside(ctx context.Context, e domain.Recorded, cause error) error {
	failure := failureAt(e.Position, cause)
	ordered, _ := f.consumer.(InOrder)
	if f.witness || !ofEvent(cause) || len(f.aside) >= f.limits.Aside || ordered != nil && ordered.InOrder(e.Stream) {
		return f.stop(ctx, failure)
	}
	commit, prepare := columns(eventstore.At(e.Position))
	err := f.commit(ctx, func(ctx context.Context, tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, setAsideSQL, f.Name, f.Number, e.Stream, int64(e.Revision), commit, prepare, //nolint:gosec // no stream is that long
			e.Type, failure.Category, failure.Detail, f.limits.Again.Seconds())
		return err
	}, 0, eventstore.At(e.Position))
	if err != nil {
		return fmt.Errorf("set %s aside: %w", e.Stream, err)
	}
	f.aside[e.Stream] = e.Position
	f.log.WithFields(logrus.Fields{
		"stream": e.Stream, "category": failure.Category, "position": failure.Position.String(), "detail": failure.Detail,
	}).Error("an event cannot be applied, its stream was set aside: see `humanqa projections list`")
	return nil
}

// tryAgain applies what was set aside, as far as that can be done by now: all of it, or
// what is due. One that is built is not asked: it would meet the events out of order.
func (f *following) tryAgain(ctx context.Context, due bool) error {
	if f.State != Live {
		return nil
	}
	rows, err := loadAside(ctx, f.db, f.generation, due)
	if err != nil || len(rows) == 0 {
		return err
	}
	if f.skips, err = loadSkips(ctx, f.db, f.Name); err != nil {
		return err
	}
	for _, row := range rows {
		if err := f.tryStream(ctx, row); err != nil {
			return fmt.Errorf("try %s again: %w", row.Stream, err)
		}
	}
	return nil
}

// tryStream applies the events of a stream, from the one that was set aside to where the
// checkpoint stands, up to the first that fails. Other streams have gone on meanwhile, so
// a read model is built anew then, in the log's order.
func (f *following) tryStream(ctx context.Context, row asideRow) error {
	w, err := f.waiting(ctx, row)
	if err != nil {
		return err
	}
	for len(w.events) > 0 {
		n := min(len(w.events), f.limits.Live)
		err := f.applyLate(ctx, row, w, n)
		if n > 1 && err != nil && !transient(err) {
			n = 1 // to be told by the event that is to blame
			err = f.applyLate(ctx, row, w, n)
		}
		switch {
		case err == nil:
		case transient(err):
			return err
		default:
			return f.stillAside(ctx, row, w.events[0], err)
		}
		w.events = w.events[n:]
	}
	if w.unreadable != nil {
		return f.stillAside(ctx, row, w.unreadable.Event, w.unreadable)
	}
	if _, waits := f.aside[row.Stream]; waits { // all that waited was skipped
		if err := f.applyLate(ctx, row, w, 0); err != nil {
			return err
		}
	}
	f.skipped += w.skipped
	f.log.WithField("stream", row.Stream).Info("what was set aside is applied")
	return nil
}

// waiting is what a generation has set aside of a stream: the events that it handles, up
// to one that cannot be read.
type waiting struct {
	events     []domain.Recorded
	unreadable *eventstore.DecodeError // nil: there is none
	skipped    int64
}

// errEnough ends a load.
var errEnough = errors.New("enough")

func (f *following) waiting(ctx context.Context, row asideRow) (w waiting, err error) {
	for from := uint64(row.Revision); ; from = w.unreadable.Revision + 1 { //nolint:gosec // never below zero
		w.unreadable = nil
		err := f.source.Load(ctx, row.Stream, from, func(e domain.Recorded) error {
			switch {
			case !reached(f.seen, e.Position):
				return errEnough
			case f.skips[e.Position]:
				w.skipped++
			case f.handles[e.Type]:
				w.events = append(w.events, e)
			}
			return nil
		})
		switch known := errors.As(err, &w.unreadable); {
		case err == nil, errors.Is(err, errEnough):
			return w, nil
		case !known:
			return w, fmt.Errorf("read it: %w", err)
		case !reached(f.seen, w.unreadable.Position):
			w.unreadable = nil
			return w, nil
		case f.skips[w.unreadable.Position]:
			w.skipped++
		case f.handles[w.unreadable.Type]:
			return w, nil
		}
	}
}

// applyLate writes the first n of the events that wait, and where the stream waits then.
func (f *following) applyLate(ctx context.Context, row asideRow, w waiting, n int) error {
	write, _, err := f.prepare(ctx, w.events[:n])
	switch {
	case err != nil && !poisonous(err):
		return fmt.Errorf("%w: prepare: %w", errLater, err)
	case err != nil:
		return err
	}
	_, projects := f.consumer.(Projector)
	next, left := w.from(n)
	err = f.commit(ctx, func(ctx context.Context, tx *sqlx.Tx) error {
		if write != nil && n > 0 {
			if err := write(ctx, tx); err != nil {
				return err
			}
		}
		if projects && n > 0 {
			if _, err := tx.ExecContext(ctx, requestRebuildSQL, f.Name); err != nil {
				return err
			}
		}
		if !left {
			_, err := tx.ExecContext(ctx, noLongerAsideSQL, f.Name, f.Number, row.Stream)
			return err
		}
		commit, prepare := columns(eventstore.At(next.Position))
		_, err := tx.ExecContext(ctx, waitsAtSQL, f.Name, f.Number, row.Stream, int64(next.Revision), commit, prepare, next.Type) //nolint:gosec // no stream is that long
		return err
	}, n, f.seen)
	switch {
	case err != nil:
		return err
	case left:
		f.aside[row.Stream] = next.Position
	default:
		delete(f.aside, row.Stream)
	}
	return nil
}

// from is the event at which the stream waits once n were applied.
func (w waiting) from(n int) (next domain.Recorded, left bool) {
	switch {
	case n < len(w.events):
		return w.events[n], true
	case w.unreadable != nil:
		return w.unreadable.Event, true
	}
	return next, false
}

// stillAside notes where the stream waits now, and why.
func (f *following) stillAside(ctx context.Context, row asideRow, e domain.Recorded, cause error) error {
	failure := failureAt(e.Position, cause)
	commit, prepare := columns(eventstore.At(e.Position))
	err := f.commit(ctx, func(ctx context.Context, tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, stillAsideSQL, f.Name, f.Number, row.Stream, int64(e.Revision), commit, prepare, //nolint:gosec // no stream is that long
			e.Type, failure.Category, failure.Detail, f.limits.Again.Seconds(), maxAgain.Seconds())
		return err
	}, 0, f.seen)
	if err == nil {
		f.aside[row.Stream] = e.Position
	}
	return err
}

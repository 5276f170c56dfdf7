package generation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/internal/pgpool"
)

// The orders of operators. They are written to Postgres, so they work while the
// service runs, which notices them within a second, and while it is stopped.

const resumeSQL = `
UPDATE projection_checkpoints
SET status = CASE WHEN serving THEN 'live' ELSE 'building' END,
    updated_at = clock_timestamp()
WHERE name = $1
  AND status = 'stopped'`

const insertSkipSQL = `
INSERT INTO projection_skips (name, commit_position, prepare_position, detail, who, why)
SELECT $1, $2, $3, max(detail), $4, $5
FROM (
    SELECT failure_detail AS detail
    FROM projection_checkpoints
    WHERE name = $1
      AND status = 'stopped'
      AND failure_commit = $2
      AND failure_prepare = $3
    UNION ALL
    SELECT detail
    FROM projection_set_aside
    WHERE name = $1
      AND commit_position = $2
      AND prepare_position = $3) failed
HAVING count(*) > 0
ON CONFLICT DO NOTHING`

const requestRebuildSQL = `
INSERT INTO projection_rebuilds (name)
VALUES ($1)
ON CONFLICT DO NOTHING`

const takeRebuildSQL = `
DELETE FROM projection_rebuilds
WHERE name = $1`

const asideDueSQL = `
UPDATE projection_set_aside
SET due_at = clock_timestamp()
WHERE name = $1
  AND ($2 < 0 OR commit_position = $2 AND prepare_position = $3)`

const streamDueSQL = `
UPDATE projection_set_aside
SET due_at = clock_timestamp()
WHERE stream = $1`

const listSkipsSQL = `
SELECT name, commit_position AS "position.commit", prepare_position AS "position.prepare", detail, who, why, skipped_at AS at
FROM projection_skips
WHERE name = $1
ORDER BY commit_position, prepare_position`

// RetryStream makes all projections try the event of a stream again that they have set aside.
func RetryStream(ctx context.Context, db *sqlx.DB, stream string) error {
	return pgpool.Exec(ctx, db, "try "+stream+" again", streamDueSQL, stream)
}

// Retry makes a projection try the event again at which it stopped, and those that it has
// set aside.
func Retry(ctx context.Context, db *sqlx.DB, name string) error {
	return pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
		resumed, err := resume(ctx, tx, name)
		if err != nil {
			return err
		}
		due, err := makeDue(ctx, tx, name, -1, -1)
		if err == nil && !resumed && !due {
			err = fmt.Errorf("projection %s is not stopped, and has set nothing aside", name)
		}
		return err
	})
}

// resume lets a stopped line go on.
func resume(ctx context.Context, tx *sqlx.Tx, name string) (resumed bool, err error) {
	n, err := pgpool.ExecCount(ctx, tx, "resume projection "+name, resumeSQL, name)
	return n > 0, err
}

// makeDue makes the event that was set aside at a place due now; a negative place means all.
func makeDue(ctx context.Context, tx *sqlx.Tx, name string, commit, prepare int64) (due bool, err error) {
	n, err := pgpool.ExecCount(ctx, tx, "have projection "+name+" try again what it set aside", asideDueSQL, name, commit, prepare)
	return n > 0, err
}

// Skip takes an event at which the projection stopped, or that it has set aside, out of
// its fold, for this generation and all later ones. The projection goes on behind the
// event. The operator and the reason stay on record.
func Skip(ctx context.Context, db *sqlx.DB, name string, position domain.Position, who, why string) error {
	if who == "" || why == "" {
		return errors.New("a skip needs who and why")
	}
	commit, prepare := PositionColumns(eventstore.At(position))
	return pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
		none := fmt.Errorf("projection %s neither stopped at %s nor has set it aside", name, position)
		if err := pgpool.ExecOne(ctx, tx, none, "record the skip", insertSkipSQL, name, commit, prepare, who, why); err != nil {
			return err
		}
		if _, err := resume(ctx, tx, name); err != nil {
			return err
		}
		_, err := makeDue(ctx, tx, name, commit, prepare)
		return err
	})
}

// RequestRebuild orders a rebuild from any service that runs the projection. A
// second order while the rebuild is under way changes nothing.
func RequestRebuild(ctx context.Context, q sqlx.ExecerContext, name string) error {
	return pgpool.Exec(ctx, q, "order a rebuild of "+name, requestRebuildSQL, name)
}

// TakeOrder takes the order to rebuild a projection; ErrNotOwner: there is none any more.
func TakeOrder(ctx context.Context, tx *sqlx.Tx, name string) error {
	return pgpool.ExecOne(ctx, tx, ErrNotOwner, "take the order to rebuild "+name, takeRebuildSQL, name)
}

// Skipped is a record of an event that an operator took out of a projection.
type Skipped struct {
	Name     string
	Position domain.Position
	Detail   string // of the failure
	Who      string
	Why      string
	At       time.Time
}

// Skips lists the events that operators took out of a projection.
func Skips(ctx context.Context, q sqlx.QueryerContext, name string) ([]Skipped, error) {
	return pgpool.List[Skipped](ctx, q, "the skips of "+name, listSkipsSQL, name)
}

// LoadSkips are the positions of the events that operators took out of a projection.
func LoadSkips(ctx context.Context, q sqlx.QueryerContext, name string) (map[domain.Position]bool, error) {
	skips, err := Skips(ctx, q, name)
	if err != nil {
		return nil, err
	}
	positions := make(map[domain.Position]bool, len(skips))
	for _, s := range skips {
		positions[s.Position] = true
	}
	return positions, nil
}

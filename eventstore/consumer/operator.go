package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

// What an operator can order. All of it is written to Postgres, so it works
// while the service runs, which notices within a second, and while it is
// stopped.

const resumeSQL = `
UPDATE projection_checkpoints
SET status = CASE WHEN serving THEN 'live' ELSE 'building' END,
    updated_at = clock_timestamp()
WHERE name = $1
  AND status = 'stopped'
RETURNING ` + generationColumns

const insertSkipSQL = `
INSERT INTO projection_skips (name, commit_position, prepare_position, detail, who, why)
SELECT name, failure_commit, failure_prepare, max(failure_detail), $4, $5
FROM projection_checkpoints
WHERE name = $1
  AND status = 'stopped'
  AND failure_commit = $2
  AND failure_prepare = $3
GROUP BY name, failure_commit, failure_prepare
ON CONFLICT DO NOTHING
RETURNING detail`

const requestRebuildSQL = `
INSERT INTO projection_rebuilds (name)
VALUES ($1)
ON CONFLICT DO NOTHING`

const takeRebuildSQL = `
DELETE FROM projection_rebuilds
WHERE name = $1`

const listSkipsSQL = `
SELECT *
FROM projection_skips
WHERE name = $1
ORDER BY commit_position, prepare_position`

// Retry lets a stopped projection try its event again.
func Retry(ctx context.Context, db *sqlx.DB, name string) error {
	return pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error { return resume(ctx, tx, name) })
}

func resume(ctx context.Context, tx *sqlx.Tx, name string) error {
	var resumed []generation
	if err := tx.SelectContext(ctx, &resumed, resumeSQL, name); err != nil {
		return fmt.Errorf("resume projection %s: %w", name, err)
	}
	if len(resumed) == 0 {
		return fmt.Errorf("projection %s is not stopped", name)
	}
	return nil
}

// Skip takes the event at which the projection stopped out of its fold, for
// this generation and all later ones, and lets it go on. Who and why stay on
// record.
func Skip(ctx context.Context, db *sqlx.DB, name string, position domain.Position, who, why string) error {
	if who == "" || why == "" {
		return errors.New("a skip needs who and why")
	}
	return pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
		var details []string
		err := tx.SelectContext(ctx, &details, insertSkipSQL,
			name, int64(position.Commit), int64(position.Prepare), who, why)
		if err != nil {
			return fmt.Errorf("record the skip: %w", err)
		}
		if len(details) == 0 {
			return fmt.Errorf("projection %s did not stop at %s", name, position)
		}
		return resume(ctx, tx, name)
	})
}

// RequestRebuild orders a rebuild from whichever service runs the projection.
// Ordering it again while it is under way changes nothing.
func RequestRebuild(ctx context.Context, db *sqlx.DB, name string) error {
	if _, err := db.ExecContext(ctx, requestRebuildSQL, name); err != nil {
		return fmt.Errorf("order a rebuild of %s: %w", name, err)
	}
	return nil
}

// Skipped is a record of an event that an operator took out of a projection.
type Skipped struct {
	Name     string
	Position domain.Position
	Detail   string // what had failed
	Who      string
	Why      string
	At       time.Time
}

// Skips lists what operators took out of a projection.
func Skips(ctx context.Context, db *sqlx.DB, name string) ([]Skipped, error) {
	var rows []struct {
		Name    string    `db:"name"`
		Commit  int64     `db:"commit_position"`
		Prepare int64     `db:"prepare_position"`
		Detail  string    `db:"detail"`
		Who     string    `db:"who"`
		Why     string    `db:"why"`
		At      time.Time `db:"skipped_at"`
	}
	if err := db.SelectContext(ctx, &rows, listSkipsSQL, name); err != nil {
		return nil, fmt.Errorf("list the skips of %s: %w", name, err)
	}
	skips := make([]Skipped, len(rows))
	for i, r := range rows {
		skips[i] = Skipped{
			Name: r.Name, Position: domain.Position{Commit: uint64(r.Commit), Prepare: uint64(r.Prepare)},
			Detail: r.Detail, Who: r.Who, Why: r.Why, At: r.At.UTC(),
		}
	}
	return skips, nil
}

func loadSkips(ctx context.Context, db *sqlx.DB, name string) (map[domain.Position]bool, error) {
	skips, err := Skips(ctx, db, name)
	if err != nil {
		return nil, err
	}
	positions := make(map[domain.Position]bool, len(skips))
	for _, s := range skips {
		positions[s.Position] = true
	}
	return positions, nil
}

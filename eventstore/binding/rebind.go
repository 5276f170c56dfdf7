package binding

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/internal/pgpool"
)

// CopiedLog is a log that Rebind reads.
type CopiedLog interface {
	domain.Log
	// Walk calls each for every event that a copy keeps, in the log's order.
	Walk(ctx context.Context, each func(eventstore.RawEvent) error) error
}

// rebindBatch is how many places are written with one statement.
const rebindBatch = 5000

const placesTableSQL = `
CREATE TEMPORARY TABLE places (
    n           bigint NOT NULL,
    of_copy     boolean NOT NULL,
    event_id    uuid NOT NULL,
    at_commit   bigint NOT NULL,
    at_prepare  bigint NOT NULL
) ON COMMIT DROP`

const addPlacesSQL = `
INSERT INTO places (n, of_copy, event_id, at_commit, at_prepare)
SELECT $1 + p.i, $2, p.event_id, p.at_commit, p.at_prepare
FROM unnest($3::uuid[], $4::bigint[], $5::bigint[]) WITH ORDINALITY AS p (event_id, at_commit, at_prepare, i)`

const placesDifferSQL = `
SELECT count(*)
FROM (SELECT n, event_id FROM places WHERE NOT of_copy) was
FULL JOIN (SELECT n, event_id FROM places WHERE of_copy) now ON now.n = was.n
WHERE now.event_id IS DISTINCT FROM was.event_id`

const movesTableSQL = `
CREATE TEMPORARY TABLE moves ON COMMIT DROP AS
SELECT was.at_commit AS was_commit, was.at_prepare AS was_prepare, now.at_commit AS now_commit, now.at_prepare AS now_prepare
FROM places was
JOIN places now ON now.n = was.n AND now.of_copy
WHERE NOT was.of_copy`

// Every table that holds places in the log: in two columns by these names, or in one
// with the commit position only. The schema eventlog is the embedded log itself.
const tablesOfPlacesSQL = `
SELECT format('%I.%I', n.nspname, c.relname) AS table,
  commit.attname AS commit, coalesce(prepare.attname, '') AS prepare
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute commit ON commit.attrelid = c.oid AND commit.attname IN ('commit_position', 'failure_commit', 'position')
LEFT JOIN pg_attribute prepare ON prepare.attrelid = c.oid
  AND prepare.attname = CASE commit.attname WHEN 'commit_position' THEN 'prepare_position' WHEN 'failure_commit' THEN 'failure_prepare' END
WHERE c.relkind = 'r'
  AND n.nspname NOT LIKE 'pg\_%'
  AND n.nspname NOT IN ('eventlog', 'information_schema')
  AND commit.atttypid = 'bigint'::regtype
  AND (commit.attname <> 'position' OR n.nspname = 'policy' OR n.nspname IN (SELECT schema_name FROM projection_checkpoints))`

const leasedSQL = `
SELECT count(*)
FROM projection_checkpoints
WHERE lease_until > clock_timestamp()`

const rebindLogSQL = `
UPDATE projection_log
SET stands = $1
WHERE log_id = $2`

// ErrServed says that a service still follows the log.
var ErrServed = errors.New("a service still follows the log: stop it first")

// Rebind moves a database from its log to a copy of it. In one transaction, every
// position that the database holds becomes the same event's position in the copy. So
// every consumer goes on behind the event where it stood. No service may run. Rebind
// may be repeated.
func Rebind(ctx context.Context, db *sqlx.DB, from, to CopiedLog) error {
	was, err := identityOf(ctx, from)
	if err != nil {
		return err
	}
	now, err := identityOf(ctx, to)
	if err != nil {
		return err
	}
	return pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
		var served int
		if err := tx.GetContext(ctx, &served, leasedSQL); err != nil {
			return fmt.Errorf("read the followers of the log: %w", err)
		}
		if served > 0 {
			return ErrServed
		}
		var bound logIdentity
		if err := tx.GetContext(ctx, &bound, boundLogSQL+"\nFOR UPDATE"); err != nil {
			return fmt.Errorf("read which log the database belongs to: %w", err)
		}
		if bound.Name == now.Name && bound.Stands == now.Stands {
			return nil
		}
		bound.Stands = cmp.Or(bound.Stands, was.Stands)
		if err := sameLog(bound, was); err != nil {
			return fmt.Errorf("the log to copy from: %w", err)
		}
		if now.Name != was.Name {
			return fmt.Errorf("%s is no copy of %s", now.Name, was.Name)
		}
		if err := movePositions(ctx, tx, from, to); err != nil {
			return err
		}
		return pgpool.Exec(ctx, tx, "bind the database to the copy", rebindLogSQL, now.Stands, now.Name)
	})
}

// movePositions writes all places anew.
func movePositions(ctx context.Context, tx *sqlx.Tx, from, to CopiedLog) error {
	if _, err := tx.ExecContext(ctx, placesTableSQL); err != nil {
		return fmt.Errorf("gather places: %w", err)
	}
	if err := gatherPositions(ctx, tx, from, false); err != nil {
		return err
	}
	if err := gatherPositions(ctx, tx, to, true); err != nil {
		return err
	}
	var differ int
	if err := tx.GetContext(ctx, &differ, placesDifferSQL); err != nil {
		return fmt.Errorf("compare the logs: %w", err)
	}
	if differ > 0 {
		return fmt.Errorf("%d events are in one of the two logs only: copy again", differ)
	}
	for _, statement := range []string{movesTableSQL, "CREATE INDEX ON moves (was_commit, was_prepare)", "ANALYZE moves"} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("compare the logs: %w", err)
		}
	}
	var tables []positionsTable
	if err := tx.SelectContext(ctx, &tables, tablesOfPlacesSQL); err != nil {
		return fmt.Errorf("look for places: %w", err)
	}
	for _, table := range tables {
		for _, statement := range table.moves() {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("move the places of %s: %w", table.Table, err)
			}
		}
	}
	return nil
}

func gatherPositions(ctx context.Context, tx *sqlx.Tx, log CopiedLog, ofCopy bool) error {
	var ids []string
	var commits, prepares []int64
	written := 0
	flush := func() error {
		_, err := tx.ExecContext(ctx, addPlacesSQL, written, ofCopy, pq.Array(ids), pq.Array(commits), pq.Array(prepares))
		if err != nil {
			return fmt.Errorf("gather places: %w", err)
		}
		written += len(ids)
		ids, commits, prepares = ids[:0], commits[:0], prepares[:0]
		return nil
	}
	err := log.Walk(ctx, func(e eventstore.RawEvent) error {
		if e.Type == "$streamDeleted" { // it has an id of its own in each log
			e.ID = uuid.Nil
		}
		ids = append(ids, e.ID.String())
		commits = append(commits, int64(e.Position.Commit))
		prepares = append(prepares, int64(e.Position.Prepare))
		if len(ids) < rebindBatch {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// positionsTable is a table that holds places, and the columns that do.
type positionsTable struct {
	Table, Commit, Prepare string // Prepare is empty where only the commit position is held
}

// moves gives the statements that move the table's places. The new places are negative at
// first, so that none meets an old one where a place is unique. A place without an event
// becomes that of the last event before it; one before the first event becomes none.
func (t positionsTable) moves() []string {
	set, values, order := t.Commit, "-m.now_commit - 2", "(m.was_commit) <= (t."+t.Commit+")"
	none := "-1"
	if t.Prepare != "" {
		set += ", " + t.Prepare
		values += ", m.now_prepare"
		order = fmt.Sprintf("(m.was_commit, m.was_prepare) <= (t.%s, t.%s)", t.Commit, t.Prepare)
		none = "-1, -1"
	}
	return []string{
		fmt.Sprintf(`
UPDATE %s AS t
SET (%s) = ROW (%s)
WHERE t.%s >= 0
  AND NOT EXISTS (SELECT 1 FROM moves m WHERE %s)`, t.Table, set, none, t.Commit, order),
		fmt.Sprintf(`
UPDATE %s AS t
SET (%s) = (
  SELECT %s
  FROM moves m
  WHERE %s
  ORDER BY m.was_commit DESC, m.was_prepare DESC
  LIMIT 1)
WHERE t.%s >= 0`, t.Table, set, values, order, t.Commit),
		fmt.Sprintf(`
UPDATE %s
SET %s = -%s - 2
WHERE %s < -1`, t.Table, t.Commit, t.Commit, t.Commit),
	}
}

package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
)

// schemaName is the schema of a generation. The version is in it so that an
// operator who looks at the database sees which code wrote the rows.
func schemaName(name string, version, number int) string {
	return fmt.Sprintf("%s_v%d_g%d", name, version, number)
}

// Generations change under this advisory lock, so that several services can
// start at once.
const lockGenerationsSQL = `
SELECT pg_advisory_xact_lock(hashtext('humanqa.projections'))`

const insertGenerationSQL = `
INSERT INTO projection_checkpoints (name, generation, version, schema_name, status, serving)
VALUES ($1, $2, $3, $4, 'building', $5)
RETURNING ` + generationColumns

const deleteGenerationSQL = `
DELETE FROM projection_checkpoints
WHERE name = $1
  AND generation = $2`

const lockRowsSQL = `
SELECT ` + generationColumns + `
FROM projection_checkpoints
WHERE name = $1
  AND (serving OR generation = $2)
ORDER BY generation
FOR UPDATE`

const retireSQL = `
UPDATE projection_checkpoints
SET serving = FALSE,
    status = 'retired',
    owner = NULL,
    lease_until = NULL,
    updated_at = clock_timestamp()
WHERE name = $1
  AND generation = $2`

const serveSQL = `
UPDATE projection_checkpoints
SET serving = TRUE,
    status = 'live',
    obstacle = '',
    updated_at = clock_timestamp()
WHERE name = $1
  AND generation = $2
  AND owner = $3
  AND epoch = $4`

const listExpiredSQL = `
SELECT ` + generationColumns + `
FROM projection_checkpoints
WHERE status = 'retired'
  AND updated_at < clock_timestamp() - make_interval(secs => $1)
FOR UPDATE SKIP LOCKED`

// prepare creates what this binary's consumers need: the first generation of a
// new one, with its views, and a next generation where the code's version is
// higher than the one that serves.
func prepare(ctx context.Context, db *sqlx.DB, consumers []Consumer) error {
	return pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, lockGenerationsSQL); err != nil {
			return fmt.Errorf("lock the generations: %w", err)
		}
		all, err := listGenerations(ctx, tx)
		if err != nil {
			return err
		}
		for _, c := range consumers {
			if err := prepareOne(ctx, tx, c, all); err != nil {
				return fmt.Errorf("prepare %s: %w", c.Name(), err)
			}
		}
		return nil
	})
}

func prepareOne(ctx context.Context, tx *sqlx.Tx, c Consumer, all []generation) error {
	serving, building := find(all, c)
	p, rebuildable := c.(Projector)
	switch {
	case !rebuildable && serving == nil:
		_, err := insertGeneration(ctx, tx, c, 1, c.Name(), true)
		return err
	case !rebuildable:
		return nil
	case serving == nil:
		g, err := create(ctx, tx, p, all, true)
		if err != nil {
			return err
		}
		return pointViews(ctx, tx, p, "", g.Schema)
	case serving.Version < p.Version() && building == nil:
		_, err := create(ctx, tx, p, all, false)
		return err
	}
	return nil
}

// find gives the projector's serving generation and the one that its current
// version is building beside it.
func find(all []generation, c Consumer) (serving, building *generation) {
	for i, g := range all {
		switch {
		case g.Name != c.Name() || g.State == Retired:
		case g.Serving:
			serving = &all[i]
		case g.Version == versionOf(c):
			building = &all[i]
		}
	}
	return serving, building
}

// create makes the next generation's row, schema and tables. Builds of other
// versions that were never finished are dropped.
func create(ctx context.Context, tx *sqlx.Tx, p Projector, all []generation, serving bool) (generation, error) {
	number := 1
	for _, g := range all {
		if g.Name != p.Name() {
			continue
		}
		number = max(number, g.Number+1)
		if !g.Serving && g.State != Retired {
			if err := drop(ctx, tx, g); err != nil {
				return generation{}, err
			}
		}
	}
	schema := schemaName(p.Name(), p.Version(), number)
	g, err := insertGeneration(ctx, tx, p, number, schema, serving)
	if err != nil {
		return g, err
	}
	if err := CreateTables(ctx, tx, p, schema); err != nil || !serving {
		return g, err
	}
	return g, createIndexes(ctx, tx, p, schema)
}

func insertGeneration(ctx context.Context, tx *sqlx.Tx, c Consumer, number int, schema string, serving bool) (g generation, err error) {
	err = tx.GetContext(ctx, &g, insertGenerationSQL, c.Name(), number, versionOf(c), schema, serving)
	if err != nil {
		return g, fmt.Errorf("insert the checkpoint: %w", err)
	}
	return g, nil
}

// CreateTables makes the tables of a projector in a schema of their own, without what
// only readers need.
func CreateTables(ctx context.Context, tx *sqlx.Tx, p Projector, schema string) error {
	if _, err := tx.ExecContext(ctx, In(schema, "CREATE SCHEMA {schema}")); err != nil {
		return fmt.Errorf("create schema %s: %w", schema, err)
	}
	for _, t := range p.Tables() {
		if _, err := tx.ExecContext(ctx, In(schema, t.DDL)); err != nil {
			return fmt.Errorf("create table %s.%s: %w", schema, t.Name, err)
		}
	}
	return nil
}

// The mark is part of the transaction that creates them.
const (
	indexedSQL = `
SELECT COALESCE(obj_description(to_regnamespace($1), 'pg_namespace'), '') = 'indexed'`

	markIndexedSQL = `
COMMENT ON SCHEMA {schema} IS 'indexed'`
)

// createIndexes makes the indexes that readers need, once.
func createIndexes(ctx context.Context, tx *sqlx.Tx, p Projector, schema string) error {
	var indexed bool
	if err := tx.GetContext(ctx, &indexed, indexedSQL, schema); err != nil || indexed {
		return err
	}
	for _, t := range p.Tables() {
		if t.Indexes == "" {
			continue
		}
		if _, err := tx.ExecContext(ctx, In(schema, t.Indexes)); err != nil {
			return fmt.Errorf("create the indexes of %s.%s: %w", schema, t.Name, err)
		}
	}
	_, err := tx.ExecContext(ctx, In(schema, markIndexedSQL))
	return err
}

func drop(ctx context.Context, tx *sqlx.Tx, g generation) error {
	if _, err := tx.ExecContext(ctx, deleteGenerationSQL, g.Name, g.Number); err != nil {
		return fmt.Errorf("delete the checkpoint of %s: %w", g.Schema, err)
	}
	if _, err := tx.ExecContext(ctx, In(g.Schema, "DROP SCHEMA IF EXISTS {schema} CASCADE")); err != nil {
		return fmt.Errorf("drop schema %s: %w", g.Schema, err)
	}
	return nil
}

// flipLockWait bounds how long readers are held up behind a flip that waits for
// one of them.
const flipLockWait = 2 * time.Second

// flipWait is how long one flip waits for a lock. It holds the rows of both
// generations meanwhile, so no lease can be renewed: a wait as long as a lease
// would lose it to whoever stands by, who then does the same in turn.
func flipWait(lease time.Duration) time.Duration { return min(flipLockWait, lease/3) }

// flip lets the lease's generation serve, if it has seen at least what the
// serving one has. The row locks hold both runners still for at most about wait.
// The old runner then finds that it owns nothing any more.
func flip(ctx context.Context, db *sqlx.DB, p Projector, l *lease, wait time.Duration) (flipped bool, err error) {
	err = pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", wait.Milliseconds())); err != nil {
			return err
		}
		var rows []generation
		if err := tx.SelectContext(ctx, &rows, lockRowsSQL, l.Name, l.Number); err != nil {
			return err
		}
		var serving generation
		for _, g := range rows {
			if g.Serving {
				serving = g
			}
		}
		if !atLeast(l.stored, serving.checkpoint()) {
			return nil
		}
		if _, err := tx.ExecContext(ctx, retireSQL, serving.Name, serving.Number); err != nil {
			return err
		}
		if err := one(tx.ExecContext(ctx, serveSQL, l.Name, l.Number, l.owner, l.FencingToken)); err != nil {
			return err
		}
		flipped = true
		return pointViews(ctx, tx, p, serving.Schema, l.Schema)
	})
	if err != nil {
		return false, fmt.Errorf("let %s serve: %w", l.Schema, err)
	}
	return flipped, nil
}

// dropRetired removes generations that were replaced some time ago, so that
// hardly anybody can be reading them any more. It does not wait for a reader
// that does.
func dropRetired(ctx context.Context, db *sqlx.DB, after time.Duration) error {
	return pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, "SET LOCAL lock_timeout = '200ms'"); err != nil {
			return err
		}
		var expired []generation
		if err := tx.SelectContext(ctx, &expired, listExpiredSQL, after.Seconds()); err != nil {
			return fmt.Errorf("list retired generations: %w", err)
		}
		for _, g := range expired {
			if err := drop(ctx, tx, g); err != nil {
				return err
			}
		}
		return nil
	})
}

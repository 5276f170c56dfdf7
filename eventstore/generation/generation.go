// Package generation keeps the state of the consumers of the log, in Postgres. A generation of a
// projection is a schema with its tables and a row of projection_checkpoints: its place in
// the log, its lease, its failure. The package also holds the operator's orders: retry,
// skip, rebuild, drop. Package consumer moves the checkpoints.
package generation

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
RETURNING ` + Columns

const deleteGenerationSQL = `
DELETE FROM projection_checkpoints
WHERE name = $1
  AND generation = $2`

const lockRowsSQL = selectSQL + `
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
    updated_at = clock_timestamp()` + ownedSQL

const listExpiredSQL = selectSQL + `
WHERE status = 'retired'
  AND updated_at < clock_timestamp() - make_interval(secs => $1)
FOR UPDATE SKIP LOCKED`

// Consumer is a consumer, as far as its generations depend on it (consumer.Consumer).
type Consumer interface{ Name() string }

// ReadModel is a consumer whose rows can be folded anew from the log (consumer.Projector).
type ReadModel interface {
	Consumer
	Version() int
	Tables() []Table
}

// declared begins the names of declared projections (package projections/declared).
const declared = "declared_"

// Declared is the name, among all consumers, of the projection that a file calls so.
func Declared(name string) string { return declared + name }

// IsDeclared says that a consumer of that name is a declared projection.
func IsDeclared(name string) bool { return strings.HasPrefix(name, declared) }

// Maker is a read model that makes its tables itself, in the schema that was created.
type Maker interface {
	Make(ctx context.Context, tx *sqlx.Tx, schema string) error
}

// Table is a table of a read model, or a view of a table that is listed before. DDL holds
// its CREATE statements, with {schema} where the schema's name belongs. Indexes holds
// the statements for indexes that only readers use. A build beside the serving rows
// creates them after its rows, which costs a fraction and packs them densely. Indexes that
// the fold itself uses belong to the DDL.
type Table struct {
	Name    string
	DDL     string
	Indexes string
	View    bool // it has no rows of its own
}

// In puts the schema's name into a statement. Names come from schemaName only.
func In(schema, query string) string {
	return strings.ReplaceAll(query, "{schema}", schema)
}

// Prepare creates the generations that this binary's consumers need. These are the first
// one of a new consumer, with its views, and a next one where the code's version is
// higher than the serving one.
func Prepare[C Consumer](ctx context.Context, db *sqlx.DB, consumers []C) error {
	return pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
		all, err := lockAll(ctx, tx)
		if err != nil {
			return err
		}
		for _, c := range consumers {
			if err := prepareGeneration(ctx, tx, c, all); err != nil {
				return fmt.Errorf("prepare %s: %w", c.Name(), err)
			}
		}
		return nil
	})
}

// lockAll keeps all generations as they are until the transaction ends, and lists them.
func lockAll(ctx context.Context, tx *sqlx.Tx) ([]Generation, error) {
	if err := pgpool.Exec(ctx, tx, "lock the generations", lockGenerationsSQL); err != nil {
		return nil, err
	}
	return ListAll(ctx, tx)
}

func prepareGeneration(ctx context.Context, tx *sqlx.Tx, c Consumer, all []Generation) error {
	serving, building := Find(all, c)
	p, rebuildable := c.(ReadModel)
	switch {
	case !rebuildable && serving == nil:
		_, err := insertGeneration(ctx, tx, c, 1, c.Name(), true)
		return err
	case !rebuildable:
		return nil
	case serving == nil:
		g, err := createGeneration(ctx, tx, p, all, true)
		if err != nil {
			return err
		}
		return pointViews(ctx, tx, p, "", g.Schema)
	case serving.Version < p.Version() && building == nil:
		_, err := createGeneration(ctx, tx, p, all, false)
		return err
	}
	return nil
}

// Find gives the projector's serving generation and the one that its current
// version is building beside it.
func Find(all []Generation, c Consumer) (serving, building *Generation) {
	for i, g := range all {
		switch {
		case g.Name != c.Name() || g.State == Retired:
		case g.Serving:
			serving = &all[i]
		case g.Version == VersionOf(c):
			building = &all[i]
		}
	}
	return serving, building
}

// createGeneration makes the next generation's row, schema and tables. Builds of other
// versions that were never finished are dropped.
func createGeneration(ctx context.Context, tx *sqlx.Tx, p ReadModel, all []Generation, serving bool) (Generation, error) {
	number := 1
	for _, g := range all {
		if g.Name != p.Name() {
			continue
		}
		number = max(number, g.Number+1)
		if !g.Serving && g.State != Retired {
			if err := dropGeneration(ctx, tx, g); err != nil {
				return Generation{}, err
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
	return g, CreateIndexes(ctx, tx, p, schema)
}

func insertGeneration(ctx context.Context, tx *sqlx.Tx, c Consumer, number int, schema string, serving bool) (Generation, error) {
	return pgpool.One[Generation](ctx, tx, "the new checkpoint", insertGenerationSQL, c.Name(), number, VersionOf(c), schema, serving)
}

// CreateTables makes the tables of a projector in a schema of their own, without the
// indexes that only readers need.
func CreateTables(ctx context.Context, tx *sqlx.Tx, p ReadModel, schema string) error {
	if _, err := tx.ExecContext(ctx, In(schema, "CREATE SCHEMA {schema}")); err != nil {
		return fmt.Errorf("create schema %s: %w", schema, err)
	}
	if m, own := p.(Maker); own {
		return m.Make(ctx, tx, schema)
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

// CreateIndexes makes the indexes that readers need, once.
func CreateIndexes(ctx context.Context, tx *sqlx.Tx, p ReadModel, schema string) error {
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

func dropGeneration(ctx context.Context, tx *sqlx.Tx, g Generation) error {
	if _, err := tx.ExecContext(ctx, deleteGenerationSQL, g.Name, g.Number); err != nil {
		return fmt.Errorf("delete the checkpoint of %s: %w", g.Schema, err)
	}
	return pgpool.Exec(ctx, tx, "drop schema "+g.Schema, In(g.Schema, "DROP SCHEMA IF EXISTS {schema} CASCADE"))
}

// ErrOldCode says that a generation of a newer binary serves.
var ErrOldCode = errors.New("this binary is older than the rows that serve")

// StartBuild creates the next generation, or gives the one that is being built
// already.
func StartBuild(ctx context.Context, tx *sqlx.Tx, p ReadModel) (Generation, error) {
	all, err := lockAll(ctx, tx)
	if err != nil {
		return Generation{}, err
	}
	switch serving, building := Find(all, p); {
	case building != nil:
		return *building, nil
	case serving == nil:
		return Generation{}, fmt.Errorf("projection %s was never started", p.Name())
	case serving.Version > p.Version():
		return Generation{}, fmt.Errorf("projection %s: version %d, not %d: %w", p.Name(), p.Version(), serving.Version, ErrOldCode)
	}
	return createGeneration(ctx, tx, p, all, false)
}

// VersionOf is the version of a consumer's rows. Rows that cannot be rebuilt have
// only one version.
func VersionOf(c Consumer) int {
	if p, ok := c.(ReadModel); ok {
		return p.Version()
	}
	return 1
}

// flipLockWait bounds how long readers are held up behind a flip that waits for one of them.
// Two such waits end before Postgres looks for a deadlock (deadlock_timeout, a second). So a
// reader of several views, which waits for the flip in turn, is not the one that it ends.
const flipLockWait = 500 * time.Millisecond

// FlipWait is how long one flip waits for a lock. The flip holds the rows of both
// generations meanwhile, so no lease can be renewed. A wait as long as a lease
// would lose it to a process that stands by, which would then lose it in the same way.
func FlipWait(lease time.Duration) time.Duration { return min(flipLockWait, lease/3) }

// lockWait bounds how long a transaction waits for a lock.
func lockWait(d time.Duration) string {
	return fmt.Sprintf("SET LOCAL lock_timeout = %d", d.Milliseconds())
}

// Flip lets the lease's generation serve, if it has seen at least as much as the
// serving one. The row locks hold both runners still for at most about wait. The
// old runner then finds that it owns nothing any more.
func Flip(ctx context.Context, db *sqlx.DB, p ReadModel, l *Lease, wait time.Duration) (flipped bool, err error) {
	err = pgpool.InTxSet(ctx, db, lockWait(wait), func(tx *sqlx.Tx) error {
		rows, err := pgpool.List[Generation](ctx, tx, "the checkpoints", lockRowsSQL, l.Gen.Name, l.Gen.Number)
		if err != nil {
			return err
		}
		var serving Generation
		for _, g := range rows {
			if g.Serving {
				serving = g
			}
		}
		if !AtLeast(l.Stored, serving.Checkpoint()) {
			return nil
		}
		if _, err := tx.ExecContext(ctx, retireSQL, serving.Name, serving.Number); err != nil {
			return err
		}
		if err := l.exec(ctx, tx, serveSQL); err != nil {
			return err
		}
		flipped = true
		return pointViews(ctx, tx, p, serving.Schema, l.Gen.Schema)
	})
	if err != nil {
		return false, fmt.Errorf("let %s serve: %w", l.Gen.Schema, err)
	}
	return flipped, nil
}

// DropRetired removes generations that were replaced some time ago, so that
// hardly any reader is left. It does not wait for a reader that is left.
func DropRetired(ctx context.Context, db *sqlx.DB, after time.Duration) error {
	return pgpool.InTxSet(ctx, db, lockWait(200*time.Millisecond), func(tx *sqlx.Tx) error {
		expired, err := pgpool.List[Generation](ctx, tx, "the retired generations", listExpiredSQL, after.Seconds())
		if err != nil {
			return err
		}
		for _, g := range expired {
			if err := dropGeneration(ctx, tx, g); err != nil {
				return err
			}
		}
		return nil
	})
}

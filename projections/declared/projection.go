package declared

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/pgpool"
)

// Limits bound what one projection may take.
type Limits struct {
	Batch   time.Duration // for a batch
	WorkMem string        // as Postgres' setting
	Rows    int64         // of all tables, as Postgres counts them
	Bytes   int64         // of all tables, indexes included
}

// DefaultLimits are those of a service (decisions, "Declared projections").
func DefaultLimits() Limits {
	return Limits{Batch: 10 * time.Second, WorkMem: "64MB", Rows: 10_000_000, Bytes: 5 << 30}
}

// Projection runs a File as a read model.
type Projection struct {
	File

	limits Limits
	owners *Owners
	role   string
}

// Name implements consumer.Consumer.
func (p *Projection) Name() string { return generation.Declared(p.File.Name) }

// Version implements consumer.Projector.
func (p *Projection) Version() int { return p.File.Version }

// Tables implements consumer.Projector. Make makes them.
func (p *Projection) Tables() []consumer.Table {
	tables := make([]consumer.Table, len(p.names))
	for i, name := range p.names {
		tables[i].Name = name
	}
	return tables
}

// Handles implements consumer.Consumer. The first event of a stream names its account, and is
// cheaper to keep than to look up.
func (p *Projection) Handles() []string {
	handles := slices.Clone(p.Events)
	for _, e := range p.Events {
		family, _, _ := strings.Cut(e, ".")
		if first := firsts[family]; first != "" && !slices.Contains(handles, first) {
			handles = append(handles, first)
		}
	}
	return handles
}

// The settings of a batch hold until the transaction ends. Those of generation.PlanOnce are
// for statements that are planned once; these are planned for each batch.
const beginBatchSQL = `
SELECT set_config('humanqa.batch', $1, true),
    set_config('statement_timeout', $2, true),
    set_config('lock_timeout', '1s', true),
    set_config('work_mem', $3, true),
    set_config('max_parallel_workers_per_gather', '0', true),
    set_config('enable_seqscan', 'on', true),
    set_config('enable_bitmapscan', 'on', true),
    set_config('role', $4, true)`

const applySQL = `
SELECT {schema}.apply();
RESET ROLE;
SET LOCAL statement_timeout TO DEFAULT`

// Apply implements consumer.Projector.
func (p *Projection) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	rows, err := p.owners.rows(ctx, p.Events, batch)
	if err != nil || rows == nil {
		return err
	}
	return p.fold(ctx, tx, schema, string(rows))
}

// fold applies a batch as JSON.
func (p *Projection) fold(ctx context.Context, tx *sqlx.Tx, schema, rows string) error {
	if _, err := tx.ExecContext(ctx, beginBatchSQL, rows, milliseconds(p.limits.Batch), p.limits.WorkMem, p.role); err != nil {
		return fmt.Errorf("begin a batch of %s: %w", p.Name(), err)
	}
	if _, err := tx.ExecContext(ctx, consumer.In(schema, applySQL)); err != nil {
		return p.failed(ctx, err)
	}
	return p.checkSize(ctx, tx, schema)
}

func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// failed names the bound that a batch met.
func (p *Projection) failed(ctx context.Context, err error) error {
	var refused *pq.Error
	if errors.As(err, &refused) && refused.Code == "57014" && ctx.Err() == nil {
		return &consumer.HopelessError{Err: fmt.Errorf("apply: a batch took longer than %s and was ended", p.limits.Batch)}
	}
	return fmt.Errorf("apply: %w", err)
}

// Postgres counts rows a moment late, so the transaction's own are added.
const sizeSQL = `
SELECT COALESCE(SUM(pg_total_relation_size(oid)), 0) AS bytes,
    COALESCE(SUM(pg_stat_get_live_tuples(oid) + pg_stat_get_xact_tuples_inserted(oid) - pg_stat_get_xact_tuples_deleted(oid)), 0) AS rows
FROM pg_class
WHERE relnamespace = to_regnamespace($1)
  AND relkind = 'r'`

func (p *Projection) checkSize(ctx context.Context, tx *sqlx.Tx, schema string) error {
	is, err := pgpool.One[struct{ Bytes, Rows int64 }](ctx, tx, "the size of "+schema, sizeSQL, schema)
	switch {
	case err != nil:
		return err
	case is.Rows > p.limits.Rows:
		return &consumer.HopelessError{Err: fmt.Errorf("its tables have %d rows, of at most %d", is.Rows, p.limits.Rows)}
	case is.Bytes > p.limits.Bytes:
		return &consumer.HopelessError{Err: fmt.Errorf("its tables have %d bytes, of at most %d", is.Bytes, p.limits.Bytes)}
	}
	return nil
}

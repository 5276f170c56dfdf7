package generation

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
)

var (
	// ErrRuns says that a process still keeps a projection up to date.
	ErrRuns = errors.New("a process still runs it: stop that first")
	// ErrNone says that a projection has no generation.
	ErrNone = errors.New("there is no projection")
)

const lockAllSQL = selectSQL + `
WHERE name = $1
ORDER BY generation
FOR UPDATE`

const runsSQL = `
SELECT COALESCE(bool_or(lease_until > clock_timestamp()), false)
FROM projection_checkpoints
WHERE name = $1`

const forgetSQL = `
WITH orders AS (
    DELETE FROM projection_rebuilds
    WHERE name = $1
)
DELETE FROM projection_skips
WHERE name = $1`

// Drop removes a read model that no binary runs any more: every generation's schema, the
// views, the checkpoints, and the operators' orders. It fails if other objects depend on the
// views. The caller makes sure that its own binary does not run the read model.
func Drop(ctx context.Context, db *sqlx.DB, name string) error {
	return pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
		if err := pgpool.Exec(ctx, tx, "lock the generations", lockGenerationsSQL); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, lockWait(flipLockWait)); err != nil {
			return err
		}
		all, err := pgpool.List[Generation](ctx, tx, "the checkpoints of "+name, lockAllSQL, name)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return fmt.Errorf("%w %s", ErrNone, name)
		}
		owned, err := pgpool.One[bool](ctx, tx, "the processes that run "+name, runsSQL, name)
		switch {
		case err != nil:
			return err
		case owned:
			return fmt.Errorf("projection %s: %w", name, ErrRuns)
		}
		for _, g := range all {
			if err := dropViews(ctx, tx, g.Schema); err != nil {
				return err
			}
			if err := dropGeneration(ctx, tx, g); err != nil {
				return err
			}
		}
		return pgpool.Exec(ctx, tx, "forget the orders for "+name, forgetSQL, name)
	})
}

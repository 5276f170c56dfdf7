package pgpool

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// InTx commits all that f did, or nothing. The commit waits for the disk, as each session
// of a pool does.
func InTx(ctx context.Context, db *sqlx.DB, f func(*sqlx.Tx) error) error {
	return InTxSet(ctx, db, "", f)
}

// InTxSet is InTx under settings: SET LOCAL statements without parameters, which take one
// round trip together.
func InTxSet(ctx context.Context, db *sqlx.DB, settings string, f func(*sqlx.Tx) error) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing, else its error changes nothing
	if settings != "" {
		if _, err := tx.ExecContext(ctx, settings); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
	}
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

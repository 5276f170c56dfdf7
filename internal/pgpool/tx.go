package pgpool

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// InTx commits what f did, or nothing. Whether the commit waits for the disk is
// the server's default.
func InTx(ctx context.Context, db *sqlx.DB, f func(*sqlx.Tx) error) error {
	return inTx(ctx, db, "", alone(f))
}

// InTxDurable is InTx whose commit waits for the disk, whatever the server's
// default is.
func InTxDurable(ctx context.Context, db *sqlx.DB, f func(*sqlx.Tx) error) error {
	return inTx(ctx, db, "SET LOCAL synchronous_commit = on", alone(f))
}

// InTxAsync is InTx whose commit does not wait for the disk: a crash of the
// server may forget it, whole.
func InTxAsync(ctx context.Context, db *sqlx.DB, f func(*sqlx.Tx) error) error {
	return inTx(ctx, db, "SET LOCAL synchronous_commit = off", alone(f))
}

// InTxSet is InTxPipelined for which settings hold that are SET LOCAL, as statements
// without parameters: they go out with its BEGIN. A connection that Postgres has closed
// meanwhile is replaced by another one.
func InTxSet(ctx context.Context, db *sqlx.DB, settings string, f func(context.Context, *sqlx.Tx) error) error {
	done := false
	err := inTx(context.WithValue(ctx, pipelinedKey{}, true), db, settings, func(ctx context.Context, tx *sqlx.Tx) error {
		err := f(ctx, tx)
		done = err == nil
		return err
	})
	if errors.Is(err, driver.ErrBadConn) && !done { // so it was not committed
		return inTx(ctx, db, settings, f)
	}
	return err
}

func inTx(ctx context.Context, db *sqlx.DB, begin string, f func(context.Context, *sqlx.Tx) error) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing, else the work is lost anyway
	if begin != "" {
		if _, err := tx.ExecContext(later(ctx), begin); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
	}
	if err := f(ctx, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// alone is for what needs no context of its own.
func alone(f func(*sqlx.Tx) error) func(context.Context, *sqlx.Tx) error {
	return func(_ context.Context, tx *sqlx.Tx) error { return f(tx) }
}

package pgpool

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// ErrNoSessions says that a pooler in transaction mode is behind the address: it gives each
// transaction any of its sessions, and keeps none for a client.
var ErrNoSessions = errors.New("the address leads to a pooler in transaction mode, which keeps no session")

// sessionTries bounds the looks for a session of a pooler: each look finds it out unless another
// client takes the session in between.
const sessionTries = 10

const sessionPIDSQL = `SELECT pg_backend_pid()`

// CheckSessions gives ErrNoSessions where two connections share a session of the server, or one
// gets several. The second connection is in a transaction meanwhile, so the first one then gets
// another session, or waits.
func CheckSessions(ctx context.Context, db *sqlx.DB) error {
	first, err := db.Connx(ctx)
	if err != nil {
		return fmt.Errorf("connect to postgres: %w", err)
	}
	defer func() { _ = first.Close() }() // it only read
	second, err := db.Connx(ctx)
	if err != nil {
		return fmt.Errorf("connect to postgres: %w", err)
	}
	defer func() { _ = second.Close() }() // it only read
	own := 0
	for range sessionTries {
		is, err := One[int](ctx, first, "the session", sessionPIDSQL)
		if err != nil {
			return err
		}
		other, err := inTransaction(ctx, second)
		if err != nil {
			return err
		}
		if other == is || own != 0 && own != is {
			return ErrNoSessions
		}
		own = is
	}
	return nil
}

// inTransaction is the session that a transaction on the connection has.
func inTransaction(ctx context.Context, on *sqlx.Conn) (pid int, err error) {
	tx, err := on.BeginTxx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	return One[int](ctx, tx, "the session", sessionPIDSQL)
}

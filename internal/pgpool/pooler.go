package pgpool

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// ErrNoSessions says that a pooler in transaction mode is behind the address: it gives each
// transaction any of its sessions, and keeps none for a client.
var ErrNoSessions = errors.New("the address leads to a pooler in transaction mode, which keeps no session")

// OpenShared is Open by way of a pooler in transaction mode. Nothing is prepared there, and no
// session has settings but the two that a pooler brings along. CheckDefaults says whether the
// others are right without.
func OpenShared(ctx context.Context, dsn string) (*sqlx.DB, error) {
	config, err := pq.NewConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the database url: %w", err)
	}
	config.BinaryParameters = true // one round trip for a statement and its parameters
	config.Runtime = maps.Clone(config.Runtime)
	if config.Runtime == nil {
		config.Runtime = map[string]string{}
	}
	config.Runtime["timezone"] = "UTC"
	inner, err := pq.NewConnectorConfig(config)
	if err != nil {
		return nil, fmt.Errorf("read the database url: %w", err)
	}
	inner.Dialer(new(dialer))
	return open(ctx, connector{Connector: inner, shared: true})
}

// Each transaction asks for it anew: a role that has been changed since the start has its new
// default in the pooler's next session.
const durableSQL = `
SELECT set_config('synchronous_commit', 'on', true)
WHERE current_setting('synchronous_commit') = 'off'`

// execDurably runs a statement in a transaction whose commit waits for the disk.
func (c *conn) execDurably(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	tx, err := c.BeginTx(ctx, driver.TxOptions{})
	if err != nil {
		return nil, err
	}
	result, err := c.pqConn.ExecContext(ctx, query, args)
	if err != nil {
		_ = tx.Rollback() // the statement's error tells more
		return nil, err
	}
	return result, tx.Commit()
}

// A pooler brings client_encoding and timezone along.
const defaultsSQL = `
SELECT name
FROM ` + wantedSQL + `
WHERE current_setting(name, true) <> value
  AND name NOT IN ('client_encoding', 'timezone')
UNION ALL
SELECT 'synchronous_commit'
WHERE current_setting('synchronous_commit') = 'off'
UNION ALL
SELECT 'search_path'
WHERE NOT 'public' = ANY(current_schemas(false))
  AND to_regclass('projection_checkpoints') IS NULL`

// CheckDefaults names the settings of the server, the database or the role that break what the
// service promises, where no session sets its own.
func CheckDefaults(ctx context.Context, dsn string) (err error) {
	plain, err := sql.Open("postgres", dsn)
	if err != nil {
		return fmt.Errorf("read the database url: %w", err)
	}
	defer func() { err = errors.Join(err, plain.Close()) }()
	wrong, err := List[string](ctx, sqlx.NewDb(plain, "postgres"), "the defaults of a session", defaultsSQL)
	if err != nil || len(wrong) == 0 {
		return err
	}
	return fmt.Errorf("the server, the database or the role sets %s, which no session can change behind a pooler in transaction mode",
		strings.Join(wrong, ", "))
}

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

// Package pgpool opens connection pools that prepare what they run.
//
// lib/pq parses and plans a statement with parameters anew each time it runs.
// For our short statements that costs Postgres more than running them: a key
// lookup is planned in 0.14 ms and run in 0.02 ms. So each connection keeps the
// statements it has seen prepared, the ones used last, and callers write plain
// ExecContext and QueryContext. Statements without parameters are passed
// through: they are transaction control and schema changes.
//
// Postgres plans a prepared statement anew by itself when a table or view
// under it changes. Only one whose result has got other columns in the meantime
// has to be prepared again: outside a transaction that is done here, inside one
// the transaction fails and the next one finds it prepared anew.
//
// It also waits for the answer to each statement, which on a busy machine takes longer
// than to run it. What need not be waited for goes out with the next statement
// (InTxPipelined, Later), on connections without TLS.
package pgpool

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// kept is how many statements a connection keeps prepared: more than the
// service has.
const kept = 256

// Open connects to a Postgres URL or keyword string.
func Open(ctx context.Context, dsn string) (*sqlx.DB, error) {
	inner, err := pq.NewConnector(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the database url: %w", err)
	}
	inner.Dialer(wireDialer{})
	db := sqlx.NewDb(sql.OpenDB(connector{inner}), "postgres")
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to postgres: %w", err), db.Close())
	}
	return db, nil
}

type connector struct{ driver.Connector }

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	var made *wire
	opened, err := c.Connector.Connect(context.WithValue(ctx, wireKey{}, &made))
	if err != nil {
		return nil, err
	}
	inner, ok := opened.(pqConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's %T lacks what this package stands on", opened), opened.Close())
	}
	// What is pushed out is closed at once. An error of that is the
	// connection's, and comes back with its next use.
	prepared, err := simplelru.NewLRU(kept, func(_ string, s statement) { _ = s.Close() })
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return &conn{pqConn: inner, prepared: prepared, wire: made}, nil
}

// pqConn is what database/sql can make use of in lib/pq's connection.
type pqConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// conn is one connection. database/sql lets one goroutine at a time use it.
type conn struct {
	pqConn
	prepared *simplelru.LRU[string, statement]
	wire     *wire
	inTx     bool
}

// holding has what is requested until the end held back, if ctx allows it.
func (c *conn) holding(ctx context.Context, key any) (_ context.Context, end func()) {
	if ctx.Value(key) == nil {
		return ctx, func() {}
	}
	c.wire.hold = true
	return context.WithoutCancel(ctx), func() { c.wire.hold = false }
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) == 0 {
		ctx, end := c.holding(ctx, laterKey{})
		defer end()
		return c.pqConn.ExecContext(ctx, query, args)
	}
	return run(ctx, c, query, func(s statement) (driver.Result, error) {
		ctx, end := c.holding(ctx, laterKey{})
		defer end()
		return s.ExecContext(ctx, args)
	})
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if len(args) == 0 {
		return c.pqConn.QueryContext(ctx, query, args)
	}
	return run(ctx, c, query, func(s statement) (driver.Rows, error) { return s.QueryContext(ctx, args) })
}

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	_, end := c.holding(ctx, pipelinedKey{})
	tx, err := c.pqConn.BeginTx(ctx, opts)
	end()
	if err != nil {
		return nil, err
	}
	c.inTx = true
	return &transaction{tx, c}, nil
}

type transaction struct {
	driver.Tx
	conn *conn
}

func (t *transaction) Commit() error {
	t.conn.inTx = false
	return t.Tx.Commit()
}

func (t *transaction) Rollback() error {
	t.conn.inTx = false
	return t.Tx.Rollback()
}

// run finds or prepares the statement and does it.
func run[R any](ctx context.Context, c *conn, query string, do func(statement) (R, error)) (result R, err error) {
	for again := !c.inTx; ; again = false {
		s, ok := c.prepared.Get(query)
		if !ok {
			if s, err = c.prepare(ctx, query); err != nil {
				return result, err
			}
		}
		result, err = do(s)
		if !outdated(err) {
			return result, err
		}
		c.prepared.Remove(query)
		if !again {
			return result, err
		}
	}
}

func (c *conn) prepare(ctx context.Context, query string) (statement, error) {
	made, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s, ok := made.(statement)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's %T lacks what this package stands on", made), made.Close())
	}
	c.prepared.Add(query, s)
	return s, nil
}

// outdated says that the statement was prepared for a result with other
// columns: "cached plan must not change result type". Nothing was run.
func outdated(err error) bool {
	var refused *pq.Error
	return errors.As(err, &refused) && refused.Code == "0A000" && refused.Routine == "RevalidateCachedQuery"
}

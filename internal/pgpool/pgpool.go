// Package pgpool opens connection pools that prepare their statements.
//
// lib/pq parses and plans a statement with parameters anew each time. For our short
// statements that costs Postgres more than running them: a key look-up is planned in
// 0.14 ms and run in 0.02 ms. So each connection keeps its latest statements prepared,
// and callers write plain ExecContext and QueryContext. Statements without parameters
// are passed through: they are transaction control and schema changes.
//
// Postgres plans a prepared statement anew by itself when a table or view under it
// changes. A statement must be prepared again only if its result has got other columns.
// Outside a transaction the pool does that. Inside one the transaction fails, and the
// next one finds it prepared anew.
//
// A connection whose context ends is ended soon after (silent.go): the driver would wait for
// a silent server for ever.
package pgpool

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// kept is how many statements a connection keeps prepared: more than the
// service has.
const kept = 256

// IdleTime is how long a connection stays open that no caller uses.
const IdleTime = time.Minute

// Open connects to a Postgres URL or keyword string. Its sessions have the service's settings
// (session.go), whatever the server's are.
func Open(ctx context.Context, dsn string) (*sqlx.DB, error) {
	config, err := pq.NewConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the database url: %w", err)
	}
	inner, err := Connector(config, new(dialer), "")
	if err != nil {
		return nil, err
	}
	return open(ctx, connector{Connector: inner})
}

func open(ctx context.Context, c connector) (*sqlx.DB, error) {
	db := sqlx.NewDb(sql.OpenDB(c), "postgres")
	db.SetConnMaxIdleTime(IdleTime)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to postgres: %w", err), db.Close())
	}
	return db, nil
}

type connector struct {
	driver.Connector

	shared bool // the connections have no session of their own (OpenShared)
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	var below socket
	stop := context.AfterFunc(ctx, func() { below.endAt(time.Unix(1, 0)) }) // the driver's greeting has no context
	opened, err := c.Connector.Connect(context.WithValue(ctx, socketKey{}, &below))
	if err == nil && !stop() {
		err = errors.Join(ctx.Err(), opened.Close())
	}
	if err != nil {
		return nil, err
	}
	inner, ok := opened.(pqConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's %T lacks methods that this package needs", opened), opened.Close())
	}
	// An evicted statement is closed at once. An error of the close is the
	// connection's, and comes back with its next use.
	prepared, _ := simplelru.NewLRU(kept, func(_ string, s statement) { _ = s.Close() }) // the size is positive
	return &conn{pqConn: inner, prepared: prepared, shared: c.shared, socket: &below}, nil
}

// pqConn holds the interfaces of lib/pq's connection that database/sql uses.
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
	shared   bool // nothing is prepared: the next transaction may have another session
	inTx     bool
	copying  driver.Stmt // the transaction's last COPY; nil: none

	socket    *socket
	stopWatch func() bool // nil: no context is watched
	ended     bool        // a context ended while the connection was in use
}

// Close implements driver.Conn. The driver first tells the server that it closes. That fails
// on a connection that the network broke, which is no error: nothing is pending on it.
func (c *conn) Close() error {
	c.unwatch()
	err := c.pqConn.Close()
	if _, network := errors.AsType[*net.OpError](err); network || errors.Is(err, driver.ErrBadConn) {
		return nil
	}
	return err
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	defer func() { err = c.leaveStandby(err, readOnly) }()
	c.watch(ctx)
	switch {
	case len(args) == 0 || c.shared && c.inTx:
		return c.pqConn.ExecContext(ctx, query, args)
	case c.shared:
		return c.execDurably(ctx, query, args)
	}
	return run(ctx, c, query, func(s statement) (driver.Result, error) { return s.ExecContext(ctx, args) })
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	defer func() { err = c.leaveStandby(err, readOnly) }()
	c.watch(ctx)
	if len(args) == 0 || c.shared {
		return c.pqConn.QueryContext(ctx, query, args)
	}
	return run(ctx, c, query, func(s statement) (driver.Rows, error) { return s.QueryContext(ctx, args) })
}

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	c.watch(ctx)
	tx, err := c.pqConn.BeginTx(ctx, opts)
	if err != nil {
		return nil, c.leaveStandby(err, noWrites)
	}
	c.inTx = true
	if c.shared {
		if _, err := c.pqConn.ExecContext(ctx, durableSQL, nil); err != nil {
			c.inTx = false
			return nil, errors.Join(fmt.Errorf("have the commit wait for the disk: %w", err), tx.Rollback())
		}
	}
	return &transaction{tx, c}, nil
}

type transaction struct {
	driver.Tx
	conn *conn
}

func (t *transaction) Commit() error {
	t.conn.endTx()
	return t.Tx.Commit()
}

func (t *transaction) Rollback() error {
	t.conn.endTx()
	return t.Tx.Rollback()
}

// endTx ends a COPY before the transaction ends. Until then the driver reads the connection in
// a goroutine of its own, and database/sql would roll back in the middle when a context ends.
func (c *conn) endTx() {
	c.inTx = false
	if c.copying != nil {
		_ = c.copying.Close() // a second close does nothing; an unfinished COPY is discarded
		c.copying = nil
	}
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	made, err := c.pqConn.PrepareContext(ctx, query)
	if _, ok := made.(interface {
		CopyData(ctx context.Context, line string) (driver.Result, error)
	}); ok {
		c.copying = made
	}
	return made, err
}

// run finds or prepares the statement, and runs it.
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
		return nil, errors.Join(fmt.Errorf("the driver's %T lacks methods that this package needs", made), made.Close())
	}
	c.prepared.Add(query, s)
	return s, nil
}

// outdated says that the statement was prepared for a result with other
// columns: "cached plan must not change result type". Nothing was run.
func outdated(err error) bool {
	refused, ok := errors.AsType[*pq.Error](err)
	return ok && refused.Code == "0A000" && refused.Routine == "RevalidateCachedQuery"
}

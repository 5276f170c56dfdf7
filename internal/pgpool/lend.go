package pgpool

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// Lend gives a pool that holds at most most connections of another pool at a time; that one
// may be lent itself. A caller that keeps a connection for long, or that asks the other pool
// for a second one meanwhile, takes it from the lent pool. With most below the other pool's
// limit, all others find a connection that comes back soon, and no two callers wait for each
// other.
func Lend(of *sqlx.DB, most int) *sqlx.DB {
	lent := sqlx.NewDb(sql.OpenDB(lender{of.DB}), of.DriverName())
	lent.SetMaxOpenConns(most)
	lent.SetMaxIdleConns(most)
	lent.SetConnMaxIdleTime(IdleTime) // one that was opened for a caller that has left holds a connection
	return lent
}

type lender struct{ of *sql.DB }

// Connect implements driver.Connector.
func (l lender) Connect(ctx context.Context) (driver.Conn, error) {
	b := &borrower{of: l.of}
	if err := b.borrow(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// Driver implements driver.Connector.
func (l lender) Driver() driver.Driver { return l.of.Driver() }

// borrower is a connection of a lent pool. It has one of the other pool while it is in use, and
// none while it is idle.
type borrower struct {
	*conn

	of   *sql.DB
	held *sql.Conn // holds conn for this borrower; nil while it is idle
}

func (b *borrower) borrow(ctx context.Context) error {
	held, err := b.of.Conn(ctx)
	if err != nil {
		return err
	}
	err = held.Raw(func(inner any) error {
		switch inner := inner.(type) {
		case *conn:
			b.conn = inner
		case *borrower:
			b.conn = inner.conn
		default:
			return fmt.Errorf("a %T cannot be lent", inner)
		}
		return nil
	})
	if err != nil {
		_ = held.Close() // it goes back
		return err
	}
	b.held = held
	return nil
}

// Close implements driver.Conn: it gives the connection back.
func (b *borrower) Close() error {
	if b.held == nil {
		return nil
	}
	held := b.held
	b.held, b.conn = nil, nil
	return held.Close()
}

// IsValid implements driver.Validator. It is asked whenever the borrower becomes idle.
func (b *borrower) IsValid() bool { return b.Close() == nil }

// ResetSession implements driver.SessionResetter. It is asked when an idle borrower is used
// again. database/sql passes over every other error.
func (b *borrower) ResetSession(ctx context.Context) error {
	if err := b.borrow(ctx); err != nil {
		return driver.ErrBadConn
	}
	return nil
}

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
	lent.SetMaxIdleConns(-1) // none: the other pool keeps them
	return lent
}

type lender struct{ of *sql.DB }

// Connect implements driver.Connector.
func (l lender) Connect(ctx context.Context) (driver.Conn, error) {
	held, err := l.of.Conn(ctx)
	if err != nil {
		return nil, err
	}
	b := &borrower{held: held}
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
		return nil, err
	}
	return b, nil
}

// Driver implements driver.Connector.
func (l lender) Driver() driver.Driver { return l.of.Driver() }

// borrower is a connection of a lent pool: one of the other pool, from its opening to its end.
type borrower struct {
	*conn

	held *sql.Conn // holds conn for this borrower
}

// Close implements driver.Conn: it gives the connection back.
func (b *borrower) Close() error { return b.held.Close() }

package pgpool

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/jmoiron/sqlx"
)

// counted counts what goes out.
type counted struct {
	net.Conn
	n *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	c.n.Add(1)
	return c.Conn.Write(p)
}

// CountRequests counts what the pool's only connection sends from now on.
func CountRequests(ctx context.Context, db *sqlx.DB) (n *atomic.Int64, err error) {
	n = &atomic.Int64{}
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // back to the pool
	return n, c.Raw(func(driverConn any) error {
		w := driverConn.(*conn).wire
		w.Conn = counted{w.Conn, n}
		return nil
	})
}

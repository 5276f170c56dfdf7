package pgpool

import (
	"context"
	"database/sql/driver"
	"net"
	"sync/atomic"
	"time"
)

// A server may fall silent on a connection that stays open: its machine is gone, or a network
// drops the packets. After a context ends the driver asks the server to cancel, and then
// waits for its answer without a limit. So the pool ends such a connection itself, soon
// after the context.

// cancelTime is the time for a server to answer a cancelled statement, before its connection
// is given up.
const cancelTime = 5 * time.Second

// socket is the network connection below a connection of the driver.
type socket struct{ conn atomic.Pointer[net.Conn] }

// endAt makes every read and write fail from the given time on.
func (s *socket) endAt(at time.Time) {
	if c := s.conn.Load(); c != nil {
		_ = (*c).SetDeadline(at) // it fails only where the connection is closed
	}
}

type socketKey struct{}

// dialer stores each new connection in the socket that its context carries.
type dialer struct{ net.Dialer }

// DialContext implements pq.DialerContext.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	opened, err := d.Dialer.DialContext(ctx, network, address)
	if s, ok := ctx.Value(socketKey{}).(*socket); ok && err == nil {
		s.conn.Store(&opened)
	}
	return opened, err
}

// DialTimeout implements pq.Dialer.
func (d *dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// watch bounds the use of the connection by the context, until the connection is given back
// to the pool (IsValid) or its next statement begins. A transaction has one context for all of
// its statements and its end.
func (c *conn) watch(ctx context.Context) {
	if !c.inTx {
		c.unwatch()
		c.stopWatch = context.AfterFunc(ctx, func() { c.socket.endAt(time.Now().Add(cancelTime)) })
	}
}

// unwatch notes whether the context ended: then the connection has a deadline, and is not
// used again.
func (c *conn) unwatch() {
	if c.stopWatch != nil && !c.stopWatch() {
		c.ended = true
	}
	c.stopWatch = nil
}

// IsValid implements driver.Validator. It is asked whenever the connection comes back.
func (c *conn) IsValid() bool {
	c.unwatch()
	return !c.ended && c.pqConn.IsValid()
}

// ResetSession implements driver.SessionResetter.
func (c *conn) ResetSession(ctx context.Context) error {
	if c.ended {
		return driver.ErrBadConn
	}
	return c.pqConn.ResetSession(ctx)
}

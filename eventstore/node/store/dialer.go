package store

import (
	"context"
	"net"
	"time"
)

// dialer makes connections that fail when an answer takes longer than so much. For the
// driver to bound a statement by its context costs a goroutine that it hands over to, and
// a timer, for each.
type dialer struct{ patience time.Duration }

// DialContext implements pq.DialerContext.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	var plain net.Dialer
	c, err := plain.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &patient{c, d.patience}, nil
}

// Dial implements pq.Dialer; the driver uses DialContext.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout implements pq.Dialer; the driver uses DialContext.
func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

type patient struct {
	net.Conn

	patience time.Duration
}

// Write implements net.Conn. What is written is a request; the next reads are its answer.
func (p *patient) Write(b []byte) (int, error) {
	if err := p.SetDeadline(time.Now().Add(p.patience)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

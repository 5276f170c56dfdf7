package store

import (
	"context"
	"net"
	"time"
)

// dialer makes connections that fail when an answer takes longer than patience. If the
// driver bounded statements by their contexts, each would cost a goroutine to hand over to,
// and a timer.
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

// Write implements net.Conn. Each write is a request, and the next reads are its answer.
func (p *patient) Write(b []byte) (int, error) {
	if err := p.SetDeadline(time.Now().Add(p.patience)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

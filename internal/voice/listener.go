package voice

import (
	"net"
	"sync"
)

const (
	// maxConns bounds the connections to the TCP port, of which a browser needs one. The
	// owner of a connection is unknown until its first message names a place.
	maxConns = 2 * maxOnServer
	// maxConnsFrom bounds those of one address, behind which may be a whole office.
	maxConnsFrom = maxConns / 8
)

// bounded is a listener that hangs up on connections beyond its bounds. It does not wait
// for a place: a holder of all of them would keep all others waiting.
type bounded struct {
	net.Listener

	mu   sync.Mutex
	all  int
	from map[string]int
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host, _, _ := net.SplitHostPort(conn.RemoteAddr().String()) // TCP has one
		if b.admitHost(host) {
			return &place{Conn: conn, leave: sync.OnceFunc(func() { b.releaseHost(host) })}, nil
		}
		_ = conn.Close() // nothing was sent
	}
}

func (b *bounded) admitHost(host string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all >= maxConns || b.from[host] >= maxConnsFrom {
		return false
	}
	b.all++
	b.from[host]++
	return true
}

func (b *bounded) releaseHost(host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all--
	if b.from[host]--; b.from[host] == 0 {
		delete(b.from, host)
	}
}

// place is a connection that gives its place back when it is closed.
type place struct {
	net.Conn
	leave func()
}

func (p *place) Close() error {
	p.leave()
	return p.Conn.Close()
}

// Package strangers bounds the connections to an address that all networks can reach. A
// connection is a stranger's until it is known: the protocol above has seen that it may be
// there. The number of strangers is bounded, and so are each one's bytes and time.
package strangers

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrTooMuch ends a stranger that sends more than it may.
var ErrTooMuch = errors.New("a connection sent too much before it was known")

// Listener does not wait for a place, since silent strangers would keep all clients waiting.
// Where there are too many, it closes the oldest one of the address that has most. So strangers
// of few addresses keep no other address out.
type Listener struct {
	net.Listener
	Most  int           // strangers at a time
	Bytes int           // that may be read of each
	Time  time.Duration // until it has to be known

	mu   sync.Mutex
	open []*Conn // all strangers, the oldest first
}

// Conn is a connection that the listener accepted.
type Conn struct {
	net.Conn
	among *Listener
	from  netip.Prefix
	timer *time.Timer
	known atomic.Bool
	left  int // bytes that may still be read of a stranger; of the goroutine that reads
}

// Accept implements net.Listener. It gives a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: conn, among: l, from: network(conn.RemoteAddr()), left: l.Bytes}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.Most {
		l.closeOne()
	}
	l.open = append(l.open, c)
	c.timer = time.AfterFunc(l.Time, func() { _ = c.Close() })
	return c, nil
}

// network is where a connection comes from: by IPv6 one machine may have a whole /64.
func network(a net.Addr) netip.Prefix {
	from, _ := netip.ParseAddrPort(a.String())
	ip, bits := from.Addr().Unmap(), 32
	if ip.Is6() {
		bits = 64
	}
	all, _ := ip.Prefix(bits) // an address that is no IP's has them all
	return all
}

// closeOne makes room for a stranger. The mutex is held.
func (l *Listener) closeOne() {
	of, most := map[netip.Prefix]int{}, 0
	for _, c := range l.open {
		of[c.from]++
		most = max(most, of[c.from])
	}
	if i := slices.IndexFunc(l.open, func(c *Conn) bool { return of[c.from] == most }); i >= 0 {
		_ = l.open[i].Conn.Close() // ends the read that it waits in
		l.open[i].leave()
	}
}

// Close closes the strangers, too.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		_ = c.Conn.Close() // nothing was said
	}
	return l.Listener.Close()
}

// leave takes the connection off the strangers. The listener's mutex is held.
func (c *Conn) leave() {
	if c.known.CompareAndSwap(false, true) {
		c.among.open = slices.DeleteFunc(c.among.open, func(o *Conn) bool { return o == c })
		c.timer.Stop()
	}
}

// Know says that the connection is no stranger's any more.
func (c *Conn) Know() {
	c.among.mu.Lock()
	defer c.among.mu.Unlock()
	c.leave()
}

func (c *Conn) Read(b []byte) (int, error) {
	if c.known.Load() {
		return c.Conn.Read(b)
	}
	if c.left == 0 {
		return 0, ErrTooMuch
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.Know()
	return c.Conn.Close()
}

// AuthType makes the connection known to gRPC's calls, as credentials.AuthInfo.
func (c *Conn) AuthType() string { return "basic" }

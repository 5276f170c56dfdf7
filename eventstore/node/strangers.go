package node

import (
	"container/list"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A connection to the TLS address is a stranger's until one of its calls has a password. The
// number of strangers is bounded, and so are each one's bytes and time.
const (
	maxStrangers = 128
	// strangerBytes has room for a handshake, and for the calls that a client makes before it
	// signs in.
	strangerBytes = 128 << 10
	// strangerTime is how long a connection may take to its first call with a password.
	strangerTime = 10 * time.Second
)

var errStranger = errors.New("too much was sent before a password")

// strangers is a listener that closes the stranger that came first when there are too many.
// It does not wait for a place: silent strangers would keep all clients waiting.
type strangers struct {
	net.Listener
	mu   sync.Mutex
	open list.List // of *guest, all strangers, the oldest first
}

// guest is a connection to the TLS address.
type guest struct {
	net.Conn
	among *strangers
	place *list.Element // among the strangers, under the listener's mutex
	timer *time.Timer
	known atomic.Bool // it is no stranger any more
	left  int         // bytes that may still be read of a stranger; of the goroutine that reads
}

func (l *strangers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &guest{Conn: conn, among: l, left: strangerBytes}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open.Len() >= maxStrangers {
		oldest, _ := l.open.Front().Value.(*guest)
		oldest.leave()
		_ = oldest.Conn.Close() // ends the read that it waits in
	}
	g.place = l.open.PushBack(g)
	g.timer = time.AfterFunc(strangerTime, func() { _ = g.Close() })
	return g, nil
}

// leave takes the guest off the strangers. The listener's mutex is held.
func (g *guest) leave() {
	if g.known.CompareAndSwap(false, true) {
		g.among.open.Remove(g.place)
		g.timer.Stop()
	}
}

// know says that the guest is no stranger any more.
func (g *guest) know() {
	g.among.mu.Lock()
	defer g.among.mu.Unlock()
	g.leave()
}

func (g *guest) Read(b []byte) (int, error) {
	if g.known.Load() {
		return g.Conn.Read(b)
	}
	if g.left == 0 {
		return 0, errStranger
	}
	n, err := g.Conn.Read(b[:min(len(b), g.left)])
	g.left -= n
	return n, err
}

func (g *guest) Close() error {
	g.know()
	return g.Conn.Close()
}

// AuthType makes the guest known to its calls.
func (g *guest) AuthType() string { return "basic" }

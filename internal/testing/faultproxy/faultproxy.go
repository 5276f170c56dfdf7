// Package faultproxy is a TCP proxy that breaks the network between two parts of a test in
// a chosen way. The way can change while connections are open.
//
// A fault ends with the next Set: bytes that were held back then go on, like packets when
// a network recovers. A connection that was cut stays cut. The dice are seeded, so a
// repeat draws the same numbers; the scheduler still decides which bytes draw them.
package faultproxy

import (
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Mode is one way to break the network. HalfOpen and Cut draw their direction.
type Mode string

const (
	Healthy  Mode = "healthy"
	Latency  Mode = "latency"   // each chunk comes 1 to 200 ms late
	Slow     Mode = "slow"      // a chunk comes in a trickle of a few bytes
	Cut      Mode = "cut"       // now and then a chunk ends in its middle, with a reset
	HalfOpen Mode = "half-open" // nothing passes in one direction, and no side gets an error
	Refuse   Mode = "refuse"    // a new connection is reset at once
	Hang     Mode = "hang"      // a new connection is accepted, and leads nowhere
	Reorder  Mode = "reorder"   // each new connection is held for up to 200 ms, so that later ones pass earlier ones
)

// Faults are all modes but the healthy one.
func Faults() []Mode { return []Mode{Latency, Slow, Cut, HalfOpen, Refuse, Hang, Reorder} }

const (
	chunkBytes   = 16 << 10
	longestDelay = 200 * time.Millisecond
	trickleBytes = 64
	trickleDelay = 5 * time.Millisecond
	cutOneIn     = 20 // chunks
	forever      = time.Hour
)

// The directions: from the client to the server, and back.
const up, down = "up", "down"

// Proxy forwards connections to one address.
type Proxy struct {
	network, address string
	listener         net.Listener
	running          sync.WaitGroup
	ended            chan struct{}

	mu      sync.Mutex // guards all below
	dice    *rand.Rand
	mode    Mode
	changed chan struct{} // closed and replaced by Set
	blocked string        // of HalfOpen
	links   map[*link]struct{}
	counts  map[string]int
}

// link is one connection of a client, and the one to the server.
type link struct {
	client, server net.Conn
	once           sync.Once
	ended          chan struct{}
}

// New listens on loopback until the end of the test, and forwards to the address. network
// is tcp or unix.
func New(t testing.TB, network, address string, dice *rand.Rand) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	if err != nil {
		t.Fatalf("listen for a proxy to %s: %v", address, err)
	}
	p := &Proxy{
		network: network, address: address, listener: listener, ended: make(chan struct{}), dice: dice,
		mode: Healthy, changed: make(chan struct{}), links: map[*link]struct{}{}, counts: map[string]int{},
	}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr is the address that clients dial.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set changes the mode, of open connections too.
func (p *Proxy) Set(mode Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode, p.blocked = mode, []string{up, down}[p.dice.IntN(2)]
	close(p.changed)
	p.changed = make(chan struct{})
}

// Sever resets every open connection.
func (p *Proxy) Sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		p.counts["connections severed"]++
		l.end(true)
	}
}

// Counts tells how often the proxy did each thing.
func (p *Proxy) Counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

func (p *Proxy) count(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[what]++
}

// close ends every connection, and waits for all goroutines.
func (p *Proxy) close() {
	close(p.ended)
	_ = p.listener.Close() // its error does not matter any more
	p.Sever()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.count("connections")
		p.running.Go(func() { p.admit(client) })
	}
}

// admit lets a new connection pass when the mode does.
func (p *Proxy) admit(client net.Conn) {
	l := &link{client: client, ended: make(chan struct{})}
	p.mu.Lock()
	p.links[l] = struct{}{}
	p.mu.Unlock()
	defer func() {
		l.end(false)
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	}()
	if !p.door(l) {
		return
	}
	server, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial(p.network, p.address)
	if err != nil {
		p.count("server refused")
		l.end(true)
		return
	}
	p.mu.Lock()
	l.server = server
	p.mu.Unlock()
	if !p.wait(l.ended, nil, 0) { // it ended while the server was dialled
		_ = server.Close()
		return
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { p.pump(l, up, server, client) })
	pumps.Go(func() { p.pump(l, down, client, server) })
	pumps.Wait()
}

// door waits until the mode lets the connection pass or end, and says whether it may pass.
func (p *Proxy) door(l *link) bool {
	for told := false; p.wait(l.ended, nil, 0); told = true {
		p.mu.Lock()
		mode, changed := p.mode, p.changed
		held := time.Duration(p.dice.Int64N(int64(longestDelay)))
		p.mu.Unlock()
		switch mode {
		case Refuse:
			p.count("connections refused")
			l.end(true)
			return false
		case Hang:
			if !told {
				p.count("connections hung")
			}
			if !p.wait(l.ended, changed, forever) {
				return false
			}
		case Reorder:
			p.count("connections reordered")
			return p.wait(l.ended, nil, held)
		default:
			return true
		}
	}
	return false
}

// wait ends with the event or after the time. It is false if the link or the proxy ended first.
func (p *Proxy) wait(gone, event <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-event:
	case <-timer.C:
	case <-gone:
	case <-p.ended:
	}
	select {
	case <-gone:
		return false
	case <-p.ended:
		return false
	default:
		return true
	}
}

// pump passes bytes and their end on in one direction.
func (p *Proxy) pump(l *link, d string, to, from net.Conn) {
	chunk := make([]byte, chunkBytes)
	for {
		n, err := from.Read(chunk)
		if n > 0 && !p.pass(l, d, to, chunk[:n]) {
			l.end(false)
			return
		}
		if err != nil {
			half, ok := to.(interface{ CloseWrite() error })
			if !errors.Is(err, io.EOF) || !ok || half.CloseWrite() != nil {
				l.end(true)
			}
			return
		}
	}
}

// pass writes one chunk as the mode says. It is false once the connection has ended.
func (p *Proxy) pass(l *link, d string, to net.Conn, chunk []byte) bool {
	for len(chunk) > 0 {
		p.mu.Lock()
		mode, changed, blocked := p.mode, p.changed, p.blocked == d
		delay := time.Millisecond + time.Duration(p.dice.Int64N(int64(longestDelay)))
		cut, middle := p.dice.IntN(cutOneIn) == 0, p.dice.IntN(len(chunk))
		p.mu.Unlock()
		n := len(chunk)
		switch {
		case mode == Latency:
			p.count("chunks delayed")
			if !p.wait(l.ended, changed, delay) {
				return false
			}
		case mode == Slow:
			n = min(n, trickleBytes)
			p.count("trickles")
			if !p.wait(l.ended, changed, trickleDelay) {
				return false
			}
		case mode == Cut && cut:
			p.count("cut " + d)
			_, _ = to.Write(chunk[:middle]) // the reset follows in any case
			l.end(true)
			return false
		case mode == HalfOpen && blocked:
			p.count("chunks held")
			if !p.wait(l.ended, changed, forever) {
				return false
			}
			continue
		}
		if _, err := to.Write(chunk[:n]); err != nil {
			return false
		}
		chunk = chunk[n:]
	}
	return true
}

// end closes both sides, with a reset if asked for.
func (l *link) end(reset bool) {
	l.once.Do(func() {
		close(l.ended)
		for _, c := range []net.Conn{l.client, l.server} {
			if c == nil {
				continue
			}
			if tcp, ok := c.(*net.TCPConn); ok && reset {
				_ = tcp.SetLinger(0) // without it the close is an orderly one
			}
			_ = c.Close() // it may be closed
		}
	})
}

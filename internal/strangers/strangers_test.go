package strangers

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"humanqa/internal/testing/must"
)

// callers is a listener at which one connection after the other comes.
type callers struct {
	net.Listener
	next net.Conn
}

func (c *callers) Accept() (net.Conn, error) { return c.next, nil }

func (c *callers) Close() error { return nil }

// caller is the far end of a connection from an address.
type caller struct {
	net.Conn
	from net.Addr
}

func (c caller) RemoteAddr() net.Addr { return c.from }

const most, patience = 128, 10 * time.Second

func listen() (l *Listener, accept func(from string) (theirs net.Conn, ours *Conn)) {
	came := &callers{}
	l = &Listener{Listener: came, Most: most, Bytes: 1, Time: patience}
	return l, func(from string) (theirs net.Conn, ours *Conn) {
		theirs, near := net.Pipe()
		came.next = caller{near, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 7))}
		conn, _ := l.Accept()
		ours, _ = conn.(*Conn)
		return theirs, ours
	}
}

func ended(theirs net.Conn) bool {
	return errors.Is(theirs.SetReadDeadline(time.Time{}), io.ErrClosedPipe) // as a pipe says it
}

func TestOneStrangerMoreReplacesTheOldestAndEachHasItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, accept := listen()
		client, known := accept("10.0.0.1")
		known.Know()
		oldest, _ := accept("10.0.0.1")
		var rest []net.Conn
		for range most - 1 {
			theirs, _ := accept("10.0.0.1")
			rest = append(rest, theirs)
		}
		if ended(oldest) {
			t.Error("there was room, and the oldest was closed")
		}
		last, _ := accept("10.0.0.1")
		if !ended(oldest) || ended(rest[0]) || ended(last) || ended(client) {
			t.Error("one more does not close the oldest, and that one only")
		}
		<-time.After(patience)
		synctest.Wait()
		for _, theirs := range append(rest, last) {
			if !ended(theirs) {
				t.Error("a stranger is kept beyond its time")
			}
		}
		if ended(client) || len(l.open) != 0 {
			t.Errorf("the client's connection ended, or %d strangers are left", len(l.open))
		}
		must.NoError(t, known.Close())
	})
}

// By IPv6 a whole /64 may be one machine's.
func TestStrangersOfFewAddressesKeepNoOtherAddressOut(t *testing.T) {
	t.Parallel()
	l, accept := listen()
	other, _ := accept("10.0.0.1")
	far, _ := accept("2001:db8:1::1")
	for n := range 5 * most {
		_, _ = accept([]string{"10.0.0.2", "10.0.0.3", fmt.Sprintf("2001:db8:2::%x", n)}[n%3])
	}
	if ended(other) || ended(far) {
		t.Error("the only stranger of an address was closed")
	}
	must.NoError(t, l.Close())
	if !ended(other) || !ended(far) {
		t.Error("the listener is closed, and its strangers are kept")
	}
}

package voice

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/pion/stun/v4"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// One account's rooms leave places for the others'.
func TestPlacesAreBoundedByAccount(t *testing.T) {
	t.Parallel()
	s := opened(t)
	took := map[string]*room{}
	for n := range maxOnAccount {
		name := fmt.Sprint("room ", n)
		r, err := s.enterRoom("acme", name)
		must.NoError(t, err)
		took[name] = r
	}
	if _, err := s.enterRoom("acme", "one more"); !errors.Is(err, ErrFull) {
		t.Errorf("one more: %v", err)
	}
	other, err := s.enterRoom("globex", "room")
	if err != nil {
		t.Errorf("another account: %v", err)
	}
	s.leaveRoom("acme", "room 7", took["room 7"])
	again, err := s.enterRoom("acme", "room 7")
	if err != nil {
		t.Errorf("after one has left: %v", err)
	}
	s.leaveRoom("globex", "room", other)
	took["room 7"] = again
	for name, r := range took {
		s.leaveRoom("acme", name, r)
	}
	if s.count != 0 || len(s.of) != 0 || len(s.rooms) != 0 {
		t.Errorf("left are %d places, %v, %d rooms", s.count, s.of, len(s.rooms))
	}
}

func TestWhoAnswersNoOfferLeaves(t *testing.T) {
	t.Parallel()
	s := opened(t)
	ann := joins(t, s, "room", Guest{Key: "ann"})
	ann.sees(1)
	s.answerTime = time.Millisecond
	mute := pipe{make(chan Message, 64), make(chan Message, 64)}
	over := make(chan error, 1)
	go func() { over <- s.Join(t.Context(), "room", Guest{Key: "bob"}, mute) }()
	if err := <-over; !errors.Is(err, errNoAnswer) {
		t.Errorf("it ended with %v", err)
	}
	ann.sees(1)
	select {
	case err := <-ann.over:
		t.Errorf("who answered has left, too: %v", err)
	default:
	}
}

// Three seconds of sound that a network held back come at once. Nothing of it is dropped,
// but a flood is.
func TestSoundThatComesLateIsPassedOn(t *testing.T) {
	t.Parallel()
	const opus, flood = 50, 1000 // packets a second
	may, now := allowance(), time.Now()
	for n := range 10 {
		if now = now.Add(3 * time.Second); !may.AllowN(now, 3*opus) {
			t.Fatalf("stall %d: a packet is dropped", n)
		}
	}
	passed := 0
	for range 10 * flood {
		if now = now.Add(time.Second / flood); may.AllowN(now, 1) {
			passed++
		}
	}
	if most := maxAtOnce + 10*maxPackets; passed > most {
		t.Errorf("%d packets of a flood are passed on, more than %d", passed, most)
	}
}

// dials connects to the TCP port from an address of the loopback, and says something.
func dials(t *testing.T, at net.Addr, from string, say []byte) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", at.String())
	must.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = conn.Write(say) // it may be closed already
	return conn
}

// ends waits until the server has closed a connection.
func ends(t *testing.T, conn net.Conn) {
	t.Helper()
	must.NoError(t, conn.SetReadDeadline(time.Now().Add(eventually.Patience)))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection stays open: %v", err)
	}
}

// names is a first message that names a browser.
func names(t *testing.T, browser string) []byte {
	t.Helper()
	m, err := stun.Build(stun.TransactionID, stun.BindingRequest, stun.NewUsername(browser+":x"))
	must.NoError(t, err)
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(m.Raw))), m.Raw...)
}

func TestStrangersAtTheTCPPortKeepNoBrowserOut(t *testing.T) {
	t.Parallel()
	s := opened(t)
	for n := range 800 {
		dials(t, s.Addr(), fmt.Sprint("127.0.0.", 2+n%8), nil)
	}
	for _, said := range [][]byte{names(t, "nobody"), make([]byte, 2), {0xff, 0xff}, []byte("GET / HTTP/1.1\r\n\r\n")} {
		ends(t, dials(t, s.Addr(), "127.0.0.1", said))
	}
	ann, bob := joins(t, s, "room", Guest{Key: "tcp ann"}), joins(t, s, "room", Guest{Key: "tcp bob"})
	ann.hears(10, bob)
	bob.hears(10, ann)
}

func TestABrowserHasAFewConnectionsToTheTCPPort(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.NoError(t, err)
	p := newPort(l)
	_, err = p.GetConnByUfrag("ann", false, net.IPv4(127, 0, 0, 1))
	must.NoError(t, err)
	has := func(want int) {
		t.Helper()
		eventually.Within(t, eventually.Patience, func() error {
			p.mu.Lock()
			defer p.mu.Unlock()
			if got := p.conns["ann"]; got != want {
				return fmt.Errorf("it has %d connections, want %d", got, want)
			}
			return nil
		})
	}
	dial := func() net.Conn { return dials(t, l.Addr(), "127.0.0.1", names(t, "ann")) }
	var open []net.Conn
	for range maxConnsOf {
		open = append(open, dial())
	}
	has(maxConnsOf)
	ends(t, dial())
	must.NoError(t, open[0].Close())
	has(maxConnsOf - 1)
	open[0] = dial()
	has(maxConnsOf)
	p.RemoveConnByUfrag("ann")
	for _, conn := range append(open, dial()) {
		ends(t, conn)
	}
	has(0)
	silent := dials(t, l.Addr(), "127.0.0.1", nil)
	must.NoError(t, p.Close())
	ends(t, silent)
}

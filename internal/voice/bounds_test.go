package voice

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// One account's rooms leave places for the others'.
func TestPlacesAreBoundedByAccount(t *testing.T) {
	t.Parallel()
	s := listen(t)
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
	s := listen(t)
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

// Connections that say nothing take no more than their share of the TCP port.
func TestConnectionsToTheTCPPortAreBounded(t *testing.T) {
	t.Parallel()
	s := listen(t)
	var dialer net.Dialer
	dial := func() net.Conn {
		conn, err := dialer.DialContext(t.Context(), "tcp", s.Addr().String())
		must.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	var open []net.Conn
	for range maxConnsFrom {
		open = append(open, dial())
	}
	more := dial()
	must.NoError(t, more.SetReadDeadline(time.Now().Add(eventually.Patience)))
	if _, err := more.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one more stays open: %v", err)
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	eventually.True(t, "the places are free again", func() bool {
		conn := dial()
		must.NoError(t, conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
		_, err := conn.Read(make([]byte, 1))
		return errors.Is(err, os.ErrDeadlineExceeded)
	})
}

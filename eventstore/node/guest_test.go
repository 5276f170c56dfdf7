package node

import (
	"errors"
	"io"
	"net"
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

func TestOneStrangerMoreReplacesTheOldestAndEachHasItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		came := &callers{}
		listener := &strangers{Listener: came}
		accept := func() (theirs net.Conn, ours *guest) {
			theirs, came.next = net.Pipe()
			conn, err := listener.Accept()
			must.NoError(t, err)
			ours, _ = conn.(*guest)
			return theirs, ours
		}
		ended := func(theirs net.Conn) bool {
			return errors.Is(theirs.SetReadDeadline(time.Time{}), io.ErrClosedPipe) // as a pipe says it
		}
		client, known := accept()
		known.know()
		oldest, _ := accept()
		var rest []net.Conn
		for range maxStrangers - 1 {
			theirs, _ := accept()
			rest = append(rest, theirs)
		}
		if ended(oldest) {
			t.Error("there was room, and the oldest was closed")
		}
		last, _ := accept()
		if !ended(oldest) || ended(rest[0]) || ended(last) || ended(client) {
			t.Error("one more does not close the oldest, and that one only")
		}
		<-time.After(strangerTime)
		synctest.Wait()
		for _, theirs := range append(rest, last) {
			if !ended(theirs) {
				t.Error("a stranger is kept beyond its time")
			}
		}
		if ended(client) || listener.open.Len() != 0 {
			t.Errorf("the client's connection ended, or %d strangers are left", listener.open.Len())
		}
		must.NoError(t, known.Close())
	})
}

package store

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"humanqa/internal/testing/must"
)

// Without this a connection that died silently would hang the log.
func TestAnAnswerThatDoesNotComeIsAnError(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, l.Close()) })
	c, err := dialer{time.Millisecond}.DialContext(t.Context(), "tcp", l.Addr().String())
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, c.Close()) })
	_, err = c.Write([]byte("a request"))
	must.NoError(t, err)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

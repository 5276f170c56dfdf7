package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// capped serves at most limit connections; GET /hold answers once release is closed.
func capped(t *testing.T, limit int) (addr net.Addr, l *cappedListener, release chan struct{}) {
	t.Helper()
	release = make(chan struct{})
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			<-release
		}
	})
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.NoError(t, err)
	l, ok := CapConns(ln, limit, quiet()).(*cappedListener)
	if !ok {
		t.Fatal("the listener is another one")
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- Serve(ctx, NewServer(h, quiet()), l, time.Minute) }()
	t.Cleanup(func() {
		stop()
		must.NoError(t, <-stopped)
	})
	return ln.Addr(), l, release
}

type dialled struct {
	net.Conn
	answers *bufio.Reader
}

func connect(t *testing.T, addr net.Addr) dialled {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), addr.Network(), addr.String())
	must.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	must.NoError(t, conn.SetDeadline(time.Now().Add(eventually.Patience)))
	return dialled{conn, bufio.NewReader(conn)}
}

func (d dialled) ask(t *testing.T, path string) {
	t.Helper()
	_, err := io.WriteString(d, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
	must.NoError(t, err)
}

func (d dialled) answer(t *testing.T) (status int, header http.Header, body string) {
	t.Helper()
	res, err := http.ReadResponse(d.answers, nil)
	must.NoError(t, err)
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	must.NoError(t, err)
	return res.StatusCode, res.Header, string(all)
}

// count is how many connections are open, and how many of them wait.
func (l *cappedListener) count() [2]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return [2]int{l.open, l.waiting.Len()}
}

func TestOneConnectionTooManyTakesThePlaceOfTheOneThatWaitsLongest(t *testing.T) {
	t.Parallel()
	addr, l, release := capped(t, 3)
	asked := connect(t, addr)
	asked.ask(t, "/")
	status, _, _ := asked.answer(t)
	equal(t, status, http.StatusOK)
	// The answer reaches the client before the listener hears that the connection waits.
	eventually.True(t, "one waits", func() bool { return l.count() == [2]int{1, 1} })
	silent := connect(t, addr) // never sends a request
	eventually.True(t, "both wait", func() bool { return l.count() == [2]int{2, 2} })
	held := connect(t, addr)
	held.ask(t, "/hold")
	eventually.True(t, "two of three wait", func() bool { return l.count() == [2]int{3, 2} })

	fresh := connect(t, addr)
	fresh.ask(t, "/hold")
	_, err := asked.answers.ReadByte() // it has waited since its answer
	if !errors.Is(err, io.EOF) {
		t.Errorf("the idle connection: %v", err)
	}
	eventually.True(t, "one of three waits", func() bool { return l.count() == [2]int{3, 1} })
	second := connect(t, addr)
	second.ask(t, "/hold")
	if _, err := silent.answers.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the silent connection: %v", err)
	}
	eventually.True(t, "each has a request", func() bool { return l.count() == [2]int{3, 0} })

	over := connect(t, addr)
	over.ask(t, "/")
	status, header, body := over.answer(t)
	equal(t, status, http.StatusServiceUnavailable)
	equal(t, header.Get("Retry-After"), "5")
	if !strings.Contains(body, `"code":"UNAVAILABLE"`) || !strings.Contains(body, `"requestId":"`+header.Get("X-Request-Id")+`"`) {
		t.Errorf("got %s", body)
	}
	close(release)
	for _, c := range []dialled{held, fresh, second} { // nobody at work was cut off
		status, _, _ := c.answer(t)
		equal(t, status, http.StatusOK)
		must.NoError(t, c.Close())
	}
	eventually.True(t, "all places are free", func() bool { return l.count() == [2]int{0, 0} })
}

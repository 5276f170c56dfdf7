package faultproxy_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/faultproxy"
	"humanqa/internal/testing/must"
)

// echo answers every byte with itself, and notes the first byte of each connection.
type echo struct {
	net.Listener

	mu    sync.Mutex
	first []byte
}

func newEcho(t *testing.T, network, address string) *echo {
	t.Helper()
	listener, err := net.Listen(network, address) //nolint:noctx // at once
	must.NoError(t, err)
	e := &echo{Listener: listener}
	t.Cleanup(func() { _ = e.Close() })
	go func() {
		for {
			conn, err := e.Accept()
			if err != nil {
				return
			}
			go e.serve(conn)
		}
	}()
	return e
}

func (e *echo) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	buffer := make([]byte, 1<<10)
	for heard := 0; ; {
		n, err := conn.Read(buffer)
		if n > 0 && heard == 0 {
			e.mu.Lock()
			e.first = append(e.first, buffer[0])
			e.mu.Unlock()
		}
		heard += n
		if _, failed := conn.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

func (e *echo) order() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.first)
}

func setup(t *testing.T) (*faultproxy.Proxy, *echo) {
	t.Helper()
	e := newEcho(t, "tcp", "127.0.0.1:0")
	return faultproxy.New(t, "tcp", e.Addr().String(), rand.New(rand.NewPCG(1, 2))), e
}

func dial(t *testing.T, p *faultproxy.Proxy) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr()) //nolint:noctx // at once
	must.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// say sends a text and gives its echo, or the error of the connection.
func say(conn net.Conn, text string, limit time.Duration) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte(text)); err != nil {
		return "", err
	}
	back := make([]byte, len(text))
	n, err := io.ReadFull(conn, back)
	return string(back[:n]), err
}

func mustSay(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if back, err := say(conn, text, eventually.Patience); err != nil || back != text {
		t.Fatalf("said %q, heard %q, %v", text, back, err)
	}
}

const short = 100 * time.Millisecond // a wait that is meant to end in vain

func TestAHealthyProxyPassesBytesAndTheirEnd(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	newEcho(t, "unix", socket)
	overTCP, _ := setup(t)
	for _, p := range []*faultproxy.Proxy{overTCP, faultproxy.New(t, "unix", socket, rand.New(rand.NewPCG(1, 2)))} {
		conn := dial(t, p)
		large := bytes.Repeat([]byte("0123456789"), 50_000)
		go func() {
			_, _ = conn.Write(large) // the reader sees a failure
			_ = conn.CloseWrite()
		}()
		back, err := io.ReadAll(conn)
		if err != nil || !bytes.Equal(back, large) {
			t.Errorf("%d of %d bytes came back: %v", len(back), len(large), err)
		}
		if n := p.Counts()["connections"]; n != 1 {
			t.Errorf("%d connections were counted", n)
		}
	}
}

func TestLatencyAndATrickleDelayAndLoseNothing(t *testing.T) {
	t.Parallel()
	for mode, counted := range map[faultproxy.Mode]string{faultproxy.Latency: "chunks delayed", faultproxy.Slow: "trickles"} {
		p, _ := setup(t)
		conn := dial(t, p)
		mustSay(t, conn, "hello")
		p.Set(mode)
		text := string(bytes.Repeat([]byte("x"), 500))
		began := time.Now()
		for range 3 {
			mustSay(t, conn, text)
		}
		if took := time.Since(began); took < 6*time.Millisecond {
			t.Errorf("%s took %s", mode, took)
		}
		if p.Counts()[counted] < 6 {
			t.Errorf("%s counted %v", mode, p.Counts())
		}
	}
}

func TestACutResetsBothSidesInTheMiddleOfAChunk(t *testing.T) {
	t.Parallel()
	p, _ := setup(t)
	p.Set(faultproxy.Cut)
	eventually.True(t, "both directions are cut", func() bool {
		conn := dial(t, p)
		for range 100 {
			if _, err := say(conn, "hello", eventually.Patience); err != nil {
				if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("a cut ends with %v", err)
				}
				break
			}
		}
		return p.Counts()["cut up"] > 0 && p.Counts()["cut down"] > 0
	})
	p.Set(faultproxy.Healthy)
	mustSay(t, dial(t, p), "hello")
}

func TestAHalfOpenConnectionPassesNothingUntilItHeals(t *testing.T) {
	t.Parallel()
	p, e := setup(t)
	heard := 0
	for n := range 20 { // both directions are drawn
		conn := dial(t, p)
		mustSay(t, conn, "a")
		before := len(e.order())
		p.Set(faultproxy.HalfOpen)
		back, err := say(conn, "hello", short)
		var late net.Error
		if back != "" || !errors.As(err, &late) || !late.Timeout() {
			t.Fatalf("round %d: heard %q, %v", n, back, err)
		}
		fresh := dial(t, p)
		_, _ = say(fresh, "b", short) // it is half-open too, and the echo may have heard it
		if len(e.order()) > before {
			heard++
		}
		p.Set(faultproxy.Healthy)
		must.NoError(t, conn.SetDeadline(time.Now().Add(eventually.Patience)))
		rest := make([]byte, len("hello"))
		if _, err := io.ReadFull(conn, rest); err != nil || string(rest) != "hello" {
			t.Fatalf("round %d: after it healed %q came, %v", n, rest, err)
		}
	}
	if heard == 0 || heard == 20 {
		t.Errorf("of 20 rounds %d blocked the way back", heard)
	}
}

func TestNewConnectionsAreRefusedOrHang(t *testing.T) {
	t.Parallel()
	p, _ := setup(t)
	open := dial(t, p)
	mustSay(t, open, "a")
	p.Set(faultproxy.Refuse)
	if conn, err := net.Dial("tcp", p.Addr()); err == nil { //nolint:noctx // at once
		if _, err := say(conn, "b", eventually.Patience); err == nil {
			t.Error("a new connection was not refused")
		}
		_ = conn.Close()
	}
	mustSay(t, open, "those that are open go on")
	p.Set(faultproxy.Hang)
	hung := dial(t, p)
	var late net.Error
	if _, err := say(hung, "c", short); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("a new connection did not hang: %v", err)
	}
	p.Set(faultproxy.Healthy)
	must.NoError(t, hung.SetDeadline(time.Now().Add(eventually.Patience)))
	if _, err := io.ReadFull(hung, make([]byte, 1)); err != nil {
		t.Errorf("a hung connection does not go on: %v", err)
	}
	if c := p.Counts(); c["connections refused"] != 1 || c["connections hung"] != 1 {
		t.Errorf("counted %v", c)
	}
}

func TestOpenConnectionsAreSevered(t *testing.T) {
	t.Parallel()
	p, _ := setup(t)
	open := dial(t, p)
	mustSay(t, open, "a")
	p.Sever()
	if _, err := say(open, "b", eventually.Patience); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("a severed connection ends with %v", err)
	}
	mustSay(t, dial(t, p), "c")
	if n := p.Counts()["connections severed"]; n != 1 {
		t.Errorf("%d connections were severed", n)
	}
}

// The end of the test waits for every connection: none may outlive its link.
func TestAConnectionThatIsSeveredWhileItIsMadeEnds(t *testing.T) {
	t.Parallel()
	p, _ := setup(t)
	var dialling sync.WaitGroup
	for range 8 {
		dialling.Go(func() {
			for range 50 {
				if conn, err := net.Dial("tcp", p.Addr()); err == nil { //nolint:noctx // at once
					_, _ = io.ReadFull(conn, make([]byte, 1)) // until it is severed
					_ = conn.Close()
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { dialling.Wait(); close(done) }()
	for {
		select {
		case <-done:
			return
		default:
			p.Sever()
		}
	}
}

func TestLaterConnectionsPassEarlierOnes(t *testing.T) {
	t.Parallel()
	p, e := setup(t)
	p.Set(faultproxy.Reorder)
	var talking sync.WaitGroup
	for n := range byte(10) {
		conn := dial(t, p)
		_, err := conn.Write([]byte{n})
		must.NoError(t, err)
		talking.Go(func() {
			if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
				t.Errorf("connection %d: %v", n, err)
			}
		})
	}
	talking.Wait()
	order := e.order()
	if slices.IsSorted(order) {
		t.Errorf("the connections were heard in order: %v", order)
	}
	if slices.Sort(order); !slices.Equal(order, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("of ten connections came %v", order)
	}
}

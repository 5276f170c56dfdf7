package kurrentdb_test

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kurrent-io/KurrentDB-Client-Go/kurrentdb"
)

// relay passes connections on to the node until it is cut.
type relay struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	noError(t, err)
	r := &relay{Listener: l}
	t.Cleanup(r.cut)
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			node, err := new(net.Dialer).DialContext(t.Context(), "tcp", to)
			r.mu.Lock()
			r.conns = append(r.conns, from)
			if err == nil {
				r.conns = append(r.conns, node)
				go func() { _, _ = io.Copy(node, from) }() // ends with the connections
				go func() { _, _ = io.Copy(from, node) }()
			}
			r.mu.Unlock()
		}
	}()
	return r
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.Close() // it may be cut already
	for _, conn := range r.conns {
		_ = conn.Close()
	}
}

// asked counts how often a call has asked for its context's deadline.
type asked struct {
	context.Context
	times atomic.Int32
}

func (a *asked) Deadline() (time.Time, bool) {
	a.times.Add(1)
	return a.Context.Deadline()
}

// The gate's first habit: an error is logged, and then the client looks for its node.
func TestAnErrorIsLoggedBeforeItIsActedOn(t *testing.T) {
	config := settings(t)
	r := newRelay(t, config.Address)
	config.Address, config.MaxDiscoverAttempts = r.Addr().String(), 1
	var mu sync.Mutex
	var said []string
	config.Logger = func(_ kurrentdb.LogLevel, format string, _ ...any) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, format)
	}
	client := connect(t, config)
	appends := func() error {
		_, err := client.AppendToStream(t.Context(), "away", kurrentdb.AppendToStreamOptions{StreamState: kurrentdb.Any{}}, event("one"))
		return err
	}
	noError(t, appends())
	r.cut()
	if err := appends(); code(err) != kurrentdb.ErrorUnavailable {
		t.Fatalf("an append to a node that is away: %v", err)
	}
	if err := appends(); err == nil {
		t.Fatal("the client finds a node that is away")
	}
	mu.Lock()
	defer mu.Unlock()
	logged := slices.IndexFunc(said, func(line string) bool { return strings.HasPrefix(line, "unexpected exception") })
	acted := slices.Index(said, "starting a new discovery process")
	if logged < 0 || acted < logged {
		t.Errorf("it logged %q", said)
	}
}

// The gate's second habit.
func TestADeadlineIsPutOnACallThatHasAConnection(t *testing.T) {
	client := connect(t, settings(t))
	for name, call := range map[string]func(context.Context) error{
		"append": func(ctx context.Context) error {
			_, err := client.AppendToStream(ctx, "asked", kurrentdb.AppendToStreamOptions{StreamState: kurrentdb.Any{}}, event("one"))
			return err
		},
		"read": func(ctx context.Context) error {
			_, err := types(client.ReadAll(ctx, kurrentdb.ReadAllOptions{}, 1))
			return err
		},
		"subscription": func(ctx context.Context) error {
			sub, err := client.SubscribeToAll(ctx, kurrentdb.SubscribeToAllOptions{})
			if err != nil {
				return err
			}
			return sub.Close()
		},
	} {
		ctx := &asked{Context: t.Context()}
		if err := call(ctx); err != nil || ctx.times.Load() == 0 {
			t.Errorf("%s: asked %d times, %v", name, ctx.times.Load(), err)
		}
	}
}

// Here the client differs from its predecessor, which ignores the context of a call that has no
// connection yet.
func TestACallWithoutAConnectionEndsWithItsContext(t *testing.T) {
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	noError(t, err)
	t.Cleanup(func() { noError(t, silent.Close()) })
	config := settings(t)
	config.Address = silent.Addr().String()
	inner, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx := &asked{Context: inner}
	client := connect(t, config)
	ended := make(chan error)
	go func() {
		_, err := client.AppendToStream(ctx, "silent", kurrentdb.AppendToStreamOptions{}, event("one"))
		ended <- err
	}()
	conn, err := silent.Accept() // the client looks for its node
	noError(t, err)
	defer func() { _ = conn.Close() }() // it said nothing
	cancel()
	if err := <-ended; err == nil || ctx.times.Load() != 0 {
		t.Errorf("the call asked for its deadline %d times, and ended with %v", ctx.times.Load(), err)
	}
}

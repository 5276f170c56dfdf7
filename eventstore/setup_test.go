package eventstore

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore/node"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// TestMain also checks that no test left a goroutine behind, connections of the
// client library included.
func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// within bounds every wait in these tests.
const within = eventually.Patience

// testNode is an embedded node that can be ended and started again.
type testNode struct {
	t      *testing.T
	dsn    string
	socket string
	limit  int // of an append's data; 0: the node's own
	node   *node.Node
}

// patientLimits are those of a client on a machine that is very busy.
var patientLimits = limits{
	call: eventually.Patience / 2, patience: eventually.Patience, quiet: defaultLimits.quiet, suspect: defaultLimits.suspect,
}

func setup(t *testing.T) (*testNode, *Client) {
	t.Helper()
	n := &testNode{t: t, dsn: pgtest.NewDSN(t), socket: newSocket(t)}
	n.start()
	t.Cleanup(n.stop)
	return n, connect(t, n.socket, patientLimits)
}

func newSocket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "es") //nolint:usetesting // a socket's path must be short, t.TempDir holds the test's name
	must.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "node")
}

func connect(t *testing.T, socket string, limits limits) *Client {
	t.Helper()
	c := open(socketConfig(socket), limits, quietLog())
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (n *testNode) start() {
	n.t.Helper()
	started, err := node.Start(n.t.Context(), node.Config{DSN: n.dsn, Socket: n.socket, MaxAppendSize: n.limit, Log: quietLog()})
	must.NoError(n.t, err)
	n.node = started
}

func (n *testNode) stop() {
	if n.node == nil {
		return
	}
	// Cut off what runs, as a crash would.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = n.node.Close(ctx) // reports only that ctx had ended
	n.node = nil
}

func quietLog() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

func newEvent(e domain.Event) domain.NewEvent {
	return domain.NewEvent{ID: uuid.New(), Event: e, Meta: domain.Metadata{
		CommandID: uuid.New(), CorrelationID: "request-1", Actor: "operator", AccountID: "acc",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC),
	}}
}

func note(text string) domain.NewEvent { return newEvent(&job.ItemChecked{ItemID: text}) }

func noteOf(r domain.Recorded) string {
	if e, ok := r.Event.(*job.ItemChecked); ok {
		return e.ItemID
	}
	return ""
}

// grow appends n notes, one append each, named by their revision.
func grow(t *testing.T, c *Client, stream string, from, n int) domain.AppendResult {
	t.Helper()
	var last domain.AppendResult
	for i := from; i < from+n; i++ {
		var err error
		last, err = c.Append(t.Context(), stream, domain.ExpectedRevision(i-1), []domain.NewEvent{note(fmt.Sprintf("%s@%d", stream, i))})
		must.NoError(t, err)
	}
	return last
}

func load(t *testing.T, c *Client, stream string) []domain.Recorded {
	t.Helper()
	var all []domain.Recorded
	must.NoError(t, c.Load(t.Context(), stream, 0, func(r domain.Recorded) error {
		all = append(all, r)
		return nil
	}))
	return all
}

// proxy stands between a client and the node, and breaks what passes.
type proxy struct {
	socket string
	target string
	// mute drops what the node says.
	mute atomic.Bool
	// budget, when set, is how many bytes of the node's still pass before every
	// connection is cut.
	budget atomic.Int64

	listener net.Listener
	wg       sync.WaitGroup
	mu       sync.Mutex
	open     map[net.Conn]*atomic.Bool // true: deaf
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	p := &proxy{socket: target + "p", target: target, open: make(map[net.Conn]*atomic.Bool)}
	var err error
	if p.listener, err = (&net.ListenConfig{}).Listen(t.Context(), "unix", p.socket); err != nil {
		t.Fatal(err)
	}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(context.Background(), "unix", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		deaf := new(atomic.Bool)
		p.mu.Lock()
		p.open[client], p.open[server] = deaf, deaf
		p.mu.Unlock()
		p.wg.Go(func() { p.pipe(server, client, func([]byte) bool { return true }) })
		p.wg.Go(func() { p.pipe(client, server, func(b []byte) bool { return p.passes(b) && !deaf.Load() }) })
	}
}

func (p *proxy) passes(b []byte) bool {
	if p.budget.Load() > 0 && p.budget.Add(-int64(len(b))) <= 0 {
		p.budget.Store(0)
		p.cut()
		return false
	}
	return !p.mute.Load()
}

func (p *proxy) pipe(to, from net.Conn, passes func([]byte) bool) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, from)
		_, _ = from.Close(), to.Close()
	}()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && passes(buf[:n]) {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// deafen lets nothing reach the client over the connections there are; new ones
// work.
func (p *proxy) deafen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, deaf := range p.open {
		deaf.Store(true)
	}
}

// cut closes every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.open {
		_ = conn.Close()
	}
}

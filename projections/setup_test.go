package projections

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

const patience = time.Minute // of every single wait, on a machine that is busy

// noon is when everything happens in these tests.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// memoryLog is a log that runners can follow. hold keeps events back, spoil
// makes one undecodable.
type memoryLog struct {
	mu      sync.Mutex
	events  []domain.Recorded
	spoiled map[uint64]bool
	held    uint64 // 0: nothing is held back; else the last position handed out
	asked   []eventstore.Checkpoint
	wake    chan struct{}
}

func newMemoryLog() *memoryLog {
	return &memoryLog{spoiled: map[uint64]bool{}, wake: make(chan struct{})}
}

func (m *memoryLog) append(stream string, events ...domain.Event) domain.Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		at := uint64(len(m.events) + 1)
		r := domain.Recorded{Stream: stream, Position: domain.Position{Commit: at, Prepare: at}, Event: e}
		if e != nil {
			r.Type = e.EventType()
		}
		m.events = append(m.events, r)
	}
	m.stir()
	return m.head()
}

func (m *memoryLog) spoil(p domain.Position) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spoiled[p.Commit] = true
}

// lose takes the last events away, as a restored backup does.
func (m *memoryLog) lose(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = m.events[:len(m.events)-n]
}

func (m *memoryLog) hold(after uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = after
	m.stir()
}

func (m *memoryLog) stir() {
	close(m.wake)
	m.wake = make(chan struct{})
}

func (m *memoryLog) head() domain.Position {
	n := uint64(len(m.events))
	return domain.Position{Commit: n, Prepare: n}
}

func (m *memoryLog) Head() domain.Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.head()
}

func (m *memoryLog) Next(ctx context.Context, after eventstore.Checkpoint, limit int) (eventstore.Page, error) {
	for first := true; ; first = false {
		m.mu.Lock()
		if first {
			m.asked = append(m.asked, after)
		}
		page, ok, err := m.page(after, limit)
		wake := m.wake
		m.mu.Unlock()
		if ok || err != nil {
			return page, err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return eventstore.Page{}, ctx.Err()
		}
	}
}

func (m *memoryLog) page(after eventstore.Checkpoint, limit int) (eventstore.Page, bool, error) {
	from, to := min(int(after.Position.Commit), len(m.events)), len(m.events)
	if m.held > 0 {
		to = min(to, int(m.held))
	}
	var page eventstore.Page
	for i := from; i < min(to, from+limit); i++ {
		e := m.events[i]
		if m.spoiled[e.Position.Commit] {
			if len(page.Events) == 0 {
				return page, false, &eventstore.DecodeError{
					Position: e.Position, Stream: e.Stream, Type: e.Type, Err: errors.New("not JSON"),
				}
			}
			break
		}
		page.Events = append(page.Events, e)
		page.Next = e.Position
	}
	page.Live = page.Next == m.head()
	return page, len(page.Events) > 0, nil
}

// world is a database, a log, and a service that projects one into the other.
type world struct {
	t     *testing.T
	db    *sqlx.DB
	log   *memoryLog
	sup   *Supervisor
	reads *Reads
}

func setup(t *testing.T, projectors ...Projector) *world {
	t.Helper()
	if len(projectors) == 0 {
		projectors = All()
	}
	db := pgtest.New(t)
	w := &world{t: t, db: db, log: newMemoryLog(), reads: NewReads(db)}
	w.sup = w.service(w.log, projectors...)
	return w
}

// service is one more service on the same database.
func (w *world) service(source Source, projectors ...Projector) *Supervisor {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	s := New(w.db, source, quiet, projectors...)
	s.limits = limits{
		live: 50, rebuild: 200, lease: time.Second, standBy: 10 * time.Millisecond, store: 5 * time.Millisecond,
		backoff: time.Millisecond, maxBackoff: 10 * time.Millisecond, retired: time.Hour, report: 20 * time.Millisecond,
	}
	if err := s.Prepare(w.ctx()); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// run runs a service until the returned function is called, or the test ends.
func (w *world) run(s *Supervisor) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("run: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	w.t.Cleanup(cancel)
	return ctx
}

// reach waits until the service has seen everything.
func (w *world) reach(s *Supervisor) {
	w.t.Helper()
	if err := s.WaitFor(w.ctx(), w.log.Head()); err != nil {
		w.t.Fatal(err)
	}
}

// eventually waits for a condition.
func (w *world) eventually(what string, condition func() bool) {
	w.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline.C:
			w.t.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}

// names lists every registered projection.
func names() (list []string) {
	for _, p := range All() {
		list = append(list, p.Name())
	}
	return list
}

// status is the serving generation's.
func (w *world) status(name string) Status {
	w.t.Helper()
	list, err := w.sup.Status(w.ctx())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range list {
		if s.Name == name && s.Serving {
			return s
		}
	}
	w.t.Fatalf("no serving generation of %s", name)
	return Status{}
}

// sound checks that every row of a projection is the fold's.
func (w *world) sound(s *Supervisor, names ...string) {
	w.t.Helper()
	for _, name := range names {
		differences, err := s.Verify(w.ctx(), name)
		if err != nil {
			w.t.Fatalf("verify %s: %v", name, err)
		}
		for _, d := range differences {
			w.t.Errorf("%s differs from the fold: %+v", name, d)
		}
	}
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	if _, err := w.db.ExecContext(w.ctx(), query, args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) count(query string, args ...any) (n int) {
	w.t.Helper()
	if err := w.db.GetContext(w.ctx(), &n, query, args...); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// Events, with what a test does not care about filled in.

func created(accountID string, change ...func(*job.Created)) *job.Created {
	e := &job.Created{
		AccountID: accountID, URL: "https://app.example", Title: "checkout", Description: "buy a pair of shoes",
		Type: job.PaymentFlow, TypeEcho: "Payment Flow", SLAMinutes: 60, Price: 5, Source: "api", CreatedAt: noon,
		Items: []job.Item{
			{ID: "i1", Key: "pay", Description: "pay by card", Severity: job.Critical},
			{ID: "i2", Key: "mail", Description: "a mail arrives", Severity: job.Minor},
		},
	}
	for _, c := range change {
		c(e)
	}
	return e
}

func claimed(checkerID string) *job.ClaimedBy {
	return &job.ClaimedBy{CheckerID: checkerID, Token: 1, DueAt: noon.Add(90 * time.Minute), At: noon.Add(time.Minute)}
}

func completed(overall string) *job.CompletedWith {
	return &job.CompletedWith{
		ReportID: "r1", OverallStatus: overall, PassCount: 1, FailCount: 1, Summary: "mostly fine",
		RecordingURL: "https://rec.example/1", At: noon.Add(30 * time.Minute),
		Items: []job.ReportItem{
			{Item: job.Item{ID: "i1", Key: "pay", Description: "pay by card", Severity: job.Critical}, Status: job.ItemPass},
			{Item: job.Item{ID: "i2", Key: "mail", Description: "a mail arrives", Severity: job.Minor}, Status: job.ItemFail, Note: "none came"},
		},
	}
}

// lives appends the lives of n jobs, interleaved, in many different states.
func lives(m *memoryLog, prefix string, n int) {
	for i := range n {
		stream := domain.JobStream(fmt.Sprintf("%s%d", prefix, i))
		accountID := fmt.Sprintf("acc%d", i%3)
		m.append(stream, created(accountID, func(e *job.Created) {
			e.ProjectID = []string{"", "p1", "p2"}[i%3]
			e.CreatedAt = noon.Add(time.Duration(i) * time.Second)
		}))
		older := domain.JobStream(fmt.Sprintf("%s%d", prefix, i/2))
		switch i % 6 {
		case 0:
			m.append(stream, &job.CancelledBy{Reason: "client", Refund: 5, At: noon})
		case 1, 2:
			m.append(stream, claimed("c1"), &job.ItemChecked{ItemID: "i1", Status: job.ItemPass, At: noon})
		case 3:
			m.append(stream, claimed("c1"), completed("pass"))
		case 4:
			m.append(stream, claimed("c1"), &job.Released{Token: 1, Reason: "checker", At: noon})
		case 5:
			m.append(older, &job.FindingAdded{Item: job.Item{ID: "f" + stream, Description: "odd"}, Status: job.ItemFail})
		}
	}
}

func issued(n int) *account.KeyIssued {
	return &account.KeyIssued{KeyID: fmt.Sprint("k", n), Hash: fmt.Sprint("hash", n), Prefix: "qa_live_ab", Scope: account.ScopeFull}
}

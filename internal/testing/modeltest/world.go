// Package modeltest is the shared part of the read models' tests: a service that folds
// a log into a real Postgres, and events with defaults for unimportant fields.
package modeltest

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// World is a database, a log, and a service that projects one into the other.
type World struct {
	T   *testing.T
	DB  *sqlx.DB
	Log *logtest.Memory
	Sup *consumer.Supervisor
}

// New makes a world whose service runs the consumers.
func New(t *testing.T, consumers ...consumer.Consumer) *World {
	t.Helper()
	w := &World{T: t, DB: pgtest.New(t), Log: logtest.New()}
	w.Sup = w.Service(w.Log, consumers...)
	return w
}

// Service is one more service on the same database.
func (w *World) Service(source consumer.Source, consumers ...consumer.Consumer) *consumer.Supervisor {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	s := consumer.New(w.DB, source, quiet, consumers...)
	s.SetLimits(consumer.Limits{
		Live: 50, Rebuild: 200, Lease: 15 * time.Second, Take: 2 * time.Second,
		StandBy: 100 * time.Millisecond, Store: 20 * time.Millisecond,
		Backoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond, Retired: time.Hour, Report: 20 * time.Millisecond,
		Aside: 10, Again: time.Hour, Shared: time.Second, Reads: eventually.Patience, Yield: 100 * time.Millisecond,
	})
	must.NoError(w.T, s.Prepare(w.Ctx()))
	return s
}

// Run runs a service until the returned function is called, or the test ends.
func (w *World) Run(s *consumer.Supervisor) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.T.Errorf("run: %v", err)
		}
	})
	w.T.Cleanup(stop)
	return stop
}

// Ctx ends when a single wait has taken too long.
func (w *World) Ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Patience)
	w.T.Cleanup(cancel)
	return ctx
}

// Reach waits until the service has seen everything.
func (w *World) Reach(s *consumer.Supervisor) {
	w.T.Helper()
	must.NoError(w.T, s.WaitFor(w.Ctx(), w.Log.Head()))
}

// Eventually waits for a condition.
func (w *World) Eventually(what string, condition func() bool) {
	w.T.Helper()
	eventually.True(w.T, what, condition)
}

// Status is the status of the serving generation.
func (w *World) Status(name string) consumer.Status {
	w.T.Helper()
	list, err := w.Sup.Status(w.Ctx())
	must.NoError(w.T, err)
	for _, s := range list {
		if s.Name == name && s.Serving {
			return s
		}
	}
	w.T.Fatalf("no serving generation of %s", name)
	return consumer.Status{}
}

// Sound checks that the rows of each named projection are those of the fold.
func (w *World) Sound(s *consumer.Supervisor, names ...string) {
	w.T.Helper()
	for _, name := range names {
		differences, err := s.VerifyAll(w.Ctx(), []string{name})
		if err != nil {
			w.T.Fatalf("verify %s: %v", name, err)
		}
		for _, d := range differences[0] {
			w.T.Errorf("%s differs from the fold: %+v", name, d)
		}
	}
}

// named stands for the schema that serves a read model: {jobs}.
var named = regexp.MustCompile(`\{[a-z_]+\}`)

// Exec runs a statement, in which {jobs} stands for the schema that serves jobs.
func (w *World) Exec(query string, args ...any) {
	w.T.Helper()
	query = named.ReplaceAllStringFunc(query, func(name string) string { return w.Status(strings.Trim(name, "{}")).Schema })
	_, err := w.DB.ExecContext(w.Ctx(), query, args...)
	must.NoError(w.T, err)
}

// Count runs a query for one number.
func (w *World) Count(query string, args ...any) (n int) {
	w.T.Helper()
	must.NoError(w.T, w.DB.GetContext(w.Ctx(), &n, query, args...))
	return n
}

// CutAnyhow folds the log into three schemas, one event, seven events and all
// events at a time, and compares every row.
func (w *World) CutAnyhow(p consumer.Projector) {
	w.T.Helper()
	handles := map[string]bool{}
	for _, name := range p.Handles() {
		handles[name] = true
	}
	var events []domain.Recorded
	for _, r := range w.Log.All() {
		if handles[r.Type] {
			events = append(events, r)
		}
	}
	sizes := []int{1, 7, len(events)}
	for _, size := range sizes {
		schema := fmt.Sprint("cut", size)
		err := pgpool.InTx(w.Ctx(), w.DB, func(tx *sqlx.Tx) error {
			if err := generation.CreateTables(w.Ctx(), tx, p, schema); err != nil {
				return err
			}
			for rest := events; len(rest) > 0; {
				n := min(size, len(rest))
				if err := p.Apply(w.Ctx(), tx, schema, rest[:n]); err != nil {
					return fmt.Errorf("%d events at a time: %w", size, err)
				}
				rest = rest[n:]
			}
			return nil
		})
		must.NoError(w.T, err)
	}
	for _, size := range sizes[1:] {
		w.Equal(p, "cut1", fmt.Sprint("cut", size))
	}
	for _, table := range p.Tables() {
		if w.Count("SELECT COUNT(*) FROM cut1."+table.Name) == 0 {
			w.T.Errorf("nothing came into %s: it was not tested", table.Name)
		}
	}
}

// Equal compares two schemas of a projection row by row.
func (w *World) Equal(p consumer.Projector, a, b string) {
	w.T.Helper()
	tx, err := w.DB.BeginTxx(w.Ctx(), nil)
	must.NoError(w.T, err)
	defer func() { _ = tx.Rollback() }()
	rows := 0
	for _, table := range p.Tables() {
		differences, err := consumer.Compare(w.Ctx(), tx, table.Name, a, b)
		must.NoError(w.T, err)
		for _, d := range differences {
			w.T.Errorf("%s and %s differ: %+v", a, b, d)
		}
		rows += w.Count("SELECT COUNT(*) FROM " + a + "." + table.Name)
	}
	if rows == 0 {
		w.T.Error("there was nothing to compare")
	}
}

// Plan is Postgres' plan of the query.
func (w *World) Plan(query string, args ...any) string {
	w.T.Helper()
	var lines []string
	must.NoError(w.T, w.DB.SelectContext(w.Ctx(), &lines, "EXPLAIN "+query, args...))
	return strings.Join(lines, "\n")
}

// Walks fails the test unless the query uses the indexes, and reads no more rows than
// it shows.
func (w *World) Walks(name, query string, args []any, indexes ...string) {
	w.T.Helper()
	plan := w.Plan(query, args...)
	for _, index := range indexes {
		if !strings.Contains(plan, index) {
			w.T.Errorf("%s does not use %s:\n%s", name, index, plan)
		}
	}
	if strings.Contains(plan, "Sort") || strings.Contains(plan, "Seq Scan") {
		w.T.Errorf("%s reads more than it shows:\n%s", name, plan)
	}
}

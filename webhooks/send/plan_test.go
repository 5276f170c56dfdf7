package send

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore/generation"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/webhooks"
	"humanqa/webhooks/queue"
)

// settledRows is raised by hand: docs/operations.md.
var settledRows = flag.Int("settled", 20_000, "how many settled deliveries the plans are looked at with")

// stock is a queue with a little to send and much that has been sent, on one
// connection: what it prepared stays prepared.
type stock struct {
	testing.TB
	db      *sqlx.DB
	queue   *queue.Queue
	settled int
}

const (
	stockEndpoints = 40
	stockDue       = 5 * stockEndpoints
)

func newStock(t testing.TB) *stock {
	t.Helper()
	s := &stock{TB: t, db: pgtest.New(t)}
	s.db.SetMaxOpenConns(1)
	s.queue = queue.New(s.db, 256, queue.Caps{Begin: 8, Most: 64}, 15*time.Second)
	s.exec(`INSERT INTO webhooks.endpoints (project_id, account_id, url, secret, due_at)
		SELECT 'p' || n, 'a' || n % 10, 'https://hooks.example/', 'sealed', now() FROM generate_series(1, $1) n`, stockEndpoints)
	s.exec(insertStock+`SELECT gen_random_uuid(), 'p' || 1 + n % $2, gen_random_uuid(), 'job.created', 'job-due' || n, n, 'body', 'pending', NULL
		FROM generate_series(1, $1) n`, stockDue, stockEndpoints)
	return s
}

const insertStock = `
INSERT INTO webhooks.deliveries (id, project_id, event_id, event, ordering_key, revision, body, state, settled_at)
`

// grow settles further deliveries, with an attempt each, until there are so many.
// Half of them are one project's. One in ten thousand is of a rare event, and one
// was dropped.
func (s *stock) grow(settled int) {
	s.Helper()
	const id = "('00000000-0000-0000-0000-' || lpad(to_hex(n), 12, '0'))::uuid" // in order, which is quick
	s.exec("SET session_replication_role = replica")                            // no look for the delivery of each attempt
	s.exec(insertStock+"SELECT "+id+`, CASE n % 2 WHEN 0 THEN 'p1' ELSE 'p' || 1 + n % $3 END, gen_random_uuid(),
		CASE n % 10000 WHEN 0 THEN 'job.failed_sla' ELSE 'job.created' END, 'job-' || n / 3, n % 3, 'body',
		CASE n % 10000 WHEN 2 THEN 'dropped' ELSE 'delivered' END, now()
		FROM generate_series($1::integer + 1, $2) n`, s.settled, settled, stockEndpoints)
	s.exec(`INSERT INTO webhooks.attempts (delivery_id, attempt, at, duration_ms, url, status, error, response)
		SELECT `+id+`, 1, now(), 5, 'https://hooks.example/', 200, '', '' FROM generate_series($1::integer + 1, $2) n`, s.settled, settled)
	s.exec("SET session_replication_role = DEFAULT")
	s.settled = settled
}

func (s *stock) exec(query string, args ...any) {
	s.Helper()
	if _, err := s.db.ExecContext(s.Context(), query, args...); err != nil {
		s.Fatal(err)
	}
}

const countRead = `
SELECT sum(seq_tup_read + idx_tup_fetch)
FROM pg_stat_user_tables
WHERE relid IN ('webhooks.deliveries'::regclass, 'webhooks.attempts'::regclass)`

// reads counts the deliveries and attempts that f reads, by whatever way.
func (s *stock) reads(f func()) int {
	s.Helper()
	before := s.count()
	f()
	return s.count() - before
}

func (s *stock) count() (n int) {
	s.Helper()
	s.exec("SELECT pg_stat_force_next_flush()")
	s.exec("SELECT") // its end flushes
	must.NoError(s, s.db.GetContext(s.Context(), &n, countRead))
	return n
}

// round claims and settles what is due, a part of it as failures.
func (s *stock) round(due int) (ids []string) {
	s.Helper()
	_, batch, _, err := s.queue.Exchange(s.Context(), nil, 256)
	if err != nil || len(batch) != due {
		s.Fatalf("claimed %d, %v", len(batch), err)
	}
	var done []queue.Outcome
	for i, c := range batch {
		a := queue.Answer{At: time.Now(), Status: 200}
		if i%10 == 0 {
			a.Status, a.Err = 500, "answered 500"
		}
		done = append(done, c.Answered(a, []time.Duration{time.Minute}))
		ids = append(ids, c.ID)
	}
	if _, err := s.queue.Settle(s.Context(), done); err != nil {
		s.Fatal(err)
	}
	return ids
}

// newSubscriber is one that knows an endpoint whose row is not there any more.
func (s *stock) newSubscriber(d *Dispatcher) *webhooks.Subscriber {
	s.Helper()
	sub := webhooks.NewSubscriber(s.db, nil, "")
	sub.SendThrough(d.Direct())
	s.exec(insertDirect, "a1")
	must.NoError(s, sub.Begin(s.Context()))
	s.exec("DELETE FROM webhooks.endpoints WHERE project_id = 'direct'")
	d.direct.begin()
	return sub
}

const insertDirect = `
INSERT INTO webhooks.endpoints (project_id, account_id, url, secret)
VALUES ('direct', $1, 'https://hooks.example/', 'sealed')`

// direct writes a delivery that goes at once, to an endpoint of its own.
func (s *stock) direct(sub *webhooks.Subscriber) {
	s.Helper()
	created := domain.Recorded{
		Stream: "job-direct", ID: uuid.New(), Type: "job.created",
		Event: &job.Created{Submission: job.Submission{AccountID: "a1", ProjectID: "direct"}},
	}
	write, _, err := sub.Prepare(s.Context(), []domain.Recorded{created})
	must.NoError(s, err)
	undone, leased := errors.New("undone"), 0
	err = pgpool.InTxSet(s.Context(), s.db, "SELECT "+generation.PlanOnce, func(tx *sqlx.Tx) error {
		ctx := s.Context()
		if _, err := tx.ExecContext(ctx, insertDirect, "a1"); err != nil {
			return err
		}
		if err := write(ctx, tx); err != nil {
			return err
		}
		if err := tx.GetContext(ctx, &leased, "SELECT cardinality(in_flight) FROM webhooks.endpoints WHERE project_id = 'direct'"); err != nil {
			return err
		}
		return undone
	})
	if !errors.Is(err, undone) || leased != 1 {
		s.Fatalf("%d were leased, %v", leased, err)
	}
	sub.Committed(err)
}

// again makes what a round has settled due once more.
func (s *stock) again(ids []string) {
	s.Helper()
	s.exec("UPDATE webhooks.deliveries SET state = 'pending', settled_at = NULL, failures = 0, due_at = now() WHERE id IN ('" +
		strings.Join(ids, "', '") + "')")
	s.exec("UPDATE webhooks.endpoints SET due_at = now()")
}

// What was prepared over an empty queue serves a burst behind much that is settled,
// before the tables have been analysed and after.
func TestPlansHoldHoweverMuchIsSettled(t *testing.T) {
	t.Parallel()
	s := newStock(t)
	d := NewDispatcher(s.db, nil, Report{}, Config{})
	sub := s.newSubscriber(d)
	for _, settled := range []int{0, 1000, *settledRows} {
		s.exec("UPDATE webhooks.deliveries SET state = 'held' WHERE state = 'pending' AND revision > 1")
		s.exec("VACUUM ANALYZE webhooks.deliveries")
		s.again(s.round(1)) // plans are made, of an empty queue
		s.direct(sub)
		s.exec("UPDATE webhooks.deliveries SET state = 'pending' WHERE state = 'held'")
		s.grow(settled)
		for _, prepare := range []string{"", "ANALYZE webhooks.deliveries, webhooks.attempts, webhooks.endpoints"} {
			s.exec(prepare)
			var ids []string
			limit := 8 * stockDue
			if settled == 1000 && prepare == "" {
				limit += settled // without statistics so small a table may be read as a whole
			}
			if n := s.reads(func() { ids = s.round(stockDue) }); n > limit {
				t.Errorf("with %d settled, after %q, a round of %d deliveries reads %d", settled, prepare, stockDue, n)
			}
			s.again(ids)
			if n := s.reads(func() { s.direct(sub) }); n > 2 {
				t.Errorf("with %d settled, after %q, a delivery that is sent directly reads %d", settled, prepare, n)
			}
		}
		for what, f := range map[string]webhooks.DeliveryFilter{
			"all": {}, "a rare event": {Event: "job.failed_sla"}, "a rare state": {State: webhooks.StateDropped}, "what failed": {State: webhooks.StateFailed},
			"what waits": {State: webhooks.StatePending}, "what arrived": {State: webhooks.StateDelivered}, "a job": {JobID: "7"},
			"failures of a rare event": {Event: "job.failed_sla", State: webhooks.StateFailed},
		} {
			for range 7 { // the sixth time a plan for any arguments is thought of
				n := s.reads(func() {
					_, _, err := webhooks.NewLog(s.db).Deliveries(t.Context(), "a1", "p1", f)
					must.NoError(t, err)
				})
				if n > 200 && settled > 1000 {
					t.Errorf("with %d settled, the list of %s reads %d", settled, what, n)
				}
			}
		}
	}
}

// BenchmarkRest runs a dispatcher beside a thousand endpoints and the settled
// deliveries, of which nothing is due, for a second at a time. It tells how long
// processors worked for that: this process, and Postgres for its connections.
func BenchmarkRest(b *testing.B) {
	s := newStock(b)
	s.exec("DELETE FROM webhooks.deliveries")
	s.exec(`INSERT INTO webhooks.endpoints (project_id, account_id, url, secret, due_at)
		SELECT 'q' || n, 'a' || n % 10, 'https://hooks.example/', 'sealed', now() FROM generate_series(1, $1) n`, 1000-stockEndpoints)
	s.grow(*settledRows)
	s.db.SetMaxOpenConns(0)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- NewDispatcher(s.db, nil, Report{}, Config{DSN: pgtest.DSN(b, s.db)}).Run(ctx) }()
	eventually.True(b, "it has seen that nothing is due", func() bool {
		var due int
		must.NoError(b, s.db.GetContext(ctx, &due, "SELECT count(*) FROM webhooks.endpoints WHERE due_at IS NOT NULL"))
		return due == 0
	})
	b.ResetTimer()
	before := s.worked()
	for range b.N {
		<-time.After(time.Second)
	}
	b.ReportMetric(float64((s.worked()-before).Microseconds())/1000/float64(b.N), "processor-ms/s")
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}

// worked is how long processors have worked for this process and for the
// database's connections.
func (s *stock) worked() time.Duration {
	s.Helper()
	var pids []int
	must.NoError(s, s.db.SelectContext(s.Context(), &pids, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"))
	var all time.Duration
	for _, pid := range append(pids, os.Getpid()) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			s.Skip("there is no /proc to ask for processor time")
		}
		fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
		for _, at := range []int{11, 12} { // utime, stime, in hundredths of a second
			n, err := strconv.Atoi(fields[at])
			must.NoError(s, err)
			all += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return all
}

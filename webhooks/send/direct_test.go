package send_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/hooktest"
	"humanqa/internal/testing/must"
	"humanqa/webhooks"
)

// What may go at once is sent without a claim, and no dispatcher is woken for it; the rest is
// claimed. Either way the events of a job arrive in order, once, and nothing is left
// leased.
func TestWhatMayGoAtOnceWaitsForNoClaim(t *testing.T) {
	b := setup(t)
	b.Config.Poll = time.Hour
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	woken := make(chan string, 1000)
	<-pgpool.ListenTo(t.Context(), b.Config.DSN, "webhooks_due", func(payload string) bool {
		woken <- payload
		return true
	}, nil)
	d := b.NewDispatcher()
	s := webhooks.NewSubscriber(b.DB, b.Events, "https://qa.example")
	s.SendThrough(d.Direct())
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	stop := b.RunLoop(d.Run)
	b.RunLoop(consumer.New(b.DB, b.Events, quiet, s).Run)
	b.Project("p1", e.URL, nil)
	b.Subscribed()
	rest := func() {
		t.Helper()
		b.Eventually("nothing is leased, and nothing to be looked at", func() bool {
			var n int
			must.NoError(t, b.DB.Get(&n, "SELECT count(*) FROM webhooks.endpoints WHERE lease_id IS NOT NULL OR due_at IS NOT NULL"))
			return n == 0
		})
	}
	rest()
	const marked = "so far"
	_, err := b.DB.ExecContext(t.Context(), "SELECT pg_notify('webhooks_due', $1)", marked)
	must.NoError(t, err)
	for payload := ""; payload != marked; {
		payload = <-woken // the project's own
	}
	for i := range 3 {
		b.Submit("p1", fmt.Sprint("alone", i))
		e.Next()
		rest()
		if payload := <-woken; payload == "" {
			t.Error("a claim was asked for")
		}
	}

	const jobs = 50
	for i := range jobs {
		b.Events.Add(domain.JobStream(fmt.Sprint(i)), hooktest.Created("p1"), hooktest.Claimed(), hooktest.Completed())
	}
	b.Settled("p1", map[string]int{"delivered": 3 + 3*jobs})
	next := map[string]int{}
	for range 3 * jobs {
		var about struct{ Data struct{ JobID string } }
		r := e.Next()
		must.NoError(t, json.Unmarshal([]byte(r.Body), &about))
		job := about.Data.JobID
		if want := []string{"job.created", "job.claimed", "job.completed"}[next[job]]; r.Event() != want {
			t.Fatalf("job %s: %s came, want %s", job, r.Event(), want)
		}
		next[job]++
	}
	e.None()
	rest()

	stop()
	b.Submit("p1", "late")
	b.Subscribed()
	if got := b.States("p1"); got["pending"] != 1 {
		t.Errorf("after the dispatcher's end: %v", got)
	}
	b.Dispatch()
	e.Next()
}

// Each case is a transaction that is rolled back: so nothing of it is sent.
func TestOnlyWhatWaitsForNothingIsSentDirectly(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	stop := b.Subscribe()
	b.Subscribed()
	stop()
	from := eventstore.At(b.Events.Head())
	b.Events.Add(domain.JobStream("j"), hooktest.Created("p1"), hooktest.Claimed())
	page, err := b.Events.Next(t.Context(), from, 2, nil)
	if err != nil || len(page.Events) != 2 {
		t.Fatal(page, err)
	}

	d := b.NewDispatcher()
	s := webhooks.NewSubscriber(b.DB, b.Events, "https://qa.example")
	s.SendThrough(d.Direct())
	b.RunLoop(d.Run)
	must.NoError(t, s.Begin(t.Context()))
	write := func(ctx context.Context, tx *sqlx.Tx, events []domain.Recorded) error {
		do, _, err := s.Prepare(ctx, events)
		if err != nil {
			return err
		}
		return do(ctx, tx)
	}
	undone := errors.New("undone")
	inTx := func(f func(tx *sqlx.Tx) error) error {
		err := pgpool.InTx(t.Context(), b.DB, f)
		s.Committed(err)
		return err
	}
	b.Eventually("the dispatcher runs", func() bool {
		handed := false
		_ = inTx(func(tx *sqlx.Tx) error {
			must.NoError(t, write(t.Context(), tx, page.Events[:1]))
			must.NoError(t, tx.Get(&handed, "SELECT lease_id IS NOT NULL FROM webhooks.endpoints"))
			return undone
		})
		return handed
	})
	const earlier = `INSERT INTO webhooks.deliveries (id, project_id, event_id, event, ordering_key, revision, body, state, due_at)
		VALUES (gen_random_uuid(), 'p1', gen_random_uuid(), 'job.created', 'job-j', 0, 'x', '%s', now() + interval '1 hour')`
	for name, c := range map[string]struct {
		before string
		events int
		want   string // how many are under way, and whether a claim has something to look for
	}{
		"nothing is in the way":                     {"", 1, "1 false"},
		"of a job's two events the first":           {"", 2, "1 true"},
		"an earlier one of the job will be retried": {fmt.Sprintf(earlier, "pending"), 1, "0 true"},
		"an earlier one of the job has arrived":     {fmt.Sprintf(earlier, "delivered"), 1, "1 false"},
		"something else waits":                      {"UPDATE webhooks.endpoints SET due_at = now() - interval '1 second'", 1, "0 true"},
		"something else will be retried":            {"UPDATE webhooks.endpoints SET due_at = now() + interval '1 minute'", 1, "1 false"},
		"the endpoint is another's": {`UPDATE webhooks.endpoints SET lease_id = gen_random_uuid(), leased_until = now() + interval '1 minute',
			in_flight = ARRAY[gen_random_uuid()], due_at = now() + interval '1 minute'`, 1, "1 true"},
		"it takes no more":        {"UPDATE webhooks.endpoints SET in_flight = array_fill(gen_random_uuid(), ARRAY[8])", 1, "8 true"},
		"it takes one at a time":  {"UPDATE webhooks.endpoints SET cap = 1, in_flight = ARRAY[gen_random_uuid()]", 1, "1 true"},
		"it is trusted with more": {"UPDATE webhooks.endpoints SET cap = 64, in_flight = array_fill(gen_random_uuid(), ARRAY[7])", 1, "8 false"},
		"two secrets sign":        {"UPDATE webhooks.endpoints SET previous_secret = secret, previous_until = now() + interval '1 hour'", 1, "0 true"},
		"it is disabled":          {"UPDATE webhooks.endpoints SET enabled = false", 1, "0 false"},
		"it has no secret":        {"UPDATE webhooks.endpoints SET secret = ''", 1, "0 false"},
	} {
		t.Run(name, func(t *testing.T) {
			err := inTx(func(tx *sqlx.Tx) error {
				if _, err := tx.Exec(c.before); err != nil {
					return err
				}
				if err := write(t.Context(), tx, page.Events[:c.events]); err != nil {
					return err
				}
				var got string
				err := tx.Get(&got, "SELECT cardinality(in_flight) || ' ' || coalesce(due_at <= clock_timestamp(), false) FROM webhooks.endpoints")
				if err != nil {
					return err
				}
				if got != c.want {
					t.Errorf("it is %s, want %s", got, c.want)
				}
				return undone
			})
			if !errors.Is(err, undone) {
				t.Fatal(err)
			}
		})
	}
	e.None()

	// The same event once more, and now it is there: its place was given back.
	must.NoError(t, inTx(func(tx *sqlx.Tx) error { return write(t.Context(), tx, page.Events[:1]) }))
	if got := e.Next(); got.Event() != "job.created" {
		t.Errorf("%s came", got.Event())
	}
	b.Settled("p1", map[string]int{"delivered": 1})
}

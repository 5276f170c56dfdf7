package queue

import (
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// tenure is a dispatcher's part in the story of one endpoint.
type tenure struct {
	*testing.T
	db *sqlx.DB
	*Queue
}

func newTenure(t *testing.T, db *sqlx.DB) *tenure {
	return &tenure{T: t, db: db, Queue: New(db, 16, Caps{8, 64}, time.Minute)}
}

func (h *tenure) takes(n int) []Delivery {
	h.Helper()
	_, batch, _, err := h.Exchange(h.Context(), nil, 16)
	if err != nil || len(batch) != n {
		h.Fatalf("claimed %v, %v, want %d", batch, err, n)
	}
	return batch
}

// says settles deliveries as answered with the status; one that is no 2xx was the last try.
func (h *tenure) says(status int, batch ...Delivery) Settlement {
	h.Helper()
	var done []Outcome
	for _, c := range batch {
		a := Answer{At: time.Now(), Status: status}
		if status != http.StatusOK {
			a.Err = "no"
		}
		done = append(done, c.Answered(a, nil))
	}
	s, err := h.Settle(h.Context(), done)
	must.NoError(h, err)
	return s
}

// is compares the only delivery, its attempts and the endpoint.
func (h *tenure) is(want string) {
	h.Helper()
	const read = `
SELECT concat_ws(' ', d.state, 'after', d.attempts, '[' || coalesce((SELECT string_agg(a.attempt || ':' || coalesce(a.status, 0), ' ' ORDER BY attempt) FROM webhooks.attempts a), '') || ']',
	CASE WHEN e.enabled THEN 'on' ELSE 'off' END, CASE WHEN e.lease_id IS NULL THEN 'free' ELSE 'leased' END, cardinality(e.in_flight))
FROM webhooks.deliveries d JOIN webhooks.endpoints e USING (project_id)`
	var got string
	if err := h.db.GetContext(h.Context(), &got, read); err != nil || got != want {
		h.Errorf("it is %q, %v, want %q", got, err, want)
	}
}

// A process that was paused for longer than its lease has settled nothing meanwhile:
// the endpoint is another's by then, or free again, or even its own again. What it
// comes back with changes neither the delivery nor the endpoint.
func TestAPausedDispatcherDoesNotSettleOverAnothersWork(t *testing.T) {
	db := pgtest.New(t)
	exec := func(query string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), query)
		must.NoError(t, err)
	}
	for name, meanwhile := range map[string]func(paused, other *tenure, late []Delivery){
		"the other is sending": func(paused, other *tenure, late []Delivery) {
			again := other.takes(1)
			other.is("pending after 1 [1:0] on leased 1")
			paused.says(http.StatusGone, late...)
			other.is("pending after 1 [1:410] on leased 1")
			paused.takes(0)
			other.says(http.StatusOK, again...)
			other.is("delivered after 2 [1:410 2:200] on free 0")
		},
		"the other has settled": func(paused, other *tenure, late []Delivery) {
			other.says(http.StatusOK, other.takes(1)...)
			paused.says(http.StatusGone, late...)
			other.is("delivered after 2 [1:410 2:200] on free 0")
		},
		"it has taken the endpoint again": func(paused, other *tenure, late []Delivery) {
			again := other.takes(1)[0].Answered(Answer{At: time.Now(), Status: http.StatusTeapot, Err: "no"}, []time.Duration{0})
			if _, err := other.Settle(t.Context(), []Outcome{again}); err != nil { // a retry, at once
				t.Fatal(err)
			}
			third := paused.takes(1)
			if s := paused.says(http.StatusGone, late...); len(s.Disabled) > 0 {
				t.Error("the endpoint was disabled by an attempt that no longer counts")
			}
			other.is("pending after 2 [1:410 2:418] on leased 1")
			paused.says(http.StatusOK, third...)
			other.is("delivered after 3 [1:410 2:418 3:200] on free 0")
		},
		"a crash of the database has forgotten its claim": func(paused, other *tenure, late []Delivery) {
			exec("UPDATE webhooks.endpoints SET lease_id = NULL, leased_until = NULL, in_flight = '{}'")
			again := other.takes(1)
			if s := paused.says(http.StatusGone, late...); len(s.Disabled) > 0 {
				t.Error("the endpoint was disabled by an attempt that no longer counts")
			}
			other.is("pending after 0 [1:410] on leased 1")
			other.says(http.StatusOK, again...)
			other.is("delivered after 1 [1:200] on free 0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			exec("TRUNCATE webhooks.endpoints, webhooks.deliveries, webhooks.attempts")
			exec(`INSERT INTO webhooks.endpoints (project_id, account_id, url, secret, due_at) VALUES ('p', 'a', 'https://qa.example', 's', now())`)
			exec(`INSERT INTO webhooks.deliveries (id, project_id, event_id, event, ordering_key, revision, body, state)
				VALUES (gen_random_uuid(), 'p', gen_random_uuid(), 'job.created', 'job-1', 0, 'body', 'pending')`)
			paused, other := newTenure(t, db), newTenure(t, db)
			late := paused.takes(1)
			other.is("pending after 0 [] on leased 1")
			other.takes(0)
			exec("UPDATE webhooks.endpoints SET leased_until = now(), due_at = now()") // the lease has ended
			meanwhile(paused, other, late)
		})
	}
}

// A process that dies takes the connection along on which it listens: its endpoints
// are served by others before its leases end. One that was never seen alive may
// listen to nothing: its leases are waited for.
func TestTheLeasesOfADispatcherThatDiedEndWithItsConnection(t *testing.T) {
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	for _, project := range []string{"p", "q"} {
		_, err := db.ExecContext(t.Context(), `INSERT INTO webhooks.endpoints (project_id, account_id, url, secret, due_at) VALUES ($1, 'a', 'https://qa.example', 's', now())`, project)
		must.NoError(t, err)
		if _, err := db.ExecContext(t.Context(), `INSERT INTO webhooks.deliveries (id, project_id, event_id, event, ordering_key, revision, body, state)
			VALUES (gen_random_uuid(), $1, gen_random_uuid(), 'job.created', $1, 0, 'body', 'pending')`, project); err != nil {
			t.Fatal(err)
		}
	}
	mute, mortal, other := newTenure(t, db), newTenure(t, db), newTenure(t, db)
	for _, h := range []*tenure{mute, mortal} {
		if _, batch, _, err := h.Exchange(t.Context(), nil, 1); err != nil || len(batch) != 1 {
			t.Fatal(batch, err)
		}
	}
	life := pgtest.NewDB(t, pgpool.Named(dsn, sessionName(mortal.holder)))
	must.NoError(t, life.PingContext(t.Context()))
	alive := time.Now()
	eventually.True(t, "it is seen alive", func() bool { other.takes(0); return other.peers.lookedAt.After(alive) })
	must.NoError(t, life.Close())
	var got []Delivery
	eventually.True(t, "its endpoint is taken over", func() bool {
		_, batch, next, err := other.Exchange(t.Context(), nil, 16)
		if err != nil || next > peerLookEvery {
			t.Fatal(next, err)
		}
		got = append(got, batch...)
		return len(got) > 0
	})
	if len(got) != 1 || got[0].ID != slices.Collect(maps.Keys(mortal.deliveries))[0] || got[0].Attempt != 2 {
		t.Errorf("it took %+v", got)
	}
}

package queue

import (
	"net/http"
	"testing"
	"time"

	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// Where nothing is scheduled there is no next look: a dispatcher at rest asks the
// database for nothing until somebody wakes it.
func TestNothingScheduledIsNoNextLook(t *testing.T) {
	db := pgtest.New(t)
	q := New(db, 16, Caps{8, 64}, time.Minute)
	look := func() time.Duration {
		t.Helper()
		_, batch, next, err := q.Exchange(t.Context(), nil, q.pool)
		if err != nil || len(batch) > 0 {
			t.Fatalf("claim gives %v, %v", batch, err)
		}
		return next
	}
	if next := look(); next >= 0 {
		t.Errorf("without an endpoint the next look is in %s", next)
	}
	_, err := db.ExecContext(t.Context(), `INSERT INTO webhooks.endpoints (project_id, account_id, url, secret) VALUES ('p', 'a', 'https://qa.example', 's')`)
	must.NoError(t, err)
	if next := look(); next >= 0 {
		t.Errorf("of an endpoint with nothing to do the next look is in %s", next)
	}
	_, err = db.ExecContext(t.Context(), `UPDATE webhooks.endpoints SET due_at = now() + interval '1 hour'`)
	must.NoError(t, err)
	if next := look(); next < 50*time.Minute || next > time.Hour {
		t.Errorf("of an endpoint due in an hour the next look is in %s", next)
	}
}

// What is settled last leaves nothing to look for: the next claim need not find that
// out. What waits beside it is looked at now.
func TestASettlementKnowsWhetherAnythingWaits(t *testing.T) {
	t.Parallel()
	h := newTenure(t, pgtest.New(t))
	_, err := h.db.ExecContext(t.Context(), `INSERT INTO webhooks.endpoints (project_id, account_id, url, secret, due_at) VALUES ('p', 'a', 'https://qa.example', 's', now())`)
	must.NoError(t, err)
	insert := func(job string) {
		t.Helper()
		_, err := h.db.ExecContext(t.Context(), `INSERT INTO webhooks.deliveries (id, project_id, event_id, event, ordering_key, revision, body, state)
			VALUES (gen_random_uuid(), 'p', gen_random_uuid(), 'job.created', $1, 0, 'body', 'pending')`, job)
		must.NoError(t, err)
	}
	due := func() (at *time.Time) {
		t.Helper()
		must.NoError(t, h.db.GetContext(t.Context(), &at, "SELECT due_at FROM webhooks.endpoints"))
		return at
	}
	settle := func(c Delivery, waits bool) {
		t.Helper()
		if got := h.says(http.StatusOK, c); got.Waits != waits {
			t.Fatalf("something waits: %v, want %v", got.Waits, waits)
		}
	}
	insert("job-1")
	insert("job-2")
	batch := h.takes(2)
	insert("late")
	for _, c := range batch {
		settle(c, true)
		if at := due(); at == nil || at.After(time.Now()) {
			t.Errorf("with one that came meanwhile the endpoint is looked at next at %v, want now", at)
		}
	}
	settle(h.takes(1)[0], false)
	if at := due(); at != nil {
		t.Errorf("with nothing left the endpoint is looked at next at %v", at)
	}
}

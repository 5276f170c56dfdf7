package send

import (
	"testing"
	"time"

	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// Where nothing is scheduled there is no next look: a dispatcher at rest asks the
// database for nothing until somebody wakes it.
func TestNothingScheduledIsNoNextLook(t *testing.T) {
	db := pgtest.New(t)
	q := newQueue(db, 16, caps{8, 64}, time.Minute)
	look := func() time.Duration {
		t.Helper()
		batch, next, err := q.claimDeliveries(t.Context(), q.pool)
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
	s := newStock(t)
	s.exec("DELETE FROM webhooks.deliveries WHERE project_id <> 'p1' OR revision > $1", 2*stockEndpoints)
	due := func() (at *time.Time) {
		t.Helper()
		must.NoError(t, s.db.GetContext(t.Context(), &at, "SELECT due_at FROM webhooks.endpoints WHERE project_id = 'p1'"))
		return at
	}
	claim := func(want int) []claimed {
		t.Helper()
		batch, _, err := s.queue.claimDeliveries(t.Context(), 256)
		if err != nil || len(batch) != want {
			t.Fatalf("claimed %d, %v, want %d", len(batch), err, want)
		}
		return batch
	}
	settle := func(c claimed, waits bool) {
		t.Helper()
		got, err := s.queue.settleOutcomes(t.Context(), []outcome{classify(c, answer{at: time.Now(), status: 200}, nil)})
		if err != nil || got.waits != waits {
			t.Fatalf("something waits: %v, %v, want %v", got.waits, err, waits)
		}
	}
	batch := claim(2)
	s.exec(insertStock + "VALUES (gen_random_uuid(), 'p1', gen_random_uuid(), 'job.created', 'late', 0, 'body', 'pending', NULL)")
	for _, c := range batch {
		settle(c, true)
		if at := due(); at == nil || at.After(time.Now()) {
			t.Errorf("with one that came meanwhile the endpoint is looked at next at %v, want now", at)
		}
	}
	settle(claim(1)[0], false)
	if at := due(); at != nil {
		t.Errorf("with nothing left the endpoint is looked at next at %v", at)
	}
}

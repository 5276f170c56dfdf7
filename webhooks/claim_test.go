package webhooks

import (
	"testing"
	"time"

	"humanqa/internal/pgtest"
)

// Where nothing is scheduled there is no next look: a dispatcher at rest asks the
// database for nothing until somebody wakes it.
func TestNothingScheduledIsNoNextLook(t *testing.T) {
	db := pgtest.New(t)
	q := queue{db: db, pool: 16, cap: caps{8, 64}, lease: time.Minute}
	look := func() time.Duration {
		t.Helper()
		batch, next, err := q.claim(t.Context(), q.pool, shares{})
		if err != nil || len(batch) > 0 {
			t.Fatalf("claim gives %v, %v", batch, err)
		}
		return next
	}
	if next := look(); next >= 0 {
		t.Errorf("without an endpoint the next look is in %s", next)
	}
	if _, err := db.ExecContext(t.Context(), `INSERT INTO webhooks.endpoints (project_id, account_id, url, secret) VALUES ('p', 'a', 'https://qa.example', 's')`); err != nil {
		t.Fatal(err)
	}
	if next := look(); next >= 0 {
		t.Errorf("of an endpoint with nothing to do the next look is in %s", next)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE webhooks.endpoints SET due_at = now() + interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	if next := look(); next < 50*time.Minute || next > time.Hour {
		t.Errorf("of an endpoint due in an hour the next look is in %s", next)
	}
}

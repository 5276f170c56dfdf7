package main

import (
	"database/sql"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// fullDiskStory has Postgres answer the log's writer as it does when the disk is full.
func fullDiskStory(t *testing.T, s *instance) {
	_, key := s.newAccount(5)
	db, err := sql.Open("postgres", s.dsn())
	must.NoError(t, err)
	defer func() { _ = db.Close() }() // nothing is pending on it
	_, err = db.ExecContext(t.Context(), `
		CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE 'could not extend file "base/1/2": No space left on device' USING ERRCODE = 'disk_full'; END $$;
		CREATE TRIGGER full_disk BEFORE INSERT ON eventlog.events EXECUTE FUNCTION full_disk()`)
	must.NoError(t, err)

	const reason = "the event log takes no events: its disk is full"
	fastest := time.Duration(math.MaxInt64)
	for range 3 { // a busy machine may delay one
		began := time.Now()
		refused := s.call(503, "POST", "/v1/jobs", key, submission(1), "Idempotency-Key", "full")
		fastest = min(fastest, time.Since(began))
		if refused.text("error") != reason || refused.text("code") != "UNAVAILABLE" || refused.header.Get("Retry-After") == "" {
			t.Errorf("refused: %v %s", refused.header, refused.body)
		}
	}
	if fastest > 10*time.Second { // it is refused at once; a command that waits for the log has thirty
		t.Errorf("a submission is refused after %s", fastest)
	}
	eventually.Within(t, eventually.Patience, func() error {
		if r := s.call(503, "GET", "/readyz", "", nil); !strings.Contains(string(r.body), `{"part":"log","reason":"`+reason+`"}`) {
			return fmt.Errorf("not ready: %s", r.body)
		}
		return nil
	})
	if got := s.call(200, "GET", "/v1/credits", key, nil); got.number("available") != 5 {
		t.Errorf("credits: %s", got.body)
	}

	_, err = db.ExecContext(t.Context(), `DROP FUNCTION full_disk CASCADE`)
	must.NoError(t, err)
	s.waitReady()
	s.call(201, "POST", "/v1/jobs", key, submission(1), "Idempotency-Key", "full")
	if got := s.call(200, "GET", "/v1/credits", key, nil); got.number("available") != 0 {
		t.Errorf("credits: %s", got.body)
	}
}

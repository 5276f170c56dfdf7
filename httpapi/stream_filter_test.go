package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"humanqa/domain/job"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
	"humanqa/projections/events"
)

// A stream for rare events, or of a quiet project, would otherwise read the
// account's whole past again with every event that is not for it.
func TestAStreamReadsWhatIsNotForItOnce(t *testing.T) {
	t.Parallel()
	s := own(t)
	accountID, key := s.account(100)
	_, other := s.account(100)
	rec := httptest.NewRecorder()
	w := &wire.StreamWriter{W: rec, C: http.NewResponseController(rec)}
	f := events.Filter{Types: []string{(*job.Failed)(nil).EventType()}, Limit: v1.StreamPage}
	read := func(want string) {
		t.Helper()
		more, err := s.clients.SendEvents(t.Context(), accountID, &f, w)
		if err != nil || more {
			t.Fatalf("there may be more: %t, %v", more, err)
		}
		equal(t, f.After, want)
	}
	newest := func() string {
		t.Helper()
		cursor, err := s.deps.Reads.Events.Newest(t.Context())
		must.NoError(t, err)
		return cursor
	}
	read("")
	id := s.submitted(key)
	s.submitted(other)
	s.feed(key, "/v1/events", 1)
	s.feed(other, "/v1/events", 1)
	read(newest())
	equal(t, rec.Body.String(), "")
	s.failed(accountID, id)
	s.feed(key, "/v1/events", 2)
	read(newest())
	if n := strings.Count(rec.Body.String(), "event: job.failed\n"); n != 1 {
		t.Errorf("the failure was told %d times: %s", n, rec.Body)
	}
	ahead := "9000000000000000000-0"
	f.After = ahead
	read(ahead) // never back
}

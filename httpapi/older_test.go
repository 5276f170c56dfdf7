package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/internal/testing/must"
)

// The rows of a newer version hold kinds of events that this one does not know, and
// versions of those that it knows.
func TestAnOlderProcessServesTheFeedOfANewerOne(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(500)
	ids := []string{s.submitted(key), s.submitted(key), s.submitted(key), s.submitted(key)}
	s.feed(key, "/v1/events", len(ids))
	change := func(id, set string) {
		t.Helper()
		_, err := s.db.ExecContext(t.Context(), "UPDATE readmodel.account_events SET "+set+" WHERE stream = $1", domain.JobStream(id))
		must.NoError(t, err)
	}
	change(ids[1], "type = 'job.levitated'")
	change(ids[3], "schema_version = 9")

	page := s.call(key, "GET", "/v1/events", "").want(http.StatusOK)
	equal(t, each(s.feed(key, "/v1/events", 2), "jobId"), []string{ids[0], ids[2]})
	with(t, page, map[string]any{"passedOver": 1.0, "hasMore": true})
	next, _ := page["next"].(string)
	r := s.call(key, "GET", "/v1/events?after="+next, "") // a known kind is not lost
	r.refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
	if r.Header().Get("Retry-After") == "" || !strings.Contains(r.Body.String(), "upgrade") {
		t.Errorf("the answer is %s", r.Body)
	}
	first := s.call(key, "GET", "/v1/events?limit=2", "").want(http.StatusOK)
	with(t, first, map[string]any{"passedOver": 1.0, "hasMore": true})
	after, _ := first["next"].(string)
	equal(t, each(s.feed(key, "/v1/events?after="+after, 1), "jobId"), []string{ids[2]})
	equal(t, s.call(key, "GET", "/v1/jobs/"+ids[1]+"/events", "").want(http.StatusOK)["passedOver"], any(1.0))
	s.call(key, "GET", "/v1/jobs/"+ids[3]+"/events", "").refused(http.StatusServiceUnavailable, domain.CodeUnavailable)

	// A stream passes over the one, and ends before the other.
	srv := s.online()
	f := s.follow(srv.URL, key, "", "").opened()
	if got := f.next(); !strings.Contains(got.data, ids[0]) {
		t.Errorf("got %+v", got)
	}
	got := f.next()
	if got.id != next || !strings.Contains(got.data, ids[2]) {
		t.Errorf("got %+v", got)
	}
	if line := f.line(); line != "" {
		t.Errorf("the stream goes on with %q", line)
	}

	change(ids[3], "schema_version = 1") // the newer process answers
	equal(t, each(s.feed(key, "/v1/events?after="+next, 1), "jobId"), []string{ids[3]})
}

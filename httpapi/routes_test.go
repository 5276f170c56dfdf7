package httpapi

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/prometheus/client_golang/prometheus"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
	"humanqa/projections/credits"
)

var allMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"}

// at fills a pattern's variables.
func at(pattern, id string) string {
	return strings.NewReplacer("{id}", id, "{jobId}", id, "{batchId}", id, "{token}", id, "{itemId}", "item-1", "{findingId}", id, "{file}", id, "{deliveryId}", id, "{recordingId}", id).Replace(pattern)
}

// keyFor is the credential the audience wants.
func (s *service) keyFor(who wire.Audience, client, checker string) string {
	switch who {
	case wire.Clients:
		return client
	case wire.Checkers:
		return checker
	case wire.Public:
	}
	return ""
}

func TestTheTableAgreesWithItself(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, row := range routes {
		name := row.Method + " " + row.Pattern
		if seen[name] {
			t.Errorf("%s stands twice", name)
		}
		seen[name] = true
		if row.Audience != audienceOf(row.Pattern) {
			t.Errorf("%s: its audience is not that of its path", name)
		}
		reads := row.Method == http.MethodGet || row.Method == http.MethodHead || row.Pattern == "/v1/estimate" // checks a body, and writes nothing
		if row.Write == reads || row.Creates && !row.Write {
			t.Errorf("%s: write or creates is wrong", name)
		}
		m := newTable(routes).find(httptest.NewRequestWithContext(t.Context(), row.Method, at(row.Pattern, uuid.NewString()), nil))
		if m.Route == nil || m.RoutePattern != row.Pattern {
			t.Errorf("%s leads to %q", name, m.RoutePattern)
		}
	}
}

func TestEveryWrongMethodIs405WithAllow(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	checker := s.checker()
	for pattern, rows := range s.table.patterns {
		var allowed []string
		var who wire.Audience
		for method, row := range rows {
			allowed, who = append(allowed, method), row.Audience
		}
		slices.Sort(allowed)
		for _, method := range allMethods {
			if slices.Contains(allowed, method) {
				continue
			}
			r := s.call(s.keyFor(who, key, checker), method, at(pattern, uuid.NewString()), "")
			r.refused(http.StatusMethodNotAllowed, domain.CodeMethodNotAllowed)
			equal(t, r.Header().Get("Allow"), strings.Join(allowed, ", "))
		}
	}
}

func TestEveryRouteWantsItsCredential(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	checker := s.checker()
	for _, row := range routes {
		if row.Audience == wire.Public || row.Audience == wire.Hooks { // a hook's credential is its path: see deploy_test.go
			continue
		}
		for _, wrong := range []string{"", "qa_live_unknown", s.keyFor(wire.Clients+wire.Checkers-row.Audience, key, checker)} {
			s.call(wrong, row.Method, at(row.Pattern, uuid.NewString()), "garbage").
				refused(http.StatusUnauthorized, domain.CodeUnauthorized)
		}
	}
}

// needs are the queries without which a route answers 400.
var needs = map[string]string{"/v1/audit/proof": "event", "/v1/jobs/report": "ids"}

// What A owns does not exist for B, whatever B does with its id.
func TestEveryRouteKeepsAccountsApart(t *testing.T) {
	t.Parallel()
	s := own(t)
	accountA, keyA := s.account(100)
	_, keyB := s.account(100)
	_, sandbox := s.sandbox()
	idsA := append(s.owned(keyA), accountA)
	jobA, projectA := idsA[0], idsA[1]
	ownChecker := s.checker(accountA)

	before := s.written()
	valid := `{"name":"B's","rating":5,"text":"x","itemId":"x","reason":"x","finalStatus":"passed","since":"2026-11-21"}` // for each route that reads one
	for _, row := range routes {
		if !strings.Contains(row.Pattern, "{") || row.Audience != wire.Clients {
			continue
		}
		key := keyB
		if strings.HasPrefix(row.Pattern, "/v1/sandbox/") {
			key = sandbox
		}
		for _, id := range idsA {
			s.call(key, row.Method, at(row.Pattern, id), valid).refused(http.StatusNotFound, domain.CodeNotFound)
		}
	}
	inProject := strings.Replace(aJob, "{", `{"projectId":"`+projectA+`",`, 1)
	for path, body := range map[string]string{
		"/v1/jobs": inProject, "/v1/estimate": inProject, "/v1/jobs/bulk": `{"jobs":[` + aJob + `,` + inProject + `]}`,
		"/v1/hosted/prepare-next": `{"projectId":"` + projectA + `","fixedDescriptions":["x"]}`,
	} {
		s.call(keyB, "POST", path, body).refused(http.StatusNotFound, domain.CodeNotFound)
	}
	bound := s.key(accountA, command.IssueKey{Scope: account.ScopeFull, ProjectID: projectA})
	s.call(bound, "GET", "/v1/projects/"+uuid.NewString(), "").refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(keyB, "GET", "/v1/jobs/report?ids="+jobA, "").refused(http.StatusNotFound, domain.CodeNotFound)
	lists := []string{"/v1/jobs?projectId=" + projectA, "/v1/hosted/sessions?projectId=" + projectA}
	for _, row := range routes {
		if row.Method == http.MethodGet && row.Audience == wire.Clients && !strings.Contains(row.Pattern, "{") && needs[row.Pattern] == "" {
			lists = append(lists, row.Pattern)
		}
	}
	for _, list := range lists {
		body := s.call(keyB, "GET", list, "")
		if body.Code != http.StatusOK {
			t.Errorf("GET %s: %d %s", list, body.Code, body.Body)
		}
		for _, id := range idsA {
			if strings.Contains(body.Body.String(), id) && !strings.Contains(list, id) {
				t.Errorf("GET %s shows %s", list, id)
			}
		}
	}
	// A checker who belongs to the account never sees its jobs.
	equal(t, s.call(ownChecker, "GET", "/v1/checker/queue", "").want(http.StatusOK), map[string]any{"jobs": []any{}, "total": 0.0, "limit": 20.0, "offset": 0.0})
	s.call(ownChecker, "POST", "/v1/checker/claims", "").want(http.StatusNoContent)
	s.call(ownChecker, "POST", "/v1/checker/claims", `{"jobId":"`+jobA+`"}`).refused(http.StatusNotFound, domain.CodeNotFound)
	if after := s.written(); after != before+1 { // the key that was issued
		t.Errorf("the log grew from %d to %d", before, after)
	}
}

func TestPathsThatLeadNowhere(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id, srv := s.submitted(key), s.online()
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v2/jobs", "/v1/jobs/", "/v1//jobs", "//v1/jobs", "/v1/./jobs", "/v1/x/../jobs", "/v1/jobs%2F" + id,
		"/v1/jobs/" + id + "/", "/v1/jobs/" + id + "%2Freport", "/V1/jobs", "/v1/jobs/" + id + "/nope", "/v1/checker/jobs/" + id + "/evidence",
		"/v1/jobs/%00", "/v1/jobs/%FF", "/v1/jobs/" + strings.Repeat("x", 300), "/v1/jobs/..%2F..", "/v1/projects/'", "/v1/hosted/nope", "/readyz/",
	} {
		equal(t, head(t, srv, key, path).StatusCode, s.call(key, "GET", path, "").Code)
		for _, method := range []string{"GET", "POST", "OPTIONS"} {
			r := s.call(key, method, path, "")
			if strings.HasPrefix(path, "/v1/checker/") {
				r.refused(http.StatusUnauthorized, domain.CodeUnauthorized)
				continue
			}
			if r.Code == http.StatusMethodNotAllowed && strings.Count(path, "/") == 3 {
				continue // an id that cannot exist, on a path that does
			}
			r.refused(http.StatusNotFound, domain.CodeNotFound)
		}
	}
	s.call("", "GET", "/v1/nowhere", "").refused(http.StatusUnauthorized, domain.CodeUnauthorized)
	s.call("", "GET", "/nowhere", "").refused(http.StatusNotFound, domain.CodeNotFound)
}

func TestTheClientsRequestIDIsEchoedOnEveryKindOfAnswer(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	for _, target := range []string{"GET /v1/jobs", "GET /nowhere", "PUT /v1/jobs", "GET /healthz", "POST /v1/jobs"} {
		method, path, _ := strings.Cut(target, " ")
		equal(t, s.call(key, method, path, "", "X-Request-Id", "mine.1").Header().Get("X-Request-Id"), "mine.1")
		equal(t, s.call("", method, path, "", "x-request-id", "mine.2").Header().Get("X-Request-Id"), "mine.2")
	}
	s.call(key, "POST", "/v1/jobs", aJob, "X-Request-Id", "mine.3").want(http.StatusCreated)
	events := s.events()
	equal(t, events[len(events)-1].Meta.CorrelationID, "mine.3")
}

func TestAHealthyServiceSaysSo(t *testing.T) {
	t.Parallel()
	s := shared(t)
	equal(t, s.call("", "GET", "/healthz", "").want(http.StatusOK), map[string]any{"status": "ok"})
	equal(t, s.call("", "GET", "/readyz", "").want(http.StatusOK), map[string]any{"status": "ready"})
}

func TestWhatIsOnlyWorthANoteKeepsTheServiceReady(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	s.problems = []Problem{{Note: true, Part: "projections", Reason: "jobs goes on without 1 stream"}}
	equal(t, s.call("", "GET", "/readyz", "").want(http.StatusOK), map[string]any{"status": "ready", "notes": []any{
		map[string]any{"part": "projections", "reason": "jobs goes on without 1 stream"},
	}})
}

func TestWhatIsNotReadyIsToldAndItsCauseOnlyLogged(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	s.problems = []Problem{
		{Part: "jobs", Reason: "1,000 events behind"}, {Part: "log", Reason: "away", Cause: errors.New("dial 10.0.0.7")},
	}
	r := s.call("", "GET", "/readyz", "")
	body := r.refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
	equal(t, body["problems"], []any{
		map[string]any{"part": "jobs", "reason": "1,000 events behind"}, map[string]any{"part": "log", "reason": "away"},
	})
	s.ready.until = time.Now().Add(time.Hour) // what was found is told again
	equal(t, s.call("", "HEAD", "/readyz", "").Code, http.StatusServiceUnavailable)
	if told, logged := r.Body.String(), s.logged.String(); strings.Contains(told, "10.0.0.7") || strings.Count(logged, "10.0.0.7") != 1 {
		t.Errorf("told %s, logged %s", told, logged)
	}
}

func TestReadinessIsRememberedForAMoment(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	s.call("", "GET", "/readyz", "").want(http.StatusOK)
	s.problems = []Problem{{Part: "log", Reason: "away"}}
	s.ready.until = time.Now().Add(time.Hour)
	s.call("", "GET", "/readyz", "").want(http.StatusOK)
	s.ready.until = time.Time{}
	s.call("", "GET", "/readyz", "").refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
}

// broken is a database that cannot be reached, or, without an error, one whose
// driver panics.
type broken struct{ err error }

func (b broken) Connect(context.Context) (driver.Conn, error) {
	if b.err == nil {
		panic("out of luck")
	}
	return nil, b.err
}

func (broken) Driver() driver.Driver { return nil }

func (b broken) db() *sqlx.DB { return sqlx.NewDb(sql.OpenDB(b), "postgres") }

func TestFaultsAreLoggedAndNotShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		status int
	}{
		"a panic":           {nil, 500},
		"an error":          {errors.New("out of luck"), 500},
		"Postgres is going": {&pq.Error{Code: "57P01", Message: "out of luck"}, 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shared(t).node(nil)
			s.gate.Limits = admit.NewLimiter(broken{c.err}.db(), 0)
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/jobs", nil)
			r.Header.Set("Authorization", "Bearer sesame")
			r.Header.Set("X-Request-Id", "trace-me")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			equal(t, w.Code, c.status)
			if strings.Contains(w.Body.String(), "luck") || !strings.Contains(w.Body.String(), `"requestId":"trace-me"`) {
				t.Errorf("the answer is %s", w.Body)
			}
			logged := s.logged.String()
			if !strings.Contains(logged, "out of luck") || !strings.Contains(logged, "requestId=trace-me") || strings.Contains(logged, "sesame") {
				t.Errorf("the log says %s", logged)
			}
			equal(t, w.Header().Get("Retry-After") != "", c.status == 503)
		})
	}
}

func TestAFaultBehindAHandlerIsAnAnswerToo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		status int
	}{
		"an error":          {errors.New("out of luck"), 500},
		"Postgres is going": {&pq.Error{Code: "57P01", Message: "out of luck"}, 503},
		"a broken pipe":     {&net.OpError{Op: "read", Err: errors.New("out of luck")}, 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shared(t).node(nil)
			_, key := s.account(0)
			s.deps.Reads.Credits = credits.NewReads(broken{c.err}.db())
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/credits", nil)
			r.Header.Set("Authorization", "Bearer "+key)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			equal(t, w.Code, c.status)
			if strings.Contains(w.Body.String(), "luck") || !strings.Contains(w.Body.String(), `"requestId"`) {
				t.Errorf("the answer is %s", w.Body)
			}
		})
	}
}

func TestRequestsAreCountedByPattern(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	registry := prometheus.NewRegistry()
	s.metrics = newMetrics(registry)
	for range 3 {
		s.call("", "GET", "/v1/jobs/"+uuid.NewString(), "")
		s.call("", "BREW", "/"+uuid.NewString(), "")
	}
	families, err := registry.Gather()
	must.NoError(t, err)
	got := map[string]uint64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetHistogram().GetSampleCount()
		}
	}
	equal(t, got, map[string]uint64{
		"humanqa_http_request_duration_seconds GET /v1/jobs/{id} 401": 3,
		"humanqa_http_request_duration_seconds other unknown 404":     3,
		"humanqa_http_requests_in_flight":                             0,
	})
}

package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/httpapi/input"
	"humanqa/httpapi/wire"
)

// Decisions, "Another account's id": 403 FORBIDDEN is a read-only
// key's that writes. Which routes write stands in the table.
func TestAReadOnlyKeyReadsEverythingAndWritesNothing(t *testing.T) {
	t.Parallel()
	s := shared(t)
	id, key := s.account(1000)
	reader := s.key(id, command.IssueKey{Scope: account.ScopeRead})
	of := s.belongings(key, "a.example.com")
	before := s.written()
	for _, row := range routes {
		if row.Audience != wire.Clients {
			continue
		}
		r := s.call(reader, row.Method, of.at(t, row.Pattern), aJob)
		if row.Write {
			r.refused(http.StatusForbidden, domain.CodeForbidden)
			continue
		}
		// The AI report is being made, and the batch still runs.
		if query := needs[row.Pattern]; query != "" {
			equal(t, r.paths(), []string{query})
			continue
		}
		if r.Code != http.StatusOK && r.Code != http.StatusAccepted && !strings.HasSuffix(row.Pattern, "{batchId}/report") {
			t.Errorf("%s %s: %d %s", row.Method, row.Pattern, r.Code, r.Body)
		}
	}
	equal(t, s.written(), before)
}

// … and a project-bound key's that is used on another project: by its path, by
// its body and by its query.
func TestAProjectBoundKeyIsRefusedEveryOtherProject(t *testing.T) {
	t.Parallel()
	s := shared(t)
	id, key := s.sandbox() // whose keys work on every route
	of := s.belongings(key, "a.example.com")
	own := s.project(key, `{"name":"own"}`)
	bound := s.key(id, command.IssueKey{Scope: account.ScopeFull, ProjectID: own})
	inOther := jobWith(`"projectId":"` + of.project + `"`)
	const allowed = "allowed"
	literal := map[string]string{ // what is sent to the routes without a variable
		"POST /v1/jobs": inOther, "POST /v1/estimate": inOther, "POST /v1/jobs/bulk": `{"jobs":[` + aJob + `,` + inOther + `]}`,
		"POST /v1/hosted/prepare-next": `{"projectId":"` + of.project + `","fixedDescriptions":["x"]}`,
		"POST /v1/projects":            `{"name":"x"}`, "POST /v1/sandbox/clock/advance": `{"seconds":1}`,
		"GET /v1/jobs":            "?projectId=" + of.project,
		"GET /v1/jobs/report":     "?ids=" + of.job,
		"GET /v1/hosted/sessions": "?projectId=" + of.project,
		// They belong to no project, show the key's only, or go there: see below.
		"GET /v1/credits": allowed, "GET /v1/pricing": allowed, "GET /v1/audit/checkpoint": allowed,
		"GET /v1/analytics/pass-rate": allowed,
		"GET /v1/activity":            "", "GET /v1/refusals": "", "GET /v1/credits/ledger": "", "GET /v1/credits/statement": "", "GET /v1/exports/events": "", "GET /v1/evidence": "", "PATCH /v1/evidence": "{}", "GET /v1/audit/proof": "",
		"GET /v1/projects": allowed, "GET /v1/events": allowed, "GET /v1/events/readers": allowed,
		"POST /v1/hosted/test": allowed, "POST /v1/hosted/sessions": allowed,
	}
	before := s.written()
	valid := `{"name":"x","rating":5,"itemId":"x","reason":"x","finalStatus":"passed","since":"2026-11-21"}`
	for _, row := range routes {
		if row.Audience != wire.Clients {
			continue
		}
		name := row.Method + " " + row.Pattern
		if name == "POST /v1/events/readers/{name}/forget" { // the names of a bound key's readers are its own
			s.call(bound, row.Method, of.at(t, row.Pattern), "").refused(http.StatusNotFound, domain.CodeNotFound)
			continue
		}
		path, body := of.at(t, row.Pattern), valid
		if !strings.Contains(row.Pattern, "{") {
			sent, known := literal[name]
			switch {
			case !known:
				t.Errorf("%s has no row in this test", name)
				continue
			case sent == allowed:
				continue
			case row.Method == http.MethodGet:
				path += sent
			default:
				body = sent
			}
		}
		if r := s.call(bound, row.Method, path, body); r.Code != http.StatusForbidden || !strings.Contains(r.Body.String(), `"FORBIDDEN"`) {
			t.Errorf("%s: got %d %s", name, r.Code, r.Body)
		}
	}
	equal(t, s.written(), before)

	for _, path := range []string{"/v1/jobs", "/v1/hosted/sessions", "/v1/projects", "/v1/events"} {
		shown := s.call(bound, "GET", path, "").want(http.StatusOK)
		if text := s.call(bound, "GET", path, "").Body.String(); strings.Contains(text, of.project) || strings.Contains(text, of.job) {
			t.Errorf("GET %s shows another project's: %v", path, shown)
		}
	}
	equal(t, s.call(bound, "POST", "/v1/jobs", aJob).want(http.StatusCreated)["projectId"], any(own))
	equal(t, s.hosted(bound, "a.example.com", "").want(http.StatusCreated)["projectId"], any(own))
	equal(t, s.openSession(bound, `{"url":"https://a.example.com/","slots":[{},{}]}`).project, own)
	batch := texts(s.call(bound, "POST", "/v1/jobs/bulk", bulkOf(1, nil)).want(http.StatusCreated)["jobIds"])
	equal(t, s.call(bound, "GET", "/v1/jobs/"+batch[0], "").want(http.StatusOK)["projectId"], any(own))
	for _, pattern := range []string{"/v1/projects/{id}", "/v1/projects/{id}/history", "/v1/projects/{id}/open-failures"} {
		s.call(bound, "GET", at(pattern, own), "").want(http.StatusOK)
	}
}

// belongings are what an account may own, all of one project but the reader, which is of all.
type belongings struct{ project, job, batch, session, loop, delivery, reader string }

// belongings makes one of each. The job is completed.
func (s *service) belongings(key, host string) belongings {
	s.t.Helper()
	tested := s.hosted(key, host, "", input.SkillHeader, "fix", input.IterationHeader, "1").want(http.StatusCreated)
	of := belongings{project: tested["projectId"].(string), job: tested["jobId"].(string)}
	of.loop = s.loopOf(of.project, "fix")
	of.session = s.openSession(key, `{"url":"https://`+host+`/","slots":[{},{}]}`).id
	of.batch, _ = s.call(key, "POST", "/v1/jobs/bulk", `{"jobs":[`+jobWith(`"projectId":"`+of.project+`"`)+`]}`).
		want(http.StatusCreated)["batchId"].(string)
	if s.call(key, "POST", "/v1/sandbox/jobs/"+of.job+"/play", "").Code == http.StatusForbidden { // no sandbox
		s.complete(of.job)
	}
	s.call(key, "PATCH", "/v1/projects/"+of.project, `{"webhookUrl":"https://hooks.example.com/in"}`).want(http.StatusOK)
	s.serves(servedFile)
	of.reader = "warehouse"
	s.call(key, "GET", "/v1/events?reader="+of.reader, "").want(http.StatusOK)
	of.delivery, _ = s.call(key, "POST", "/v1/projects/"+of.project+"/webhook/test", "").want(http.StatusAccepted)["id"].(string)
	return of
}

// at fills a pattern with the thing of the kind that it names.
func (b belongings) at(t *testing.T, pattern string) string {
	t.Helper()
	pattern = strings.NewReplacer("/v1/exports/{table}", "/v1/exports/jobs", "/v1/analytics/{name}", "/v1/analytics/served").Replace(pattern)
	for _, of := range []struct{ prefix, id string }{
		{"/v1/jobs/bulk/", b.batch}, {"/v1/jobs/", b.job}, {"/v1/hosted/status/", b.job}, {"/v1/hosted/sessions/", b.session},
		{"/v1/loop-sessions/", b.loop}, {"/v1/events/readers/", b.reader}, {"/v1/projects/", b.project}, {"/v1/sandbox/jobs/", b.job}, {"/v1/sandbox/sessions/", b.session},
	} {
		if strings.HasPrefix(pattern, of.prefix) {
			return at(strings.Replace(pattern, "{deliveryId}", b.delivery, 1), of.id)
		}
	}
	if strings.Contains(pattern, "{") {
		t.Errorf("%s: this test does not know whose id it takes", pattern)
	}
	return pattern
}

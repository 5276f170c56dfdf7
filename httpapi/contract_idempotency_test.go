package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
)

// Decisions, "Idempotency-Key": on every POST that charges or
// creates, the same rules. A route that is marked as creating and has no row
// here fails the test.
func TestEveryRouteThatChargesOrCreatesKeepsTheRulesOfItsIdempotencyKey(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100_000)
	_, box := s.sandbox()
	first := s.hosted(key, "first.example.com", "").want(http.StatusCreated)
	projectID, _ := first["projectId"].(string)
	parent, _ := first["jobId"].(string)
	_, hook := s.hook(key, withURL)
	fix := func(text string) string {
		return `{"projectId":"` + projectID + `","fixedDescriptions":["` + text + `"]}`
	}
	work := s.claims(s.checker(), s.submitted(key))
	asking := s.claims(s.checker(), s.submitted(key))
	question, _ := asking.call("POST", "/questions", `{"text":"Is it?"}`).want(http.StatusCreated)["questionId"].(string)
	disputed := s.tested(key, passes)
	items, _ := s.call(key, "GET", "/v1/jobs/"+disputed+"/report", "").want(http.StatusOK)["items"].([]any)
	objection := func(reason string) string {
		return fmt.Sprintf(`{"itemId":%q,"reason":%q}`, items[0].(map[string]any)["id"], reason)
	}
	hooked := s.project(key, `{"name":"hooked","webhookUrl":"https://hooks.example.com/in"}`)
	sent, _ := s.call(key, "POST", "/v1/projects/"+hooked+"/webhook/test", "").want(http.StatusAccepted)["id"].(string)
	// What an effect changes: the log, what waits to be delivered, recordings.
	state := func() string {
		t.Helper()
		var deliveries string
		err := s.db.Get(&deliveries, `SELECT coalesce(string_agg(id || state || due_at, ' ' ORDER BY id), '') || (SELECT count(*) FROM http_recordings WHERE job_id = $2)
			FROM webhooks.deliveries WHERE project_id = $1`, hooked, work.jobID)
		must.NoError(t, err)
		return fmt.Sprint(s.written(), deliveries)
	}
	batch, _ := s.call(key, "POST", "/v1/jobs/bulk", bulkOf(2, nil)).want(http.StatusCreated)["batchId"].(string)
	type effect struct {
		key, path         string
		body, other, fail string // fail is a 400, if the route can refuse a body
	}
	effects := map[string]effect{
		"POST /v1/jobs":                       {key, "/v1/jobs", aJob, jobWith(`"priority":"urgent"`), `{}`},
		"POST /v1/jobs/bulk":                  {key, "/v1/jobs/bulk", bulkOf(2, nil), bulkOf(1, nil), `{"jobs":[{}]}`},
		"POST /v1/jobs/{id}/retest":           {key, "/v1/jobs/" + parent + "/retest", ``, `{}`, ``},
		"POST /v1/jobs/bulk/{batchId}/repeat": {key, "/v1/jobs/bulk/" + batch + "/repeat", ``, `{}`, ``},
		"POST /v1/hosted/test":                {key, "/v1/hosted/test", `{"url":"https://h.example.com/"}`, `{"url":"https://i.example.com/"}`, `{}`},
		"POST /v1/hosted/sessions":            {key, "/v1/hosted/sessions", twoSlots, strings.Replace(twoSlots, "shop", "blog", 1), `{}`},
		"POST /v1/hosted/prepare-next":        {key, "/v1/hosted/prepare-next", fix("one"), fix("two"), `{}`},
		"POST /v1/projects":                   {key, "/v1/projects", `{"name":"a"}`, `{"name":"b"}`, `{}`},
		"POST /v1/projects/{id}/webhook/test": {key, "/v1/projects/" + hooked + "/webhook/test", ``, `{}`, ``},
		"POST /v1/projects/{id}/webhook/rotate-secret": {
			key, "/v1/projects/" + hooked + "/webhook/rotate-secret", `{"immediate":true}`, `{}`, `{"immediate":1}`,
		},
		"POST /v1/projects/{id}/deliveries/{deliveryId}/redeliver": {
			key, "/v1/projects/" + hooked + "/deliveries/" + sent + "/redeliver", ``, `{}`, ``,
		},
		"POST /v1/hooks/deploy/{token}": {"", hook, `{"branch":"a"}`, `{"branch":"b"}`, `{"url":7}`},
		"POST /v1/sandbox/clock/advance": {
			box, "/v1/sandbox/clock/advance", `{"seconds":60}`, `{"seconds":61}`, `{}`,
		},
		"POST /v1/checker/jobs/{id}/questions": {
			work.checker, "/v1/checker/jobs/" + work.jobID + "/questions", `{"text":"a"}`, `{"text":"b"}`, `{}`,
		},
		"POST /v1/jobs/{id}/questions/{questionId}/answer": {
			key, "/v1/jobs/" + asking.jobID + "/questions/" + question + "/answer", `{"text":"a"}`, `{"text":"b"}`, `{}`,
		},
		"POST /v1/jobs/{id}/disputes": {key, "/v1/jobs/" + disputed + "/disputes", objection("a"), objection("b"), `{}`},
		"POST /v1/checker/jobs/{id}/items": {
			work.checker, "/v1/checker/jobs/" + work.jobID + "/items",
			`{"description":"a","status":"fail"}`, `{"description":"b","status":"fail"}`, `{}`,
		},
		"POST /v1/checker/jobs/{id}/recordings": {
			work.checker, "/v1/checker/jobs/" + work.jobID + "/recordings",
			`{"startedMsAgo":1}`, `{"startedMsAgo":2}`, `{"startedMsAgo":-1}`,
		},
	}
	for _, row := range routes {
		if !row.Creates {
			continue
		}
		name := row.Method + " " + row.Pattern
		t.Run(name, func(t *testing.T) {
			e, known := effects[name]
			if !known {
				t.Fatal("the route has no row in this test")
			}
			send := func(key, body string) result {
				return s.call(e.key, row.Method, e.path, body, wire.IdempotencyHeader, key, wire.ClaimTokenHeader, work.token)
			}
			before := state()
			equal(t, send("\u00fc", e.body).paths(), []string{wire.IdempotencyHeader})
			if e.fail != "" { // a 400 is not stored, and does not take the key
				send("k", e.fail).refused(http.StatusBadRequest, domain.CodeInvalidRequest)
			}
			equal(t, state(), before)

			once := send("k", e.body)
			if once.Code >= http.StatusMultipleChoices || once.Header().Get(replayedHeader) != "" {
				t.Fatalf("the first request: %d %v %s", once.Code, once.Header(), once.Body)
			}
			after := state()
			if after == before {
				t.Error("the first request wrote nothing")
			}
			again := send("k", e.body)
			equal(t, again.Code, once.Code)
			equal(t, again.Header().Get(replayedHeader), "true")
			equal(t, again.Body.String(), once.Body.String())
			send("k", e.other).refused(http.StatusConflict, domain.CodeConflict)
			equal(t, state(), after)

			if strings.Contains(row.Pattern, "/questions") || strings.Contains(row.Pattern, "/disputes") {
				return // one open question a job, one answer a question, one dispute an item: whatever the key
			}
			if another := send("l", e.body); another.Code != once.Code || another.Header().Get(replayedHeader) != "" {
				t.Errorf("another key: %d %v", another.Code, another.Header())
			}
			if state() == after {
				t.Error("under another key it had no effect")
			}
		})
	}
}

// A finding outlives its claim; the keys under which findings were added are
// each checker's own.
func TestACheckersIdempotencyKeyIsTheirOwn(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.submitted(key)
	ann, bob := s.checker(), s.checker()
	add := func(checker string) result {
		w := s.claims(checker, id)
		defer func() { w.call("POST", "/release", "").want(http.StatusOK) }()
		return s.call(checker, "POST", "/v1/checker/jobs/"+id+"/items", `{"description":"a","status":"fail"}`,
			wire.IdempotencyHeader, "k", wire.ClaimTokenHeader, w.token)
	}
	anns := add(ann).want(http.StatusCreated)
	bobs := add(bob).want(http.StatusCreated)
	if anns["id"] == bobs["id"] {
		t.Errorf("both got the item %v", anns)
	}
	again := add(ann)
	equal(t, again.want(http.StatusCreated), anns)
	equal(t, again.Header().Get(replayedHeader), "true")
}

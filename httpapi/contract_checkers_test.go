package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/httpapi/wire"
)

// Decisions, "Checker queue": urgent and open lobbies first, then what is due first, and nothing in it
// that belongs to the client's account or login.
func TestTheQueueAsACheckerSeesIt(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(1000)
	const sealed = `,"accessInstructions":"4711-door","credentials":{"username":"us3r-name"},"description":"secret plan"`
	old, urgentOld := s.submitted(key), s.submittedWith(key, `"priority":"urgent","slaMinutes":15,"targetDevice":"phone","targetOS":"iOS"`+sealed)
	young, urgentYoung := s.submitted(key), s.submittedWith(key, `"priority":"urgent"`)
	session := s.openSession(key, twoSlots)
	checker := s.checker()
	queue := func(query string) []any {
		t.Helper()
		page := s.call(checker, "GET", "/v1/checker/queue"+query, "").want(http.StatusOK)
		equal(t, page["total"], any(6.0))
		list, _ := page["jobs"].([]any)
		return list
	}
	list := queue("")
	var ids []string
	for n := range list {
		ids = append(ids, field(list, n, "id").(string))
	}
	equal(t, slices.Concat(ids[:1], ids[3:]), []string{urgentOld, urgentYoung, old, young})
	equal(t, len(ids), 6) // and both slots
	for _, slot := range []int{1, 2} {
		equal(t, field(list, slot, "sessionId"), any(session.id))
		equal(t, field(list, slot, "readyDeadline"), s.call(key, "GET", "/v1/hosted/sessions/"+session.id, "").want(http.StatusOK)["readyDeadline"])
	}
	job := s.call(key, "GET", "/v1/jobs/"+urgentOld, "").want(http.StatusOK)
	equal(t, list[0], any(map[string]any{
		"id": urgentOld, "title": "Checkout", "url": "https://example.com/shop", "jobType": "Payment Flow", "jobTypeCode": "payment_flow",
		"priority": "urgent", "slaMinutes": 15.0, "createdAt": job["createdAt"], "dueAt": job["dueAt"], "sessionId": nil, "readyDeadline": nil,
		"targetDevice": "phone", "targetOS": "iOS", "targetBrowser": nil, "targetScreenSize": nil, "targetNetwork": nil,
	}))
	equal(t, queue("?limit=2"), list[:2])
	equal(t, queue("?limit=2&offset=3"), list[3:5])
	equal(t, len(queue("?limit=100")), 6)
	for _, limit := range []string{"0", "101", "-1", "x"} {
		equal(t, s.call(checker, "GET", "/v1/checker/queue?limit="+limit, "").paths(), []string{"limit"})
	}
}

// … "POST /v1/checker/claims": the whole answer; taken: 409.
func TestWhatAClaimHandsOver(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.submittedWith(key, `"accessInstructions":"4711-door","credentials":{"username":"u","password":"p"},
		"checklistItems":[{"description":"The cart opens"},{"description":"A card is charged","key":"pay","severity":"critical","expectedOutcome":"a receipt"}]`)
	checker := s.checker()
	claim := s.call(checker, "POST", "/v1/checker/claims", `{"jobId":"`+id+`"}`).want(http.StatusCreated)
	token, _ := claim["claimToken"].(string)
	if token == "" {
		t.Error("there is no claim token")
	}
	items, _ := claim["checklist"].([]any)
	equal(t, claim, map[string]any{
		"jobId": id, "claimToken": token, "dueAt": s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)["dueAt"],
		"brief": map[string]any{
			"title": "Checkout", "url": "https://example.com/shop", "description": "Buy a thing", "feature": nil,
			"credentials": map[string]any{"username": "u", "password": "p", "notes": ""}, "accessInstructions": "4711-door",
		},
		"checklist": []any{
			map[string]any{"id": field(items, 0, "id"), "key": "item-d7a324958c29807d", "description": "The cart opens", "expectedOutcome": "", "severity": "major",
				"status": "pending", "note": "", "reason": nil, "screenshotUrl": nil},
			map[string]any{"id": field(items, 1, "id"), "key": "pay", "description": "A card is charged", "expectedOutcome": "a receipt", "severity": "critical",
				"status": "pending", "note": "", "reason": nil, "screenshotUrl": nil},
		},
		"findings": []any{}, "questions": []any{},
	})
	s.call(s.checker(), "POST", "/v1/checker/claims", `{"jobId":"`+id+`"}`).refused(http.StatusConflict, domain.CodeConflict)
}

// … "Every call below and this one carry X-Claim-Token; a stale token 409":
// whoever sends it, and without any effect. A route that is added to a
// claimant's work fails here until it has a row.
func TestEveryCallUnderAStaleClaimIsAConflict(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.submittedWith(key, checklistOf(2))
	ann, bob := s.checker(), s.checker()
	old := s.claims(ann, id)
	old.call("POST", "/release", "").want(http.StatusOK)
	live := s.claims(bob, id)
	bodies := map[string]string{
		"PUT /v1/checker/jobs/{id}/items/{itemId}": passes,
		"POST /v1/checker/jobs/{id}/items":         `{"description":"x","status":"fail"}`,
		"POST /v1/checker/jobs/{id}/complete":      `{"summary":"s"}`,

		"PUT /v1/checker/jobs/{id}/findings/{findingId}":           `{"description":"x","status":"fail"}`,
		"POST /v1/checker/jobs/{id}/findings/{findingId}/withdraw": ``,

		"POST /v1/checker/jobs/{id}/release":    ``,
		"POST /v1/checker/jobs/{id}/untestable": `{"reason":"no_access"}`,
		"POST /v1/checker/jobs/{id}/heartbeat":  ``,
		"POST /v1/checker/jobs/{id}/recordings": ``,
		"POST /v1/checker/jobs/{id}/questions":  `{"text":"x"}`,

		"POST /v1/checker/jobs/{id}/recordings/{recordingId}/finish": ``,
	}
	// With tests of their own: they send files, or change nothing.
	others := []string{
		"GET /v1/checker/jobs/{id}/open-failures", "POST /v1/checker/jobs/{id}/disputes/{disputeId}/answer",
		"POST /v1/checker/jobs/{id}/evidence", "PATCH /v1/checker/jobs/{id}/recordings/{recordingId}",
		"GET /v1/checker/jobs/{id}/recordings/{recordingId}", "HEAD /v1/checker/jobs/{id}/recordings/{recordingId}",
	}
	for _, row := range routes {
		name := row.Method + " " + row.Pattern
		body, known := bodies[name]
		switch {
		case row.Audience != wire.Checkers || !strings.HasPrefix(row.Pattern, "/v1/checker/jobs/{id}") || slices.Contains(others, name):
			continue
		case !known:
			t.Errorf("%s has no row in this test", name)
			continue
		}
		for _, stale := range []struct{ key, token string }{{ann, old.token}, {bob, old.token}, {ann, live.token}, {s.checker(), live.token}} {
			before := s.written()
			s.call(stale.key, row.Method, at(row.Pattern, id), body, wire.ClaimTokenHeader, stale.token).refused(http.StatusConflict, domain.CodeConflict)
			equal(t, s.written(), before)
		}
		equal(t, s.call(bob, row.Method, at(row.Pattern, id), body).paths(), []string{wire.ClaimTokenHeader})
		s.call(bob, row.Method, at(row.Pattern, uuid.NewString()), body, wire.ClaimTokenHeader, live.token).refused(http.StatusNotFound, domain.CodeNotFound)
	}
	live.checks(passes, passes).completes("Fine.")
}

// Decisions, "Checker work": a claimant may know what else of the project fails, and
// nobody else may.
func TestAClaimantKnowsWhatElseFails(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	_, strange := s.account(100)
	project := func(key string) string {
		return s.call(key, "POST", "/v1/projects", `{"name":"Shop"}`).want(http.StatusCreated)["projectId"].(string)
	}
	in := func(project string, keyed ...string) string {
		items := ""
		for n := 0; n < len(keyed); n += 2 {
			items += `,{"key":"` + keyed[n] + `","description":"` + keyed[n+1] + `"}`
		}
		return `"projectId":"` + project + `","checklistItems":[` + items[1:] + `]`
	}
	shop := project(key)
	ann, bob := s.checker(), s.checker()
	for _, fails := range []struct{ key, body string }{
		{key, in(shop, "footer", "The footer overlaps the button", "receipt", "The receipt arrives by mail", "cart", "The cart empties")},
		{key, in(project(key), "footer-2", "The footer of another project overlaps")},
		{strange, in(project(strange), "footer-3", "The footer of another account overlaps")},
	} {
		w := s.claims(bob, s.submittedWith(fails.key, fails.body))
		for n := range w.items {
			w.call("PUT", "/items/"+w.items[n], `{"status":"fail","note":"It does."}`).want(http.StatusOK)
		}
		w.completes("Bad.")
	}
	id := s.submittedWith(key, in(shop, "receipt", "The receipt arrives by mail"))
	at := "/v1/checker/jobs/" + id + "/open-failures"
	s.call(ann, "GET", at, "").refused(http.StatusNotFound, domain.CodeNotFound) // not yet theirs
	w := s.claims(ann, id)
	keys := func(query string) (keys []string) {
		t.Helper()
		list, _ := s.call(ann, "GET", at+query, "").want(http.StatusOK)["openFailures"].([]any)
		for n := range list {
			keys = append(keys, field(list, n, "key").(string))
		}
		return keys
	}
	equal(t, keys(""), []string{"footer", "cart"}) // the receipt is on the list
	equal(t, keys("?limit=1"), []string{"footer"})
	equal(t, keys("?text=the+cart+is+empty"), []string{"cart"})
	equal(t, len(keys("?text=something+else")), 0)
	first := s.call(ann, "GET", at+"?limit=1", "").want(http.StatusOK)
	list, _ := first["openFailures"].([]any)
	equal(t, first, map[string]any{"jobId": id, "openFailures": []any{map[string]any{
		"key": "footer", "description": "The footer overlaps the button", "severity": "major", "failedTests": 1.0, "firstFailedAt": field(list, 0, "firstFailedAt"),
	}}})
	equal(t, s.call(ann, "GET", at+"?limit=0&text="+strings.Repeat("x", 2001), "").paths(), []string{"limit", "text"})
	w.call("POST", "/items", `{"description":"The footer again","key":"footer","status":"fail"}`).want(http.StatusCreated)
	equal(t, keys(""), []string{"cart"}) // the footer is told of

	s.call(bob, "GET", at, "").refused(http.StatusNotFound, domain.CodeNotFound)
	w.call("POST", "/release", "").want(http.StatusOK)
	s.call(ann, "GET", at, "").refused(http.StatusNotFound, domain.CodeNotFound)

	alone := s.submitted(key) // of no project
	s.claims(ann, alone)
	equal(t, s.call(ann, "GET", "/v1/checker/jobs/"+alone+"/open-failures", "").want(http.StatusOK), map[string]any{"jobId": alone, "openFailures": []any{}})
	session := s.openSession(key, twoSlots)
	slot := session.jobs[0]
	s.claims(bob, slot)
	s.call(bob, "GET", "/v1/checker/jobs/"+slot+"/open-failures", "").refused(http.StatusConflict, domain.CodeConflict)
}

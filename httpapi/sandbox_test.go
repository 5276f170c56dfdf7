package httpapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
)

// sandbox opens a sandbox account with credits and a full key.
func (s *service) sandbox() (accountID, key string) {
	s.t.Helper()
	accountID = s.parts.Account(100, true)
	return accountID, s.key(accountID, command.IssueKey{Scope: account.ScopeFull})
}

const twoItems = `{"url":"https://example.com/shop","title":"Checkout","description":"Buy a thing","jobType":"General QA",
	"checklistItems":[{"description":"pay by card","severity":"critical"},{"description":"a mail arrives"}]}`

func (s *service) submittedAs(key, body string) string {
	s.t.Helper()
	id, _ := s.call(key, "POST", "/v1/jobs", body).want(http.StatusCreated)["jobId"].(string)
	return id
}

func TestASandboxAccountMovesItsTime(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.sandbox()
	first := s.call(key, "POST", "/v1/sandbox/clock/advance", `{"seconds":3600}`, "Idempotency-Key", "k").want(http.StatusOK)
	now, err := time.Parse(time.RFC3339, first["now"].(string))
	if err != nil || time.Until(now) < 59*time.Minute {
		t.Errorf("now is %v", first["now"])
	}
	delete(first, "now")
	equal(t, first, map[string]any{"offsetSeconds": 3600.0, "advancedSeconds": 3600.0})
	s.call(key, "POST", "/v1/sandbox/clock/advance", `{"seconds":3600}`, "Idempotency-Key", "k").want(http.StatusOK)
	second := s.call(key, "POST", "/v1/sandbox/clock/advance", `{"seconds":60}`).want(http.StatusOK)
	delete(second, "now")
	equal(t, second, map[string]any{"offsetSeconds": 3660.0, "advancedSeconds": 60.0})

	for body, path := range map[string]string{
		`{}`: "seconds", `{"seconds":0}`: "seconds", `{"seconds":-5}`: "seconds", `{"seconds":31536001}`: "seconds",
		`{"seconds":"60"}`: "seconds", `{"seconds":1.5}`: "seconds", `[]`: "body", ``: "body",
	} {
		equal(t, s.call(key, "POST", "/v1/sandbox/clock/advance", body).paths(), []string{path})
	}
}

func TestARobotPlaysAJobOverHTTP(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.sandbox()
	id := s.submittedAs(key, twoItems)
	played := s.call(key, "POST", "/v1/sandbox/jobs/"+id+"/play",
		`{"results":[{"item":"item-1","status":"fail","note":"declined","severity":"minor"}],"summary":"so so"}`).want(http.StatusOK)
	report := s.call(key, "GET", "/v1/jobs/"+id+"/report", "").want(http.StatusOK)
	equal(t, played, map[string]any{
		"jobId": id, "status": "completed", "reportId": report["id"], "overallStatus": "fail",
		"passCount": 1.0, "failCount": 1.0, "skipCount": 0.0,
	})
	equal(t, report["checkerSummary"], any("so so"))

	t.Run("whole, without a body", func(t *testing.T) {
		id := s.submittedAs(key, twoItems)
		played := s.call(key, "POST", "/v1/sandbox/jobs/"+id+"/play", "").want(http.StatusOK)
		equal(t, played["overallStatus"], any("pass"))
	})
	t.Run("and no checker sees it", func(t *testing.T) {
		s.submittedAs(key, twoItems)
		equal(t, s.call(s.checker(), "GET", "/v1/checker/queue", "").want(http.StatusOK), map[string]any{"jobs": []any{}, "total": 0.0, "limit": 20.0, "offset": 0.0})
	})
	t.Run("with a question first", func(t *testing.T) {
		id := s.submittedAs(key, twoItems)
		play := func(question string) result {
			return s.call(key, "POST", "/v1/sandbox/jobs/"+id+"/play", `{"question":`+question+`}`)
		}
		equal(t, play(`{"kind":"joke"}`).paths(), []string{"question.kind", "question.text"})
		equal(t, play(`{"text":"?","item":"x"}`).paths(), []string{"question.item"})
		equal(t, play(`"?"`).paths(), []string{"question"})
		asked := play(`{"text":"Which code?","kind":"code","item":"item-1"}`).want(http.StatusAccepted)
		open := s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)["openQuestion"]
		equal(t, asked, map[string]any{"jobId": id, "status": "claimed", "question": open})
		play(`{"text":"Another?"}`).refused(http.StatusConflict, domain.CodeConflict)
		s.call(key, "POST", "/v1/sandbox/jobs/"+id+"/play", "").want(http.StatusOK) // without waiting for the answer
	})
	t.Run("with every mistake named", func(t *testing.T) {
		id := s.submittedAs(key, twoItems)
		play := func(body string) []string {
			return s.call(key, "POST", "/v1/sandbox/jobs/"+id+"/play", body).paths()
		}
		equal(t, play(`{"results":[{"item":"item-1","status":"pass"},{"item":"x","status":"pass"}]}`), []string{"results[1].item"})
		equal(t, play(`{"results":[{"status":"good"},{"item":"item-1","status":"pass","reason":"blocked"}],"summary":7}`),
			[]string{"results[0].item", "results[0].status", "results[1].reason", "summary"})
		equal(t, play(`{"results":{}}`), []string{"results"})
	})
}

func TestRobotsPlayASessionOverHTTP(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.sandbox()
	opened := s.call(key, "POST", "/v1/hosted/sessions", `{"url":"https://shop.example","slots":[{},{}]}`).want(http.StatusCreated)
	id, _ := opened["sessionId"].(string)
	first, _ := opened["slots"].([]any)[0].(map[string]any)["jobId"].(string)

	equal(t, s.call(key, "POST", "/v1/sandbox/sessions/"+id+"/ready", `{"slots":[1]}`).want(http.StatusOK),
		map[string]any{"sessionId": id, "status": "lobby", "readyCount": 1.0, "checkerCount": 2.0})
	s.call(key, "POST", "/v1/sandbox/jobs/"+first+"/play", "").refused(http.StatusConflict, domain.CodeConflict)
	equal(t, s.call(key, "POST", "/v1/sandbox/sessions/"+id+"/ready", "").want(http.StatusOK),
		map[string]any{"sessionId": id, "status": "active", "readyCount": 2.0, "checkerCount": 2.0})
	s.call(key, "POST", "/v1/sandbox/jobs/"+first+"/play", "").want(http.StatusOK)

	for body, path := range map[string]string{
		`{"slots":[1,3]}`: "slots[1]", `{"slots":["1"]}`: "slots[0]", `{"slots":[null]}`: "slots[0]", `{"slots":1}`: "slots",
	} {
		equal(t, s.call(key, "POST", "/v1/sandbox/sessions/"+id+"/ready", body).paths(), []string{path})
	}
}

func TestTheSandboxIsForSandboxAccounts(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	job := s.submitted(key)
	boxed, box := s.sandbox()
	own, elsewhere := s.submittedAs(box, twoItems), s.project(box, `{"name":"Other"}`)
	before := s.written()
	for _, path := range []string{"/v1/sandbox/clock/advance", "/v1/sandbox/jobs/" + job + "/play", "/v1/sandbox/sessions/" + uuid.NewString() + "/ready"} {
		body := s.call(key, "POST", path, `not JSON`).refused(http.StatusForbidden, domain.CodeForbidden)
		equal(t, body["hint"], any("use a key of a sandbox account, which starts with qa_test_"))
	}
	t.Run("and each for its own", func(t *testing.T) {
		_, other := s.sandbox()
		for _, id := range []string{own, job, "no-such-job", "%2e%2e"} {
			s.call(other, "POST", "/v1/sandbox/jobs/"+id+"/play", "").refused(http.StatusNotFound, domain.CodeNotFound)
		}
		s.call(other, "POST", "/v1/sandbox/sessions/"+uuid.NewString()+"/ready", "").refused(http.StatusNotFound, domain.CodeNotFound)
	})
	t.Run("with a key that may write, and of its project", func(t *testing.T) {
		readOnly := s.key(boxed, command.IssueKey{Scope: account.ScopeRead})
		s.call(readOnly, "POST", "/v1/sandbox/clock/advance", `{"seconds":1}`).refused(http.StatusForbidden, domain.CodeForbidden)
		bound := s.key(boxed, command.IssueKey{Scope: account.ScopeFull, ProjectID: elsewhere})
		s.call(bound, "POST", "/v1/sandbox/jobs/"+own+"/play", "").refused(http.StatusForbidden, domain.CodeForbidden)
	})
	if after := s.written(); after != before+5 { // another account with credits and a key, and two keys
		t.Errorf("the log grew from %d to %d", before, after)
	}
}

// A key of one project must not move the time of the others.
func TestAProjectBoundKeyDoesNotMoveTheAccountsTime(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.sandbox()
	bound := s.key(accountID, command.IssueKey{Scope: account.ScopeFull, ProjectID: s.project(key, `{"name":"Shop"}`)})
	for _, body := range []string{`{"seconds":60}`, `{}`} { // 403 comes before 400
		s.call(bound, "POST", "/v1/sandbox/clock/advance", body).refused(http.StatusForbidden, domain.CodeForbidden)
	}
	moved := s.call(key, "POST", "/v1/sandbox/clock/advance", `{"seconds":1}`).want(http.StatusOK)
	equal(t, moved["offsetSeconds"], any(1.0))
}

package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/internal/testing/must"
)

// hook opens a project and gives the path of its deploy hook.
func (s *service) hook(key, more string) (projectID, path string) {
	s.t.Helper()
	body := s.call(key, "POST", "/v1/projects", `{"name":"Shop"`+more+`}`).want(http.StatusCreated)
	return body["projectId"].(string), strings.TrimPrefix(body["deployHookUrl"].(string), "https://qa.example")
}

const withURL = `,"defaultUrl":"https://shop.replit.app/start"`

func TestADeployHookNeedsNoKeyAndAnswersAsAHostedTestDoes(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	projectID, hook := s.hook(key, withURL)
	body := s.call("", "POST", hook, "").want(http.StatusCreated)
	id := body["jobId"].(string)
	equal(t, body, map[string]any{
		"jobId": id, "projectId": projectID, "status": "pending", "estimatedCompletionMinutes": 60.0,
		"creditsDeducted": 5.0, "creditsCharged": 5.0, "creditsRemaining": 95.0, "checklistItemCount": 1.0,
		"jobType": "First Impression", "jobTypeCode": "first_impression", "isHostedApp": true, "regressionItemsIncluded": 0.0,
		"statusUrl":          "https://qa.example/v1/hosted/status/" + id,
		"reportUrl":          "https://qa.example/v1/jobs/" + id + "/report",
		"dashboardReportUrl": "https://qa.example/dashboard/jobs/" + id,
		"deduplicated":       false,
	})
	given := s.call("", "POST", hook, `{"url":"https://preview.example.com/","feature":"Checkout","priority":"urgent",
		"commitSha":"abc","branch":"main","environment":"staging"}`).want(http.StatusCreated)
	with(t, given, map[string]any{"jobType": "Payment Flow", "creditsDeducted": 10.0, "isHostedApp": false})
	with(t, s.call(key, "GET", "/v1/jobs/"+given["jobId"].(string), "").want(http.StatusOK), map[string]any{
		"url": "https://preview.example.com/", "description": "Checkout", "branch": "main", "environment": "staging", "commitSha": "abc",
	})
	if strings.Contains(s.logged.String(), "qh_") {
		t.Error("the log shows the token")
	}
}

func TestADeployIsDeduplicatedWhileItsJobLives(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	_, hook := s.hook(key, withURL)
	first := s.call("", "POST", hook, `{"commitSha":"ABC","deduplicationKey":"run 7"}`).want(http.StatusCreated)
	for _, body := range []string{`{"commitSha":"abc"}`, `{"deduplicationKey":" run 7 "}`, `{"commitSha":"def","deduplicationKey":"run 7"}`} {
		with(t, s.call("", "POST", hook, body).want(http.StatusOK), map[string]any{
			"jobId": first["jobId"], "deduplicated": true, "creditsDeducted": 0.0, "creditsCharged": 0.0, "creditsRemaining": 95.0, "status": "pending",
		})
	}
	for _, body := range []string{`{"commitSha":"run 7"}`, `{}`, ``} {
		with(t, s.call("", "POST", hook, body).want(http.StatusCreated), map[string]any{"deduplicated": false})
	}
	s.complete(first["jobId"].(string))
	after := s.call("", "POST", hook, `{"commitSha":"abc"}`).want(http.StatusCreated)
	if after["jobId"] == first["jobId"] {
		t.Error("a job that has ended was answered")
	}
}

func TestADeployTakesFailuresAndPreparedFixesAlongOnce(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	projectID, hook := s.hook(key, withURL)
	s.complete(s.call("", "POST", hook, "").want(http.StatusCreated)["jobId"].(string), "item-1")
	s.call(key, "POST", "/v1/hosted/prepare-next", `{"projectId":"`+projectID+`","fixedDescriptions":["The cart adds up"]}`).want(http.StatusOK)
	for _, want := range [][]string{
		{"The cart adds up prepared_fix", "the page loads open_failure"},
		{"the page loads open_failure"},
	} {
		equal(t, s.checklist(s.call("", "POST", hook, "").want(http.StatusCreated)["jobId"].(string)), want)
	}
}

func TestWhatADeployHookRefuses(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(4)
	_, hook := s.hook(key, withURL)
	_, bare := s.hook(key, "")
	before := s.written()
	for _, token := range []string{"qh_unknown", strings.Repeat("x", 300), uuid.NewString(), "%00"} {
		s.call("", "POST", "/v1/hooks/deploy/"+token, "").refused(http.StatusNotFound, domain.CodeNotFound)
	}
	equal(t, s.call("", "POST", bare, "").paths(), []string{"url"})
	equal(t, s.call("", "POST", bare, `{"url":""}`).paths(), []string{"url"})
	equal(t, s.call("", "POST", bare, `{"url":null,"priority":"fast"}`).paths(), []string{"priority"})
	long := func(n int) string { return `"` + strings.Repeat("ü", n) + `"` }
	equal(t, s.call("", "POST", hook, `{"url":"https://10.0.0.1/","feature":`+long(2001)+`,"priority":"fast","commitSha":`+long(101)+
		`,"branch":`+long(257)+`,"environment":`+long(101)+`,"deduplicationKey":`+long(257)+`}`).paths(),
		[]string{"branch", "commitSha", "deduplicationKey", "environment", "feature", "priority", "url"})
	equal(t, s.call("", "POST", hook, `[]`).paths(), []string{"body"})
	s.call("", "POST", hook, "").refused(http.StatusPaymentRequired, domain.CodeInsufficientCredits)
	equal(t, s.written(), before)

	at, err := s.commands.SuspendAccount(t.Context(), operator(uuid.New()), accountID)
	s.visible(at, err)
	s.call("", "POST", hook, "").refused(http.StatusForbidden, domain.CodeAccountSuspended)
}

func TestADeployWithAnIdempotencyKeyIsOneDeployAndItsTokenIsStoredNowhere(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	_, hook := s.hook(key, withURL)
	_, other := s.hook(key, withURL)
	first := s.call("", "POST", hook, "", "Idempotency-Key", "k").want(http.StatusCreated)
	again := s.call("", "POST", hook, "", "Idempotency-Key", "k")
	equal(t, again.want(http.StatusCreated), first)
	equal(t, again.Header().Get("Idempotent-Replayed"), "true")
	s.call("", "POST", other, "", "Idempotency-Key", "k").want(http.StatusCreated)
	equal(t, s.count("job.created"), 2)
	var paths []string
	must.NoError(t, s.db.SelectContext(t.Context(), &paths, `SELECT path FROM http_idempotency`))
	for _, p := range paths {
		if strings.Contains(p, "qh_") {
			t.Errorf("the table holds the token: %s", p)
		}
	}
}

func TestADryRunOfADeployTellsWhatTheCallWouldDoAndWritesNothing(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(7)
	_, hook := s.hook(key, withURL)
	_, bare := s.hook(key, "")
	dry := func(body string) map[string]any {
		t.Helper()
		return s.call("", "POST", hook+"?dryRun=true", body, "Idempotency-Key", "one").want(http.StatusOK)
	}
	before := s.written()
	want := map[string]any{
		"dryRun": true, "wouldTest": true, "reason": nil, "platform": nil, "url": "https://shop.replit.app/start", "commitSha": nil, "jobId": nil,
		"jobTypeCode": "first_impression", "creditsRequired": 5.0, "sufficient": true,
	}
	equal(t, dry(""), want)
	want["url"], want["commitSha"], want["jobTypeCode"] = "https://new.example.com/pay", "abc", "payment_flow"
	want["creditsRequired"], want["sufficient"] = 10.0, false
	equal(t, dry(`{"url":"https://new.example.com/pay","commitSha":"abc","priority":"urgent"}`), want)
	with(t, dry(`{"text":"x"}`), map[string]any{"wouldTest": false, "creditsRequired": 0.0, "jobId": nil, "jobTypeCode": nil})
	equal(t, s.call("", "POST", bare+"?dryRun=true", "").paths(), []string{"url"})
	equal(t, s.call("", "POST", hook+"?dryRun=maybe", "").paths(), []string{"dryRun"})
	equal(t, s.written(), before)
	made := s.call("", "POST", hook, `{"commitSha":"abc"}`, "Idempotency-Key", "one").want(http.StatusCreated)
	with(t, dry(`{"commitSha":"ABC"}`), map[string]any{"wouldTest": false, "jobId": made["jobId"], "creditsRequired": 0.0})
}

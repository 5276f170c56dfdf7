package httpapi

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
)

// Specification, "POST /v1/jobs/:id/retest"; decisions, "Retest".
func TestARetestClonesAJob(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	project, _ := s.call(key, "POST", "/v1/projects", `{"name":"Shop"}`).want(http.StatusCreated)["projectId"].(string)
	parent := s.submittedWith(key, `"priority":"urgent","slaMinutes":30,"projectId":"`+project+`","targetDevice":"phone",
		"credentials":{"username":"tester","password":"s3cr3t-pass"},"accessInstructions":"code 4711-door",`+checklistOf(3))
	s.claims(s.checker(), parent).checks(passes, fails, skips).completes("Broken.")

	// The body is not looked at, whatever it is.
	again := s.call(key, "POST", "/v1/jobs/"+parent+"/retest", `{"url":7`).want(http.StatusCreated)
	id, _ := again["jobId"].(string)
	equal(t, again, map[string]any{
		"jobId": id, "parentJobId": parent, "status": "pending", "creditsDeducted": 10.0, "creditsRemaining": 80.0,
		"estimatedCompletionMinutes": 15.0, "checklistItemCount": 3.0, "jobType": "Payment Flow",
		"jobTypeCode": "payment_flow", "projectId": project,
	})
	with(t, s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK), map[string]any{
		"status": "pending", "parentJobId": parent, "title": "Checkout", "url": "https://example.com/shop",
		"priority": "urgent", "slaMinutes": 30.0, "projectId": project, "targetDevice": "phone", "source": "retest",
		"completedAt": nil, "overallStatus": nil,
	})
	claim := s.call(s.checker(), "POST", "/v1/checker/claims", `{"jobId":"`+id+`"}`).want(http.StatusCreated)
	brief, _ := claim["brief"].(map[string]any)
	with(t, brief, map[string]any{"accessInstructions": "code 4711-door"})
	equal(t, brief["credentials"], any(map[string]any{"username": "tester", "password": "s3cr3t-pass", "notes": ""}))
	equal(t, s.call(key, "GET", "/v1/hosted/status/"+id, "").want(http.StatusOK)["checklist"],
		any(map[string]any{"totalItems": 3.0, "checkedItems": 0.0, "passedItems": 0.0, "failedItems": 0.0, "skippedItems": 0.0}))

	// The parent of a retest's retest is the retest.
	equal(t, s.call(key, "POST", "/v1/jobs/"+id+"/retest", "").want(http.StatusCreated)["parentJobId"], any(id))
}

func TestAnyJobCanBeTestedAgainIfItCanBePaid(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(25)
	_, other := s.account(100)
	pending, cancelled, failed := s.submitted(key), s.submitted(key), s.submitted(key)
	s.call(key, "POST", "/v1/jobs/"+cancelled+"/cancel", "").want(http.StatusOK)
	s.failed(accountID, failed)
	for _, id := range []string{pending, cancelled, failed} {
		s.call(key, "POST", "/v1/jobs/"+id+"/retest", "").want(http.StatusCreated)
	}
	for _, id := range []string{pending} {
		s.call(key, "POST", "/v1/jobs/"+id+"/retest", "").want(http.StatusCreated)
	}
	before := s.written()
	short := s.call(key, "POST", "/v1/jobs/"+pending+"/retest", "").refused(http.StatusPaymentRequired, domain.CodeInsufficientCredits)
	with(t, short, map[string]any{"creditsRequired": 5.0, "creditsAvailable": 0.0, "creditsShort": 5.0})
	s.call(other, "POST", "/v1/jobs/"+pending+"/retest", "").refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(key, "POST", "/v1/jobs/"+uuid.NewString()+"/retest", "").refused(http.StatusNotFound, domain.CodeNotFound)
	equal(t, s.call(key, "POST", "/v1/jobs/"+pending+"/retest", "", "Idempotency-Key", "").paths(), []string{"Idempotency-Key"})
	equal(t, s.written(), before)
}

func TestARetestIsOneUnderOneKey(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	path := "/v1/jobs/" + s.submitted(key) + "/retest"
	first := s.call(key, "POST", path, "", "Idempotency-Key", "r").want(http.StatusCreated)
	equal(t, s.call(key, "POST", path, "", "Idempotency-Key", "r").want(http.StatusCreated), first)
	equal(t, s.count("job.created"), 2)
}

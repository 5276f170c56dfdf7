package httpapi

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
)

// Decisions, "AI report": 404, 202, 200 in each state.
func TestTheAIReportThroughTheLifeOfAJob(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	_, other := s.account(0)
	id := s.submittedWith(key, checklistOf(2))
	path := "/v1/jobs/" + id + "/ai-report"
	early := func() {
		t.Helper()
		r := s.call(key, "GET", path, "")
		equal(t, r.refused(http.StatusNotFound, domain.CodeNotFound)["hint"], any("the AI report follows once the job is completed"))
		equal(t, r.Header().Get("Retry-After"), "30")
	}
	early() // pending
	w := s.claims(s.checker(), id).checks(passes, `{"status":"fail","note":"crashes","severity":"critical"}`)
	early() // claimed
	w.completes("Broken.")

	generating := s.call(key, "GET", path, "")
	equal(t, generating.want(http.StatusAccepted), map[string]any{"jobId": id, "status": "generating"})
	equal(t, generating.Header().Get("Retry-After"), "15")
	equal(t, s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)["aiReportStatus"], any("generating"))

	s.analysed(accountID, id)
	body := s.call(key, "GET", path, "").want(http.StatusOK)
	job := s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)
	equal(t, job["aiReportStatus"], any("completed"))
	equal(t, body, map[string]any{
		"id": body["id"], "jobId": id, "reportId": job["reportId"], "status": "completed", "executiveSummary": "analysed",
		"healthScore": 75.0, "bugs": []any{}, "passCount": 1.0, "failCount": 1.0, "skipCount": 0.0,
		"strengths": []any{}, "recommendations": []any{}, "generatedBy": "test", "createdAt": body["createdAt"],
	})
	s.call(other, "GET", path, "").refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(key, "GET", "/v1/jobs/"+uuid.NewString()+"/ai-report", "").refused(http.StatusNotFound, domain.CodeNotFound)
}

func TestAJobThatEndedWithoutAReportWillHaveNoAIReport(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	cancelled, failed := s.submitted(key), s.submitted(key)
	s.call(key, "POST", "/v1/jobs/"+cancelled+"/cancel", "").want(http.StatusOK)
	s.failed(accountID, failed)
	for id, hint := range map[string]string{
		cancelled: "the job is cancelled; it will have no AI report", failed: "the job is failed; it will have no AI report",
	} {
		r := s.call(key, "GET", "/v1/jobs/"+id+"/ai-report", "")
		equal(t, r.refused(http.StatusNotFound, domain.CodeNotFound)["hint"], any(hint))
		equal(t, r.Header().Get("Retry-After"), "")
	}
}

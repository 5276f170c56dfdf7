package httpapi

import (
	"net/http"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
)

// Decisions, "Order of checks": a key that may not see what the
// path names is told so before anything is said of the rest of the request.
func TestAProjectBoundKeyIsRefusedBeforeItsRequestIsChecked(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	own, _ := s.call(key, "POST", "/v1/projects", `{"name":"own"}`).want(http.StatusCreated)["projectId"].(string)
	bound := s.key(accountID, command.IssueKey{Scope: account.ScopeFull, ProjectID: own})
	job := s.submitted(key)
	batch, _ := s.call(key, "POST", "/v1/jobs/bulk", `{"jobs":[`+aJob+`]}`).want(http.StatusCreated)["batchId"].(string)
	for _, c := range []struct{ method, target string }{
		{"GET", "/v1/jobs/" + job + "/report?format=pdf"},
		{"GET", "/v1/jobs/report?format=pdf&ids=" + job},
		{"GET", "/v1/jobs/bulk/" + batch + "/report?format=pdf"},
		{"GET", "/v1/hosted/status/" + job + "?wait=26"},
		{"POST", "/v1/jobs/" + job + "/retest"},
	} {
		s.call(bound, c.method, c.target, "", "Idempotency-Key", "\x01").refused(http.StatusForbidden, domain.CodeForbidden)
		s.call(key, c.method, c.target, "", "Idempotency-Key", "\x01").refused(http.StatusBadRequest, domain.CodeInvalidRequest)
	}
}

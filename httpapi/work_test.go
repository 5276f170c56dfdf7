package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"humanqa/domain/command"
)

// jobWith is aJob with further fields, such as `"priority":"urgent"`.
func jobWith(fields string) string { return strings.Replace(aJob, "{", "{"+fields+",", 1) }

// submittedWith submits aJob with further fields and gives its id.
func (s *service) submittedWith(key, fields string) string {
	s.t.Helper()
	id, _ := s.call(key, "POST", "/v1/jobs", jobWith(fields)).want(http.StatusCreated)["jobId"].(string)
	return id
}

// checklistOf is a field with n items.
func checklistOf(n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`{"description":"Step %d","key":"step-%d"}`, i+1, i+1)
	}
	return `"checklistItems":[` + strings.Join(items, ",") + `]`
}

// work is a claim on its way to a report.
type work struct {
	s              *service
	checker, jobID string
	token          string
	items          []string // ids
}

func (s *service) claims(checker, jobID string) *work {
	s.t.Helper()
	claim := s.call(checker, "POST", "/v1/checker/claims", `{"jobId":"`+jobID+`"}`).want(http.StatusCreated)
	w := &work{s: s, checker: checker, jobID: jobID}
	w.token, _ = claim["claimToken"].(string)
	items, _ := claim["checklist"].([]any)
	for _, i := range items {
		id, _ := i.(map[string]any)["id"].(string)
		w.items = append(w.items, id)
	}
	return w
}

func (w *work) call(method, path, body string, headers ...string) result {
	w.s.t.Helper()
	return w.s.call(w.checker, method, "/v1/checker/jobs/"+w.jobID+path, body, append(headers, "X-Claim-Token", w.token)...)
}

// check gives the n-th item, from 0, a verdict: a JSON body.
func (w *work) check(n int, verdict string) {
	w.s.t.Helper()
	w.call("PUT", "/items/"+w.items[n], verdict).want(http.StatusOK)
}

const (
	passes = `{"status":"pass"}`
	fails  = `{"status":"fail","note":"broken"}`
	skips  = `{"status":"skip","reason":"blocked"}`
)

// checks gives the items their verdicts, in order.
func (w *work) checks(verdicts ...string) *work {
	w.s.t.Helper()
	for i, v := range verdicts {
		w.check(i, v)
	}
	return w
}

func (w *work) completes(summary string) {
	w.s.t.Helper()
	w.call("POST", "/complete", `{"summary":"`+summary+`"}`).want(http.StatusOK)
}

// tested submits a job with a list and has it tested with these verdicts.
func (s *service) tested(key string, verdicts ...string) (jobID string) {
	s.t.Helper()
	id := s.submittedWith(key, checklistOf(len(verdicts)))
	s.claims(s.checker(), id).checks(verdicts...).completes("Tested.")
	return id
}

// analysed has the analysis of a completed job written, as the policy would.
func (s *service) analysed(accountID, jobID string) {
	s.t.Helper()
	at, err := s.commands.AnalyseJob(s.t.Context(), command.Cause{
		CommandID: uuid.New(), Actor: "policy:analyse", AccountID: accountID,
	}, jobID)
	s.visible(at, err)
}

// failed has the operator fail a job.
func (s *service) failed(accountID, jobID string) {
	s.t.Helper()
	cause := operator(uuid.New())
	cause.AccountID = accountID
	out, err := s.commands.FailJob(s.t.Context(), cause, jobID, "operator")
	s.visible(out.Position, err)
}

package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	accounts "humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

// Decisions, "Disputes".
func TestAVerdictIsDisputedAnsweredAndDecided(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	account, key := s.account(100)
	_, strange := s.account(0)
	reader := s.key(account, command.IssueKey{Scope: accounts.ScopeRead})
	id := s.submittedWith(key, checklistOf(2))
	w := s.claims(s.checker(), id)
	w.checks(fails, passes)
	at := "/v1/jobs/" + id + "/disputes"
	dispute := `{"itemId":"` + w.items[0] + `","reason":"The page was down."}`
	s.call(key, "POST", at, dispute).refused(http.StatusConflict, domain.CodeConflict) // there is no report yet
	w.call("POST", "/complete", `{"summary":"done"}`).want(http.StatusOK)
	before := s.call(key, "GET", "/v1/jobs/"+id+"/report", "")
	position := before.Header().Get("X-Log-Position")

	s.call(strange, "POST", at, dispute).refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(strange, "GET", at, "").refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(reader, "POST", at, dispute).refused(http.StatusForbidden, domain.CodeForbidden)
	equal(t, s.call(key, "POST", at, `{"itemId":"none","reason":"No."}`).paths(), []string{"itemId"})
	equal(t, s.call(key, "POST", at, `{}`).paths(), []string{"itemId", "reason"})
	made := s.call(key, "POST", at, dispute, "Idempotency-Key", "d1").want(http.StatusCreated)
	with(t, made, map[string]any{
		"jobId": id, "itemId": w.items[0], "verdict": "fail", "reason": "The page was down.", "answer": nil, "decision": nil, "retestJobId": nil,
	})
	equal(t, s.call(key, "POST", at, dispute, "Idempotency-Key", "d1").Header().Get("Idempotent-Replayed"), "true")
	s.call(key, "POST", at, dispute).refused(http.StatusConflict, domain.CodeConflict)

	open, _ := s.call(w.checker, "GET", "/v1/checker/disputes", "").want(http.StatusOK)["disputes"].([]any)
	if len(open) != 1 || open[0].(map[string]any)["id"] != made["id"] {
		t.Errorf("the checker may answer %v", open)
	}
	answer := "/v1/checker/jobs/" + id + "/disputes/" + made["id"].(string) + "/answer"
	s.call(s.checker(), "POST", answer, `{"text":"No."}`).refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(w.checker, "POST", strings.Replace(answer, made["id"].(string), uuid.NewString(), 1), `{"text":"No."}`).
		refused(http.StatusNotFound, domain.CodeNotFound)
	said := s.call(w.checker, "POST", answer, `{"text":"It was blank three times."}`).want(http.StatusOK)
	with(t, said, map[string]any{"answer": "It was blank three times.", "decision": nil})
	s.call(w.checker, "POST", answer, `{"text":"Or not."}`).refused(http.StatusConflict, domain.CodeConflict)

	pos, err := s.commands.RuleDispute(t.Context(), command.Cause{CommandID: domain.NewCommandID(), Actor: "operator:o", AccountID: account},
		id, made["id"].(string), job.Overturned)
	s.visible(pos, err)
	report := s.call(key, "GET", "/v1/jobs/"+id+"/report", "").want(http.StatusOK)
	with(t, report, map[string]any{"overallStatus": "pass", "failCount": 0.0, "skipCount": 1.0})
	item, _ := report["items"].([]any)[0].(map[string]any)
	with(t, item, map[string]any{"status": "skip", "skipReason": "disputed"})
	decided, _ := report["disputes"].([]any)[0].(map[string]any)
	with(t, decided, map[string]any{"verdict": "fail", "answer": "It was blank three times.", "decision": "overturned"})
	s.call(key, "POST", at, dispute).refused(http.StatusConflict, domain.CodeConflict) // also after the decision
	for _, format := range []string{"md", "junit", "ctrf"} {
		text := s.call(key, "GET", "/v1/jobs/"+id+"/report?format="+format, "").Body.String()
		for _, part := range []string{"The page was down.", "It was blank three times.", "the verdict does not count"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %q: %s", format, part, text)
			}
		}
	}
	then := s.call(key, "GET", "/v1/jobs/"+id+"/report?asOf="+position, "").want(http.StatusOK)
	with(t, then, map[string]any{"overallStatus": "fail", "failCount": 1.0})
	feed := s.call(key, "GET", "/v1/jobs/"+id+"/events", "").Body.String()
	for _, name := range []string{"job.disputed", "job.dispute_answered", "job.dispute_decided"} {
		if !strings.Contains(feed, name) {
			t.Errorf("the job's events lack %s", name)
		}
	}
	if strings.Contains(feed, "job.dispute_settled") {
		t.Error("the settlement is told")
	}
}

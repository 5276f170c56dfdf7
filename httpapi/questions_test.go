package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	accounts "humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/httpapi/wire"
)

// Decisions, "Questions".
func TestACheckerAsksAndTheClientAnswers(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	account, key := s.account(100)
	_, strange := s.account(0)
	reader := s.key(account, command.IssueKey{Scope: accounts.ScopeRead})
	id := s.submittedWith(key, checklistOf(2))
	w := s.claims(s.checker(), id)
	job := func() map[string]any { return s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK) }
	due := func() time.Time {
		at, err := time.Parse(wire.TimestampLayout, job()["dueAt"].(string))
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	before := due()
	equal(t, job()["openQuestion"], nil)

	const said = `{"text":"A code was sent by mail. What is it?","kind":"code","itemId":"`
	question := said + w.items[0] + `"}`
	asked := w.call("POST", "/questions", question, "Idempotency-Key", "k1").want(http.StatusCreated)
	again := w.call("POST", "/questions", question, "Idempotency-Key", "k1")
	equal(t, again.Header().Get("Idempotent-Replayed"), "true")
	equal(t, w.call("POST", "/questions", question).want(http.StatusCreated), asked) // the same words, the same question
	w.call("POST", "/questions", `{"text":"Another?"}`).refused(http.StatusConflict, domain.CodeConflict)
	equal(t, w.call("POST", "/questions", `{"kind":"joke"}`).paths(), []string{"kind", "text"})
	equal(t, w.call("POST", "/heartbeat", "").want(http.StatusOK)["clockStands"], any(true))
	at := "/v1/jobs/" + id + "/questions/" + asked["questionId"].(string) + "/answer"
	open, _ := job()["openQuestion"].(map[string]any)
	with(t, open, map[string]any{"id": asked["questionId"], "status": "open", "itemId": w.items[0], "until": asked["until"], "answer": nil})

	const answer = `{"text":"It is the secret.","secret":"483112"}`
	s.call(strange, "POST", at, answer).refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(strange, "GET", "/v1/jobs/"+id+"/questions", "").refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(reader, "POST", at, answer).refused(http.StatusForbidden, domain.CodeForbidden)
	equal(t, s.call(key, "POST", at, `{"text":" "}`).paths(), []string{"text"})
	s.call(key, "POST", strings.Replace(at, "/questions/", "/questions/0", 1), answer).refused(http.StatusNotFound, domain.CodeNotFound)
	told := s.call(key, "POST", at, answer, "Idempotency-Key", "k2").want(http.StatusOK)
	with(t, told, map[string]any{"jobId": id, "status": "answered", "answer": "It is the secret.", "hasSecret": true})
	equal(t, s.call(key, "POST", at, answer, "Idempotency-Key", "k2").Header().Get("Idempotent-Replayed"), "true")
	s.call(key, "POST", at, `{"text":"No, this."}`).refused(http.StatusConflict, domain.CodeConflict)

	if !due().After(before) {
		t.Errorf("the SLA ended %s before the question, and ends %s after it", before, due())
	}
	equal(t, job()["openQuestion"], nil)
	claim := s.call(w.checker, "GET", "/v1/checker/claims", "").want(http.StatusOK)
	list, _ := claim["questions"].([]any)
	shown, _ := list[0].(map[string]any)
	with(t, shown, map[string]any{"answer": "It is the secret.", "secret": "483112"})

	w.checks(passes, passes)
	w.call("POST", "/complete", `{"summary":"done"}`).want(http.StatusOK)
	report := s.call(key, "GET", "/v1/jobs/"+id+"/report", "")
	if n := len(report.want(http.StatusOK)["questions"].([]any)); n != 1 {
		t.Errorf("the report has %d questions", n)
	}
	feed := s.call(key, "GET", "/v1/jobs/"+id+"/events", "")
	for what, text := range map[string]string{
		"report": report.Body.String(), "markdown": s.call(key, "GET", "/v1/jobs/"+id+"/report?format=md", "").Body.String(),
		"feed":  feed.Body.String(),
		"list":  s.call(key, "GET", "/v1/jobs/"+id+"/questions", "").Body.String(),
		"log":   s.stored(),
		"words": s.logged.String(),
	} {
		if strings.Contains(text, "483112") {
			t.Errorf("the secret is in the %s: %s", what, text)
		}
		if what != "words" && !strings.Contains(text, "A code was sent by mail") {
			t.Errorf("the question is not in the %s: %s", what, text)
		}
	}
	for _, name := range []string{"job.question_asked", "job.question_answered"} {
		if !strings.Contains(feed.Body.String(), name) {
			t.Errorf("%s is not in the feed", name)
		}
	}
	s.call(key, "POST", at, answer).refused(http.StatusConflict, domain.CodeConflict) // the job has ended
}

func TestAQuestionEndsWithItsClaimAndAProjectMayTakeNone(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	project, _ := s.call(key, "POST", "/v1/projects", `{"name":"Shop"}`).want(http.StatusCreated)["projectId"].(string)
	id := s.submittedWith(key, `"projectId":"`+project+`",`+checklistOf(1))
	w := s.claims(s.checker(), id)
	asked := w.call("POST", "/questions", `{"text":"Is this meant?","kind":"meaning"}`).want(http.StatusCreated)
	w.call("POST", "/release", "").want(http.StatusOK)
	at := "/v1/jobs/" + id + "/questions/" + asked["questionId"].(string) + "/answer"
	s.call(key, "POST", at, `{"text":"Yes."}`).refused(http.StatusConflict, domain.CodeConflict)

	equal(t, s.call(key, "PATCH", "/v1/projects/"+project, `{"questionMinutes":61}`).paths(), []string{"questionMinutes"})
	with(t, s.call(key, "PATCH", "/v1/projects/"+project, `{"questionMinutes":0}`).want(http.StatusOK), map[string]any{"questionMinutes": 0.0})
	w = s.claims(s.checker(), id)
	w.call("POST", "/questions", `{"text":"Is this meant?"}`).refused(http.StatusConflict, domain.CodeConflict)
	with(t, s.call(key, "PATCH", "/v1/projects/"+project, `{"questionMinutes":null}`).want(http.StatusOK), map[string]any{"questionMinutes": 30.0})
	w.call("POST", "/questions", `{"text":"Is this meant?"}`).want(http.StatusCreated)
}

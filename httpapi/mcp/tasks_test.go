package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/admit"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pagetest"
	"humanqa/internal/testing/pgtest"
)

func TestATestIsATaskThatOutlivesTheHandler(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.key(account.ScopeFull)
	submit := func(idempotencyKey string, tasks bool) map[string]any { return a.submitted(key, idempotencyKey, tasks) }
	if plain := submit("plain", false); plain["resultType"] != "complete" || plain["structuredContent"] == nil {
		t.Errorf("a client without tasks got %v", plain)
	}
	made := submit("task", true)
	id, _ := made["taskId"].(string)
	if made["resultType"] != "task" || made["status"] != "working" || id == "" || made["pollIntervalMs"] == nil || made["ttlMs"] != nil {
		t.Fatalf("got %v", made)
	}
	task := func() map[string]any { return a.task(key, id) }
	if got := task(); got["status"] != "working" {
		t.Errorf("at first %v", got)
	}
	a.restart()
	a.api(key, "POST", fmt.Sprintf("/v1/sandbox/jobs/%s/play", id), `{}`)
	got := task()
	result, _ := got["result"].(map[string]any)
	if got["status"] != "completed" || result["structuredContent"].(map[string]any)["passed"] != true {
		t.Errorf("at last %v", got)
	}
	for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
		if _, refused := a.call(a.key(account.ScopeFull), method, id, map[string]any{"taskId": id}, true); refused["code"] != -32602.0 {
			t.Errorf("%s of another account: %v", method, refused)
		}
	}
	id = submit("gone", true)["taskId"].(string)
	if _, refused := a.call(key, "tasks/cancel", id, map[string]any{"taskId": id}, true); refused != nil {
		t.Error(refused)
	}
	if got := task(); got["status"] != "cancelled" {
		t.Errorf("cancelled: %v", got)
	}
}

// A client that was told of a test must not take it for one that is not there.
func TestATaskIsNotDeniedWhileTheReadModelsAreBehind(t *testing.T) {
	t.Parallel()
	a := start(t)
	accountID := a.Account("acme", 100, false)
	key := a.keyOf(accountID, account.ScopeFull)
	release := pgtest.HoldUp(t, a.DB, "projection_checkpoints")
	behind := func(context.Context) error { return context.DeadlineExceeded }
	a.API.Fresh = admit.NewFreshness(behind, behind, behind, logrus.StandardLogger())
	made, err := a.Commands.SubmitJob(t.Context(), pagetest.Client(accountID), command.SubmitJob{
		Submission: job.Submission{URL: "https://shop.example.com", Title: "Login", Type: job.GeneralQA, Source: "api"},
	})
	must.NoError(t, err)
	if _, refused := a.call(key, "tasks/get", made.JobID, map[string]any{"taskId": made.JobID}, true); refused["code"] != -32603.0 {
		t.Errorf("behind: %v", refused)
	}
	release()
	a.Shown(made.Position, nil)
	if got := a.task(key, made.JobID); got["status"] != "working" {
		t.Errorf("shown: %v", got)
	}
}

// A tester's question is answered by a client with tasks, and by one without.
func TestAQuestionIsInputThatATaskNeeds(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.keyOf(a.Account("acme", 100, false), account.ScopeFull)
	id := a.submitted(key, "asked", true)["taskId"].(string)
	checker, asked := a.asks(id, "A code was sent by mail. "+hostile)
	got := a.task(key, id)
	form, err := json.Marshal(got["inputRequests"])
	must.NoError(t, err)
	if got["status"] != "input_required" || !strings.Contains(string(form), asked) || !strings.Contains(string(form), "[data ") {
		t.Errorf("asked: %v", got)
	}
	answer := map[string]any{"taskId": id, "inputResponses": map[string]any{
		asked: map[string]any{"action": "accept", "content": map[string]any{"secret": "483112"}},
	}}
	if _, refused := a.call(key, "tasks/update", id, answer, true); refused != nil {
		t.Error(refused)
	}
	if got := a.task(key, id); got["status"] != "working" {
		t.Errorf("answered: %v", got)
	}
	if claim := a.send(checker, "GET", "/v1/checker/claims", ""); !strings.Contains(claim.body, "483112") {
		t.Errorf("the tester sees no answer: %s", claim.body)
	}

	c := a.connect(key, "")
	id = a.did(c, "test_with_a_human", shop(map[string]any{"idempotencyKey": "plain"}))["jobId"].(string)
	_, asked = a.asks(id, "Is this meant?")
	now := a.did(c, "wait_for_report", map[string]any{"jobId": id})
	if q, _ := now["question"].(map[string]any); q["id"] != asked || !strings.Contains(now["next"].(string), "answer_question") {
		t.Fatalf("a wait does not end with a question: %v", now)
	}
	if out, refused := a.use(a.connect(a.key(account.ScopeFull), ""), "answer_question",
		map[string]any{"jobId": id, "questionId": asked, "text": "yes"}); !strings.Contains(refused, "NOT_FOUND") {
		t.Errorf("another account answers: %v", out)
	}
	if out := a.did(c, "answer_question", map[string]any{"jobId": id, "questionId": asked, "text": "yes"}); out["status"] != "answered" {
		t.Errorf("answered: %v", out)
	}
}

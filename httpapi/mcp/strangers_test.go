package mcp_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/domain/account"
	"humanqa/internal/testing/must"
)

// whole is all that a client gets of a call: its text and its structured content.
func (a *agents) whole(c *sdk.ClientSession, tool string, in map[string]any) (whole string, isError bool) {
	a.T.Helper()
	result, err := c.CallTool(a.T.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	a.Must(err)
	text, err := json.Marshal(result)
	a.Must(err)
	return string(text), result.IsError
}

// bare is a text without what stands between two marks of one digest.
func bare(text string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "[data ")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		mark, _, _ := strings.Cut(rest, " ")
		text = rest
		if _, after, closed := strings.Cut(rest, "[end of data "+mark+"]"); closed { // the rule names marks, too
			text = after
		}
	}
}

// tested is a test of an account that holds a stranger's words wherever one can write:
// a checklist, a note, a summary, a question and its project.
type tested struct {
	jobID, projectID, questionID string
	worker                       *worker
}

func (a *agents) tested(key string) tested {
	a.T.Helper()
	out := tested{}
	out.projectID, _ = a.api(key, "POST", "/v1/projects", `{"name":"`+hostile+`"}`)["projectId"].(string)
	made, refused := a.call(key, "tools/call", "test_with_a_human", map[string]any{
		"name": "test_with_a_human", "arguments": shop(map[string]any{
			"projectId": out.projectID, "checks": []string{hostile, "pay by card"}, "feature": hostile,
		}),
	}, true)
	if refused != nil {
		a.T.Fatal(refused)
	}
	out.jobID, _ = made["taskId"].(string)
	out.worker = a.claims(out.jobID)
	out.questionID = out.worker.asks(hostile)
	return out
}

// ends has the checker fail the test.
func (of tested) ends() {
	of.worker.checks("item-1", "fail")
	of.worker.checks("item-2", "pass")
	of.worker.does("POST", "/complete", `{"summary":"`+hostile+`"}`)
}

func TestEveryToolFencesTheWordsOfStrangers(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.keyOf(a.Account("acme", 100, false), account.ScopeFull)
	c := a.connect(key, "")
	of := a.tested(key)
	job := map[string]any{"jobId": of.jobID}
	called := map[string]bool{}
	// fenced calls a tool, whose answer quotes strangers so often in its structured content.
	fenced := func(quotes int, tool string, in map[string]any) {
		t.Helper()
		text, isError := a.whole(c, tool, in)
		called[tool] = true
		if isError || strings.Contains(bare(text), hostile) || strings.Count(text, hostile) != 2*quotes { // and in its text
			t.Errorf("%s quotes %d times: %s", tool, strings.Count(text, hostile), text)
		}
	}
	taskIsFenced := func(quotes int) {
		t.Helper()
		text, err := json.Marshal(a.task(key, of.jobID))
		must.NoError(t, err)
		if strings.Contains(bare(string(text)), hostile) || strings.Count(string(text), hostile) != quotes {
			t.Errorf("tasks/get: %s", text)
		}
	}
	fenced(0, "estimate", map[string]any{"url": "https://shop.example.com/", "feature": hostile})
	fenced(1, "wait_for_report", job)
	fenced(1, "get_report", job)
	taskIsFenced(1)
	fenced(0, "answer_question", map[string]any{"jobId": of.jobID, "questionId": of.questionID, "text": "yes"})
	of.ends()
	fenced(4, "wait_for_report", job)
	fenced(4, "get_report", job)
	taskIsFenced(8)
	fenced(1, "open_failures", map[string]any{"projectId": of.projectID})
	fenced(0, "prepare_next_test", map[string]any{"projectId": of.projectID, "fixedDescriptions": []string{hostile}})
	fenced(0, "retest", map[string]any{"jobId": of.jobID, "idempotencyKey": "again"})
	another := a.did(c, "test_with_a_human", shop(map[string]any{"feature": hostile, "idempotencyKey": "another"}))
	fenced(0, "test_with_a_human", shop(map[string]any{"feature": hostile, "idempotencyKey": "another"}))
	fenced(0, "cancel_test", map[string]any{"jobId": another["jobId"]})
	a.all(c, called)
}

// all fails for a tool that a walk left out, and for anything else that a client could read.
func (a *agents) all(c *sdk.ClientSession, called map[string]bool) {
	a.T.Helper()
	for tool, err := range c.Tools(a.T.Context(), nil) {
		a.Must(err)
		if !called[tool.Name] {
			a.T.Errorf("the walk leaves %s out", tool.Name)
		}
	}
	if has := c.InitializeResult().Capabilities; len(called) != 9 || has.Resources != nil || has.Prompts != nil || has.Completions != nil {
		a.T.Errorf("the walk knows %v, and clients get %+v", slices.Sorted(maps.Keys(called)), has)
	}
}

func TestAccountsNeverSeeEachOtherThroughATool(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.keyOf(a.Account("acme", 100, false), account.ScopeFull)
	of := a.tested(key)
	stranger := a.keyOf(a.Account("other", 77, false), account.ScopeFull)
	c := a.connect(stranger, "")
	job := map[string]any{"jobId": of.jobID}
	called := map[string]bool{}
	for _, ended := range []bool{false, true} {
		if ended {
			a.did(a.connect(key, ""), "answer_question", map[string]any{"jobId": of.jobID, "questionId": of.questionID, "text": "yes"})
			of.ends()
		}
		for tool, in := range map[string]map[string]any{
			"wait_for_report": job, "get_report": job, "cancel_test": job,
			"retest":            {"jobId": of.jobID, "idempotencyKey": "k"},
			"answer_question":   {"jobId": of.jobID, "questionId": of.questionID, "text": "yes"},
			"open_failures":     {"projectId": of.projectID},
			"prepare_next_test": {"projectId": of.projectID, "fixedDescriptions": []string{"x"}},
			"test_with_a_human": shop(map[string]any{"projectId": of.projectID, "idempotencyKey": "k1"}), // the key of the other's test
			"estimate":          {"url": "https://shop.example.com/", "feature": "Pay by card"},
		} {
			called[tool] = true
			text, _ := a.whole(c, tool, in)
			knows := strings.Contains(text, hostile) || strings.Contains(text, of.projectID) || strings.Contains(text, of.questionID)
			if wants := tool != "estimate"; knows ||
				strings.Contains(text, "NOT_FOUND") != wants || !wants && !strings.Contains(text, "of your 77 credits") {
				t.Errorf("%s tells another account %s", tool, text)
			}
		}
		for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
			if got, refused := a.call(stranger, method, of.jobID, map[string]any{"taskId": of.jobID}, true); refused["code"] != -32602.0 {
				t.Errorf("%s tells another account %v, %v", method, got, refused)
			}
		}
		open := a.api(key, "GET", "/v1/jobs/"+of.jobID, "")["openQuestion"] != nil
		if open == ended {
			t.Errorf("the question is open: %t", open)
		}
	}
	if left := a.api(stranger, "GET", "/v1/credits", ""); left["available"] != 77.0 {
		t.Errorf("another account paid: %v", left)
	}
	a.all(c, called)
}

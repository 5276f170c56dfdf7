package httpapi

import (
	"net/http"
	"testing"
)

func TestAnAgentLearnsWhichLoopSessionCountsItsTest(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	test := func(headers ...string) map[string]any {
		return s.call(key, "POST", "/v1/hosted/test", `{"url":"https://shop.example"}`, headers...).want(http.StatusCreated)
	}
	first := test("X-Agent-Skill", "fix", "X-Agent-Iteration", "1", "Idempotency-Key", "k")
	id, _ := first["loopSessionId"].(string)
	equal(t, s.call(key, "GET", "/v1/loop-sessions/"+id, "").want(http.StatusOK)["jobIds"], any([]any{first["jobId"]}))
	equal(t, test("X-Agent-Skill", "fix", "X-Agent-Iteration", "1", "Idempotency-Key", "k")["loopSessionId"], any(id))
	equal(t, test("X-Agent-Skill", "fix", "X-Agent-Iteration", "2")["loopSessionId"], any(id))
	if plain := test(); plain["loopSessionId"] != nil {
		t.Errorf("a test without a loop has one: %v", plain)
	}
}

package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
)

// Decisions, section 3, "failed", and section 8.
func TestTwoCheckersWhoCannotTestAJobFailIt(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(5)
	id := s.submittedWith(key, checklistOf(2))
	first := s.claims(s.checker(), id)
	first.check(0, passes)
	equal(t, first.call("POST", "/untestable", `{"reason":"the site is down","note":"502 everywhere"}`).want(http.StatusOK),
		map[string]any{"jobId": id, "status": "pending"})
	with(t, s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK), map[string]any{
		"status": "pending", "claimedAt": nil, "failReason": nil, "failedAt": nil, "isFinal": false, "creditsUsed": 5.0,
	})
	// Its claim has ended, and the job is no longer for this checker.
	first.call("POST", "/heartbeat", "").refused(http.StatusConflict, domain.CodeConflict)
	s.call(first.checker, "POST", "/v1/checker/claims", `{"jobId":"`+id+`"}`).refused(http.StatusConflict, domain.CodeConflict)

	second := s.claims(s.checker(), id)
	equal(t, second.call("POST", "/untestable", `{"reason":"no_access"}`).want(http.StatusOK),
		map[string]any{"jobId": id, "status": "failed"})
	failed := s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)
	if failed["failedAt"] == nil {
		t.Error("failedAt is null")
	}
	with(t, failed, map[string]any{"status": "failed", "failReason": "untestable", "isFinal": true, "creditsUsed": 0.0})
	equal(t, s.call(key, "GET", "/v1/credits", "").want(http.StatusOK)["available"], any(5.0))
}

func TestAHeartbeatTellsWhenTheSLAEnds(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	id := s.submitted(key)
	claim := s.call(s.checker(), "GET", "/v1/checker/queue", "") // any checker may look
	claim.want(http.StatusOK)
	w := s.claims(s.checker(), id)
	beat := w.call("POST", "/heartbeat", "").want(http.StatusOK)
	due, _ := beat["dueAt"].(string)
	equal(t, beat, map[string]any{"jobId": id, "status": "claimed", "dueAt": s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)["dueAt"]})
	if at, err := time.Parse(timestampLayout, due); err != nil || time.Until(at) < 50*time.Minute {
		t.Errorf("dueAt is %q", due)
	}
	w.call("POST", "/release", "").want(http.StatusOK)
	w.call("POST", "/heartbeat", "").refused(http.StatusConflict, domain.CodeConflict)
}

func TestWhatAnUntestableJobsCheckerMustSay(t *testing.T) {
	t.Parallel()
	s := setup(t)
	checker := s.checker()
	work := "/v1/checker/jobs/" + uuid.NewString()
	const token = "X-Claim-Token"
	for body, want := range map[string][]string{
		`{}`:                        {"reason"},
		`{"reason":"  "}`:           {"reason"},
		`{"reason":7,"note":false}`: {"note", "reason"},
		`{"reason":"x","note":"` + strings.Repeat("é", 2001) + `"}`: {"note"},
		``: {"body"},
	} {
		equal(t, s.call(checker, "POST", work+"/untestable", body, token, "1").paths(), want)
	}
	equal(t, s.call(checker, "POST", work+"/untestable", `{}`).paths(), []string{token, "reason"})
	equal(t, s.call(checker, "POST", work+"/heartbeat", ``).paths(), []string{token})
	s.call(checker, "POST", work+"/untestable", `{"reason":"x"}`, token, "1").refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(checker, "POST", work+"/heartbeat", "", token, "1").refused(http.StatusNotFound, domain.CodeNotFound)
}

package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
)

var (
	momentName  = regexp.MustCompile(`(?:At|Until|Deadline|^timestamp|^now)$`)
	momentValue = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
)

// moments walks an answer, and gives the names of its times.
func moments(t *testing.T, where string, body any, seen map[string]bool) {
	t.Helper()
	switch v := body.(type) {
	case []any:
		for _, element := range v {
			moments(t, where, element, seen)
		}
	case map[string]any:
		for name, value := range v {
			text, isText := value.(string)
			_, err := time.Parse(time.RFC3339, text)
			if isText && (err == nil || momentName.MatchString(name)) {
				seen[name] = true
				if !momentValue.MatchString(text) {
					t.Errorf("%s: %s is %q", where, name, text)
				}
			}
			moments(t, where, value, seen)
		}
	}
}

// Decisions, "Timestamps": RFC 3339, UTC, Z, milliseconds, wherever
// a time is shown. The list of names is what keeps this test from seeing none.
func TestEveryTimestampHasOneForm(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(1000)
	seen := map[string]bool{}
	see := func(key, method, path, body string, headers ...string) map[string]any {
		t.Helper()
		r := s.call(key, method, path, body, headers...)
		if r.Code >= http.StatusMultipleChoices {
			t.Fatalf("%s %s: %d %s", method, path, r.Code, r.Body)
		}
		var out map[string]any
		if r.Body.Len() > 0 {
			must.NoError(t, json.Unmarshal(r.Body.Bytes(), &out))
		}
		moments(t, method+" "+path, out, seen)
		return out
	}
	of := s.belongings(key, "a.example.com")
	s.analysed(accountID, of.job)
	see(key, "PATCH", "/v1/projects/"+of.project, `{"webhookUrl":"https://hooks.example.com/in","loopAlertsSnoozedUntil":"2026-12-24T19:00:00+01:00"}`)
	patched{s, key, of.project}.rotate(time.Date(2026, 11, 21, 9, 0, 0, 123_456_789, time.FixedZone("", 3600)), nil)
	failing := s.hosted(key, "a.example.com", "").want(http.StatusCreated)["jobId"].(string)
	s.complete(failing, "item-1")
	see(key, "POST", "/v1/hosted/prepare-next", `{"projectId":"`+of.project+`","fixedDescriptions":["x"]}`)
	cancelled, failed := s.submitted(key), s.submitted(key)
	s.call(key, "POST", "/v1/jobs/"+cancelled+"/cancel", "").want(http.StatusOK)
	s.failed(accountID, failed)
	see(key, "POST", "/v1/loop-sessions/"+of.loop+"/finalize", `{"finalStatus":"passed"}`)
	opened := see(key, "POST", "/v1/hosted/sessions", twoSlots)
	slot := field(opened["slots"], 0, "jobId").(string)

	checker := s.checker()
	see(checker, "GET", "/v1/checker/queue", "")
	claim := see(checker, "POST", "/v1/checker/claims", `{"jobId":"`+slot+`"}`)
	see(checker, "POST", "/v1/checker/sessions/"+fmt.Sprint(opened["sessionId"])+"/ready", "")
	see(checker, "GET", "/v1/checker/sessions/"+fmt.Sprint(opened["sessionId"]), "")
	see(checker, "POST", "/v1/checker/jobs/"+slot+"/heartbeat", "", wire.ClaimTokenHeader, fmt.Sprint(claim["claimToken"]))
	see(key, "POST", "/v1/hosted/sessions/"+of.session+"/cancel", "")
	s.grant(accountID, 5, time.Hour)
	s.feed(key, "/v1/jobs/"+failing+"/events", 3)

	for _, path := range []string{
		"/v1/jobs", "/v1/jobs/" + of.job, "/v1/jobs/" + cancelled, "/v1/jobs/" + failed, "/v1/jobs/" + slot,
		"/v1/jobs/" + of.job + "/report", "/v1/jobs/" + of.job + "/ai-report", "/v1/jobs/" + failing + "/events",
		"/v1/events?limit=100", "/v1/hosted/status/" + of.job, "/v1/hosted/sessions", "/v1/hosted/sessions/" + of.session,
		"/v1/loop-sessions/" + of.loop, "/v1/jobs/bulk/" + of.batch, "/v1/projects", "/v1/projects/" + of.project,
		"/v1/projects/" + of.project + "/history", "/v1/projects/" + of.project + "/open-failures", "/v1/credits", "/v1/pricing",
	} {
		see(key, "GET", path, "")
	}
	_, box := s.sandbox()
	see(box, "POST", "/v1/sandbox/clock/advance", `{"seconds":1}`)

	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	equal(t, names, strings.Fields(`at cancelledAt claimedAt closedAt completedAt createdAt dueAt endedAt expiresAt failedAt
		firstFailedAt lastPassedAt lastSeenAt loopAlertsSnoozedUntil now preparedAt readyAt readyDeadline silentAt startedAt testedAt
		timestamp updatedAt webhookSecretRotatedAt`))
}

// Equal instants are equal strings: a job's creation reads the same wherever it
// is shown, and can be handed back as it is.
func TestOneInstantReadsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.submitted(key)
	createdAt := s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)["createdAt"]
	equal(t, field(s.call(key, "GET", "/v1/jobs", "").want(http.StatusOK)["jobs"], 0, "createdAt"), createdAt)
	event := s.feed(key, "/v1/jobs/"+id+"/events", 1)[0]
	equal(t, event["data"].(map[string]any)["createdAt"], createdAt)
	w := s.claims(s.checker(), id)
	queued := s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)
	claimedAt, _ := queued["claimedAt"].(string)
	if !momentValue.MatchString(claimedAt) || claimedAt < createdAt.(string) {
		t.Errorf("claimed at %q, created at %q", claimedAt, createdAt)
	}
	equal(t, w.call("POST", "/heartbeat", "").want(http.StatusOK)["dueAt"], queued["dueAt"])
	w.checks(passes).completes("Fine.")
	done := s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)
	completedAt, _ := done["completedAt"].(string)
	if !momentValue.MatchString(completedAt) || completedAt < claimedAt {
		t.Errorf("completed at %q, claimed at %q", completedAt, claimedAt)
	}
	equal(t, done["claimedAt"], any(claimedAt))
	equal(t, s.call(key, "GET", "/v1/jobs/"+id+"/report", "").want(http.StatusOK)["createdAt"], any(completedAt))
}

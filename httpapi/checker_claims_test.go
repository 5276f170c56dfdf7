package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/httpapi/wire"
)

// Decisions, "failed" and "Checker work".
func TestTwoCheckersWhoCannotTestAJobFailIt(t *testing.T) {
	t.Parallel()
	s := shared(t)
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
	equal(t, second.call("POST", "/untestable", `{"reason":"no_access","note":"The login\nis refused."}`).want(http.StatusOK),
		map[string]any{"jobId": id, "status": "failed"})
	failed := s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)
	if failed["failedAt"] == nil {
		t.Error("failedAt is null")
	}
	const why = "the site is down: 502 everywhere\nno_access: The login is refused."
	with(t, failed, map[string]any{"status": "failed", "failReason": "untestable", "failNote": why, "isFinal": true, "creditsUsed": 0.0})
	var told, exported bool
	for _, e := range s.call(key, "GET", "/v1/events?types=job.failed", "").want(http.StatusOK)["events"].([]any) {
		told = e.(map[string]any)["data"].(map[string]any)["failNote"] == any(why) || told
	}
	table := s.call(key, "GET", "/v1/exports/jobs?format=csv", "")
	exported = strings.Contains(table.Body.String(), "untestable,\""+why+"\"")
	if !told || !exported {
		t.Errorf("the reasons are in the feed: %v, in the export: %v", told, exported)
	}
	equal(t, s.call(key, "GET", "/v1/credits", "").want(http.StatusOK)["available"], any(5.0))
}

func TestAHeartbeatTellsWhenTheSLAEnds(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.submitted(key)
	claim := s.call(s.checker(), "GET", "/v1/checker/queue", "") // any checker may look
	claim.want(http.StatusOK)
	w := s.claims(s.checker(), id)
	beat := w.call("POST", "/heartbeat", "").want(http.StatusOK)
	due, _ := beat["dueAt"].(string)
	silent, _ := beat["silentAt"].(string)
	if at, err := time.Parse(wire.TimestampLayout, silent); err != nil || time.Until(at) > 30*time.Minute || time.Until(at) < time.Minute {
		t.Errorf("silentAt is %q", silent)
	}
	delete(beat, "silentAt")
	now := s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)
	equal(t, beat, map[string]any{"jobId": id, "status": "claimed", "clockStands": false, "dueAt": now["dueAt"]})
	if at, err := time.Parse(wire.TimestampLayout, due); err != nil || time.Until(at) < 50*time.Minute {
		t.Errorf("dueAt is %q", due)
	}
	w.call("POST", "/release", "").want(http.StatusOK)
	w.call("POST", "/heartbeat", "").refused(http.StatusConflict, domain.CodeConflict)
}

func TestWhatAnUntestableJobsCheckerMustSay(t *testing.T) {
	t.Parallel()
	s := shared(t)
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

// A checker whose browser was closed goes on where they were.
func TestACheckerGetsTheLiveClaimBackWithTheDraft(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.submittedWith(key, `"credentials":{"username":"u","password":"p"},`+checklistOf(3))
	ann, bob := s.checker(), s.checker()
	before := s.call(ann, "GET", "/v1/checker/claims", "")
	before.want(http.StatusNoContent)
	equal(t, before.Body.Len(), 0)

	w := s.claims(ann, id)
	w.checks(passes, `{"status":"fail","note":"broken","severity":"critical"}`)
	finding := w.call("POST", "/items", `{"description":"A typo","status":"fail","severity":"low"}`).want(http.StatusCreated)
	item := func(n int, of map[string]any) map[string]any {
		out := map[string]any{
			"id": w.items[n], "key": fmt.Sprintf("step-%d", n+1), "description": fmt.Sprintf("Step %d", n+1), "expectedOutcome": "",
			"severity": "major", "status": "pending", "note": "", "reason": nil, "screenshotUrl": nil,
		}
		maps.Copy(out, of)
		return out
	}
	// A finding is edited, and one is taken back; a repeat of either is harmless.
	odd := w.call("POST", "/items", `{"description":"Odd","status":"fail"}`).want(http.StatusCreated)
	for range 2 {
		w.call("POST", "/findings/"+odd["id"].(string)+"/withdraw", "").want(http.StatusOK)
		finding = w.call("PUT", "/findings/"+finding["id"].(string), `{"description":"Two typos","status":"fail","severity":"high","note":"in the footer"}`).
			want(http.StatusOK)
	}
	equal(t, finding, map[string]any{
		"id": finding["id"], "key": "item-c11ba11f6dd26ef3", "description": "Two typos", "expectedOutcome": "", "severity": "major", "status": "fail",
		"note": "in the footer", "reason": nil, "screenshotUrl": nil,
	})
	for _, unknown := range []string{uuid.NewString(), w.items[0], "%00"} {
		w.call("POST", "/findings/"+unknown+"/withdraw", "").refused(http.StatusNotFound, domain.CodeNotFound)
		w.call("PUT", "/findings/"+unknown, `{"description":"x","status":"fail"}`).refused(http.StatusNotFound, domain.CodeNotFound)
	}
	head := s.written()
	claim := s.call(ann, "GET", "/v1/checker/claims", "")
	equal(t, claim.want(http.StatusOK), map[string]any{
		"jobId": id, "claimToken": w.token, "dueAt": s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)["dueAt"],
		"brief": map[string]any{
			"title": "Checkout", "url": "https://example.com/shop", "description": "Buy a thing", "feature": nil,
			"credentials": map[string]any{"username": "u", "password": "p", "notes": ""}, "accessInstructions": nil,
		},
		"checklist": []any{
			item(0, map[string]any{"status": "pass"}),
			item(1, map[string]any{"status": "fail", "note": "broken", "severity": "critical"}),
			item(2, nil),
		},
		"findings": []any{finding}, "questions": []any{},
	})
	equal(t, claim.Header().Get("Cache-Control"), "no-store")
	equal(t, s.written(), head)
	s.call(bob, "GET", "/v1/checker/claims", "").want(http.StatusNoContent)

	// The draft passes on with the job, the claim does not.
	w.call("POST", "/release", "").want(http.StatusOK)
	s.call(ann, "GET", "/v1/checker/claims", "").want(http.StatusNoContent)
	next := s.call(bob, "POST", "/v1/checker/claims", `{"jobId":"`+id+`"}`).want(http.StatusCreated)
	equal(t, field(next["checklist"], 1, "note"), any("broken"))
	equal(t, next["findings"], any([]any{finding}))
	equal(t, s.call(bob, "GET", "/v1/checker/claims", "").want(http.StatusOK), next)
	again := work{s: s, checker: bob, jobID: id, token: next["claimToken"].(string), items: w.items}
	again.check(2, passes)
	again.completes("Tested.")
	s.call(bob, "GET", "/v1/checker/claims", "").want(http.StatusNoContent)
}

// Evidence is shown with a link that works, as long as the claim lives.
func TestTheDraftsPicturesHaveFreshLinks(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	w := s.claims(s.checker(), s.submittedWith(key, checklistOf(1)))
	w.check(0, `{"status":"fail","screenshotUrl":"`+w.shown(aPNG)+`"}`)
	claim := s.call(w.checker, "GET", "/v1/checker/claims", "").want(http.StatusOK)
	equal(t, s.visit(fmt.Sprint(field(claim["checklist"], 0, "screenshotUrl"))).Body.String(), aPNG)
}

func TestTheSummaryOfACompletion(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	for body, want := range map[string]string{
		`{"summary":"All is well."}`:                               "All is well.",
		`{"checkerSummary":"All is well."}`:                        "All is well.",
		`{"summary":"All is well.","checkerSummary":"x","text":1}`: "All is well.",
		`{"summary":"","checkerSummary":"All is well."}`:           "All is well.",
		`{"summary":"All is well.","notes":"and more words"}`:      "All is well.",
		`{"client":"workbench-2","notes":" ","at":5}`:              "",
		``: "",
	} {
		id := s.submittedWith(key, checklistOf(1))
		w := s.claims(s.checker(), id).checks(passes)
		w.call("POST", "/complete", body).want(http.StatusOK)
		equal(t, s.call(key, "GET", "/v1/jobs/"+id+"/report", "").want(http.StatusOK)["checkerSummary"], any(want))
	}
}

// A completion cannot be taken back: words that nobody would read are refused.
func TestACompletionWhoseWordsWouldBeLostIsRefused(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.submittedWith(key, checklistOf(1))
	w := s.claims(s.checker(), id).checks(passes)
	for body, want := range map[string][]string{
		`{"Summary":"Fine"}`:                           {"Summary"},
		`{"summarx":"Fine"}`:                           {"summarx"},
		`{"overall_summary":"Fine"}`:                   {"overall_summary"},
		`{"text":"All is well."}`:                      {"text"},
		`{"":"All is well."}`:                          {"body"},
		`{"summary":null,"report":"All is well."}`:     {"report"},
		`{"checkerSummary":7}`:                         {"checkerSummary"},
		`{"` + strings.Repeat("x", 5000) + `":"a b"}`:  {strings.Repeat("x", wire.MaxWord)},
		`{"recordingUrl":"a b","notes":"two  words "}`: {"notes", "recordingUrl"},
	} {
		equal(t, w.call("POST", "/complete", body).paths(), want)
	}
	equal(t, s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)["status"], any("claimed"))
	w.completes("Fine.")
}

// Decisions, "Suspended account".
func TestASuspendedAccountsJobsLeaveTheQueueUntilItIsReinstated(t *testing.T) {
	t.Parallel()
	s := own(t)
	accountID, key := s.account(100)
	_, other := s.account(100)
	begun, open := s.submittedWith(key, checklistOf(1)), s.submittedWith(key, checklistOf(1))
	theirs := s.submitted(other)
	work := s.claims(s.checker(), begun)
	checker := s.checker()
	queue := func() (ids []string) {
		t.Helper()
		list, _ := s.call(checker, "GET", "/v1/checker/queue", "").want(http.StatusOK)["jobs"].([]any)
		for i := range list {
			ids = append(ids, fmt.Sprint(field(list, i, "id")))
		}
		return ids
	}
	equal(t, queue(), []string{open, theirs})

	at, err := s.commands.SuspendAccount(t.Context(), operator(uuid.New()), accountID)
	s.visible(at, err)
	equal(t, queue(), []string{theirs})
	s.call(checker, "POST", "/v1/checker/claims", `{"jobId":"`+open+`"}`).refused(http.StatusConflict, domain.CodeConflict)
	work.check(0, passes) // what is claimed may be finished
	work.completes("done")

	at, err = s.commands.ReinstateAccount(t.Context(), operator(uuid.New()), accountID)
	s.visible(at, err)
	equal(t, queue(), []string{open, theirs})
	equal(t, s.call(checker, "POST", "/v1/checker/claims", "").want(http.StatusCreated)["jobId"], any(open))
}

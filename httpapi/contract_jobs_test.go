package httpapi

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/commandtest"
)

// Specification, "GET /v1/jobs": the fields of an entry, which are those of the
// job. reportId is there once a report is (decisions, "Absent and null").
func TestAnEntryOfTheListOfJobs(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.tested(key, passes)
	pending := s.submittedWith(key, `"priority":"urgent"`)
	entry := func(n int) any {
		t.Helper()
		list, _ := s.call(key, "GET", "/v1/jobs", "").want(http.StatusOK)["jobs"].([]any)
		return list[n]
	}
	read := func(id string) map[string]any {
		t.Helper()
		return s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)
	}
	want := map[string]any{
		"id": pending, "status": "pending", "title": "Checkout", "url": "https://example.com/shop", "jobType": "Payment Flow",
		"jobTypeCode": "payment_flow", "createdAt": read(pending)["createdAt"], "projectId": nil, "priority": "urgent", "isFinal": false,
	}
	equal(t, entry(0), any(want))
	done := read(id)
	want["id"], want["status"], want["createdAt"], want["priority"], want["isFinal"] = id, "completed", done["createdAt"], "normal", true
	want["reportId"] = s.call(key, "GET", "/v1/jobs/"+id+"/report", "").want(http.StatusOK)["id"]
	equal(t, entry(1), any(want))
	equal(t, done["reportId"], want["reportId"])
}

// Specification, "GET /v1/jobs": status takes the four names; decisions,
// "status filter": and cancelled.
func TestTheStatusFilterTakesEveryNameAndFindsItsJobs(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	jobs := map[string]string{"pending": s.submitted(key), "claimed": s.submitted(key), "cancelled": s.submitted(key), "failed": s.submitted(key)}
	s.claims(s.checker(), jobs["claimed"])
	s.call(key, "POST", "/v1/jobs/"+jobs["cancelled"]+"/cancel", "").want(http.StatusOK)
	s.failed(accountID, jobs["failed"])
	jobs["completed"] = s.tested(key, fails)
	for status, id := range jobs {
		body := s.call(key, "GET", "/v1/jobs?status="+status, "").want(http.StatusOK)
		equal(t, body["total"], any(1.0))
		equal(t, field(body["jobs"], 0, "id"), any(id))
		equal(t, field(body["jobs"], 0, "status"), any(status))
	}
}

// Decisions, "SLA": request, then project default, then 60; decisions,
// "estimatedCompletionMinutes": the SLA, half of it when it is urgent.
func TestWhoseSLAMinutesCount(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	with15 := `"projectId":"` + s.project(key, `{"name":"a","defaultSlaMinutes":15}`) + `"`
	without := `"projectId":"` + s.project(key, `{"name":"b"}`) + `"`
	for _, c := range []struct {
		fields         string
		sla, estimated float64
	}{
		{`"title":"no project"`, 60, 60},
		{`"slaMinutes":30`, 30, 30},
		{`"slaMinutes":null`, 60, 60},
		{without, 60, 60},
		{with15, 15, 15},
		{with15 + `,"slaMinutes":null`, 15, 15},
		{with15 + `,"slaMinutes":60`, 60, 60},
		{with15 + `,"slaMinutes":30,"priority":"urgent"`, 30, 15},
		{with15 + `,"priority":"urgent"`, 15, 7},
	} {
		body := jobWith(c.fields)
		equal(t, s.call(key, "POST", "/v1/estimate", body).want(http.StatusOK)["slaMinutes"], any(c.sla))
		submitted := s.call(key, "POST", "/v1/jobs", body).want(http.StatusCreated)
		equal(t, submitted["estimatedCompletionMinutes"], any(c.estimated))
		id, _ := submitted["jobId"].(string)
		equal(t, s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)["slaMinutes"], any(c.sla))
		batch := s.call(key, "POST", "/v1/jobs/bulk", `{"jobs":[`+body+`]}`).want(http.StatusCreated)
		equal(t, batch["estimatedCompletionMinutes"], any(c.estimated))
		equal(t, s.call(key, "GET", "/v1/jobs/"+texts(batch["jobIds"])[0], "").want(http.StatusOK)["slaMinutes"], any(c.sla))
	}
	// A hosted test inherits it from its project, too.
	id := s.project(key, `{"name":"c","defaultUrl":"https://c.example.com","defaultSlaMinutes":30}`)
	hosted := s.hosted(key, "c.example.com", "").want(http.StatusCreated)
	with(t, hosted, map[string]any{"projectId": id, "estimatedCompletionMinutes": 30.0})
}

// Decisions, "Target fields": optional, trimmed, without a closed
// list, on plain jobs, hosted tests and slots; echoed, or null.
func TestEveryTargetIsTrimmedAndEchoedOrNull(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	const fields = `"targetDevice":" Pixel 9 ","targetOS":"Plan 9","targetBrowser":"\tLynx","targetScreenSize":"80×24","targetNetwork":"  "`
	want := map[string]any{
		"targetDevice": "Pixel 9", "targetOS": "Plan 9", "targetBrowser": "Lynx", "targetScreenSize": "80×24", "targetNetwork": nil,
	}
	none := map[string]any{"targetDevice": nil, "targetOS": nil, "targetBrowser": nil, "targetScreenSize": nil, "targetNetwork": nil}
	shown := func(id any, want map[string]any) {
		t.Helper()
		with(t, s.call(key, "GET", "/v1/jobs/"+id.(string), "").want(http.StatusOK), want)
	}
	shown(s.submittedWith(key, fields), want)
	shown(s.submittedWith(key, strings.ReplaceAll(strings.ReplaceAll(fields, `" Pixel 9 "`, "null"), `"Plan 9"`, `""`)),
		map[string]any{"targetDevice": nil, "targetOS": nil, "targetBrowser": "Lynx"})
	shown(s.hosted(key, "a.example.com", ","+fields).want(http.StatusCreated)["jobId"], want)
	shown(s.hosted(key, "a.example.com", "").want(http.StatusCreated)["jobId"], none)
	o := s.openSession(key, `{"url":"https://s.example.com/","slots":[{`+fields+`},{}]}`)
	shown(o.jobs[0], want)
	shown(o.jobs[1], none)
	slots, _ := s.session(key, o)["slots"].([]any)
	with(t, slots[0].(map[string]any), want)
	with(t, slots[1].(map[string]any), none)
}

// Decisions, "checklistItems": [] = absent.
func TestAnEmptyChecklistIsAnAbsentOne(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	for _, fields := range []string{`"checklistItems":[]`, `"checklistItems":null`, `"unknown":1`} {
		submitted := s.call(key, "POST", "/v1/jobs", jobWith(fields+`,"generateChecklist":"sync"`)).want(http.StatusCreated)
		equal(t, submitted["checklistItemCount"], any(1.0)) // the AI's one item
		id, _ := submitted["jobId"].(string)
		equal(t, s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)["checklistGeneratedBy"], any("test"))
	}
}

// Decisions, "AI Review": never in the human queue, done by the AI port;
// recordingUrl and checkerRating null. Decisions, "Prices": 2 credits.
func TestAnAIReviewIsDoneWithoutACheckerAndHasNoRecordingAndNoRating(t *testing.T) {
	t.Parallel()
	s := own(t)
	accountID, key := s.account(2)
	id, _ := s.call(key, "POST", "/v1/jobs", strings.Replace(aJob, "Payment Flow", "AI Review", 1)).want(http.StatusCreated)["jobId"].(string)
	checker := s.checker()
	equal(t, s.call(checker, "GET", "/v1/checker/queue", "").want(http.StatusOK), map[string]any{"jobs": []any{}, "total": 0.0, "limit": 20.0, "offset": 0.0})
	s.call(checker, "POST", "/v1/checker/claims", "").want(http.StatusNoContent)
	s.call(checker, "POST", "/v1/checker/claims", `{"jobId":"`+id+`"}`).want(http.StatusConflict)

	at, err := s.commands.ReviewJob(t.Context(), command.Cause{CommandID: uuid.New(), Actor: "policy:review", AccountID: accountID}, id)
	s.visible(at, err)
	with(t, s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK), map[string]any{"status": "completed", "creditsUsed": 2.0})
	with(t, s.call(key, "GET", "/v1/jobs/"+id+"/report", "").want(http.StatusOK), map[string]any{
		"recordingUrl": nil, "checkerRating": nil, "overallStatus": "pass", "checkerSummary": "reviewed",
	})
}

// Decisions, "failed": never because items failed; decisions,
// "overallStatus" and "Item status".
func TestWhateverItsItemsSayATestedJobIsCompleted(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	for overall, verdicts := range map[string][]string{
		"fail":         {passes, fails, skips},
		"pass":         {skips, passes, `{"status":"skip","reason":"not_applicable"}`},
		"inconclusive": {skips, `{"status":"skip","reason":"no_access"}`, `{"status":"skip","reason":"out_of_time"}`},
	} {
		id := s.tested(key, verdicts...)
		with(t, s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK), map[string]any{
			"status": "completed", "overallStatus": overall, "creditsUsed": 5.0, "isFinal": true,
		})
		report := s.call(key, "GET", "/v1/jobs/"+id+"/report", "").want(http.StatusOK)
		equal(t, report["overallStatus"], any(overall))
		if overall == "inconclusive" {
			for n, reason := range []string{"blocked", "no_access", "out_of_time"} {
				equal(t, field(report["items"], n, "skipReason"), any(reason))
				equal(t, field(report["items"], n, "status"), any("skip"))
			}
		}
	}
}

// Decisions, "Cancel": claimed or ended, 409 with a hint, whatever
// way it ended.
func TestWhatCannotBeCancelledSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	claimed, failed := s.submitted(key), s.submitted(key)
	s.claims(s.checker(), claimed)
	s.failed(accountID, failed)
	completed := s.tested(key, passes)
	slot := s.openSession(key, twoSlots).jobs[0]
	before := s.written()
	for _, id := range []string{claimed, completed, failed, slot} {
		refused := s.call(key, "POST", "/v1/jobs/"+id+"/cancel", "").want(http.StatusConflict)
		if refused["code"] != "CONFLICT" || refused["hint"] == nil {
			t.Errorf("got %v", refused)
		}
	}
	equal(t, s.written(), before)
}

// analyst finds one bug, whatever it is shown.
type analyst struct{ commandtest.AI }

func (analyst) Analyse(_ context.Context, b command.AnalysisBrief) (job.AIReport, error) {
	return job.AIReport{
		ExecutiveSummary: "It <crashes> & burns.", HealthScore: 62, PassCount: b.Report.PassCount, FailCount: b.Report.FailCount,
		SkipCount: b.Report.SkipCount, Strengths: []string{"It loads."}, Recommendations: []string{"Fix it.", "Test it."}, GeneratedBy: "an-analyst",
		Bugs: []job.Bug{{
			ItemID: b.Report.Items[0].ID, Title: "Crash", Severity: job.Critical, Description: "It crashes.",
			ReproductionSteps: []string{"Open it.", "Wait."}, SuggestedFix: "Don't crash.",
		}},
	}, nil
}

// Specification, "AI report": the fields of a bug, strengths, recommendations.
func TestABugInAnAIReport(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.commands = s.parts.Process(analyst{})
	s.deps.Commands = s.commands
	s.serve()
	accountID, key := s.account(100)
	id := s.tested(key, fails, passes, skips)
	s.analysed(accountID, id)
	body := s.call(key, "GET", "/v1/jobs/"+id+"/ai-report", "").want(http.StatusOK)
	report := s.call(key, "GET", "/v1/jobs/"+id+"/report", "").want(http.StatusOK)
	equal(t, body, map[string]any{
		"id": body["id"], "jobId": id, "reportId": report["id"], "status": "completed", "executiveSummary": "It <crashes> & burns.",
		"healthScore": 62.0, "passCount": 1.0, "failCount": 1.0, "skipCount": 1.0, "generatedBy": "an-analyst", "createdAt": body["createdAt"],
		"strengths": []any{"It loads."}, "recommendations": []any{"Fix it.", "Test it."},
		"bugs": []any{map[string]any{
			"itemId": field(report["items"], 0, "id"), "title": "Crash", "severity": "critical", "description": "It crashes.",
			"reproductionSteps": []any{"Open it.", "Wait."}, "suggestedFix": "Don't crash.",
		}},
	})
}

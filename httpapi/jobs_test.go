package httpapi

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/wire"
)

// with checks that the body holds these values, and takes them out of it.
func with(t *testing.T, body map[string]any, want map[string]any) map[string]any {
	t.Helper()
	for k, v := range want {
		got, there := body[k]
		if !there {
			t.Errorf("%s is absent", k)
			continue
		}
		if got != v {
			t.Errorf("%s is %v, want %v", k, got, v)
		}
		delete(body, k)
	}
	return body
}

func TestTheLifeOfAJob(t *testing.T) {
	t.Parallel()
	s := own(t)
	accountID, key := s.account(100)
	checker := s.checker()

	submitted := s.call(key, "POST", "/v1/jobs", `{
		"url":"https://example.com/shop","title":"Checkout","description":"Buy a thing","jobType":"Payment Flow","slaMinutes":30,
		"credentials":{"username":"tester","password":"s3cr3t-pass","notes":"use the test card"},
		"accessInstructions":"code 4711-door","targetDevice":" phone ",
		"checklistItems":[{"description":"The cart opens"},{"description":"The card is charged","severity":"high","expectedOutcome":"a receipt"},{"description":"Mail arrives","severity":"minor"}]}`).want(http.StatusCreated)
	id, _ := submitted["jobId"].(string)
	equal(t, submitted, map[string]any{
		"jobId": id, "status": "pending", "estimatedCompletionMinutes": 30.0,
		"creditsDeducted": 5.0, "creditsRemaining": 95.0, "checklistItemCount": 3.0,
		"jobType": "Payment Flow", "jobTypeCode": "payment_flow", "projectId": nil,
	})

	pending := s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)
	if _, there := pending["reportId"]; there {
		t.Error("reportId is there before the report")
	}
	createdAt, _ := pending["createdAt"].(string)
	if at, err := time.Parse(wire.TimestampLayout, createdAt); err != nil || time.Since(at) > time.Minute {
		t.Errorf("createdAt is %q", createdAt)
	}
	rest := with(t, pending, map[string]any{
		"id": id, "status": "pending", "title": "Checkout", "url": "https://example.com/shop",
		"jobType": "Payment Flow", "jobTypeCode": "payment_flow", "creditsUsed": 5.0, "slaMinutes": 30.0,
		"claimedAt": nil, "completedAt": nil, "cancelledAt": nil, "lastFailedSlaAt": nil, "requeueCount": 0.0,
		"isFinal": false, "priority": "normal", "projectId": nil, "description": "Buy a thing",
		"targetDevice": "phone", "targetOS": nil, "targetBrowser": nil, "targetScreenSize": nil, "targetNetwork": nil,
		"feature": nil, "source": "api", "batchId": nil, "batchName": nil, "sessionId": nil, "cancelReason": nil, "failedAt": nil,
		"failReason": nil, "failNote": nil, "overallStatus": nil, "aiReportStatus": nil, "checklistGeneratedBy": nil,
		"branch": nil, "commitSha": nil, "environment": nil, "openQuestion": nil, "commitStatus": nil,
	})
	delete(rest, "createdAt")
	delete(rest, "dueAt")
	equal(t, rest, map[string]any{})

	early := s.call(key, "GET", "/v1/jobs/"+id+"/report", "")
	equal(t, early.refused(http.StatusNotFound, domain.CodeNotFound)["hint"], "the report exists once the job is completed")
	equal(t, early.Header().Get("Retry-After"), "30")

	queue, _ := s.call(checker, "GET", "/v1/checker/queue", "").want(http.StatusOK)["jobs"].([]any)
	if len(queue) != 1 || queue[0].(map[string]any)["id"] != id {
		t.Fatalf("the queue is %v", queue)
	}
	claim := s.call(checker, "POST", "/v1/checker/claims", "").want(http.StatusCreated)
	token, _ := claim["claimToken"].(string)
	equal(t, claim["brief"], map[string]any{
		"title": "Checkout", "url": "https://example.com/shop", "description": "Buy a thing", "feature": nil,
		"credentials":        map[string]any{"username": "tester", "password": "s3cr3t-pass", "notes": "use the test card"},
		"accessInstructions": "code 4711-door",
	})
	items, _ := claim["checklist"].([]any)
	if len(items) != 3 {
		t.Fatalf("the checklist is %v", items)
	}
	item := func(i int) string { return items[i].(map[string]any)["id"].(string) }
	work := "/v1/checker/jobs/" + id
	under := []string{"X-Claim-Token", token}

	checked := s.call(checker, "PUT", work+"/items/"+item(0), `{"status":"pass"}`, under...).want(http.StatusOK)
	with(t, checked, map[string]any{"id": item(0), "status": "pass", "note": "", "reason": nil, "screenshotUrl": nil, "severity": "major"})
	s.call(checker, "PUT", work+"/items/"+item(1),
		`{"status":"fail","note":"charged twice","severity":"critical","screenshotUrl":"http://127.0.0.1:8080/e/1.png"}`, under...).want(http.StatusOK)

	unchecked := s.call(checker, "POST", work+"/complete", `{"summary":"too early"}`, under...)
	equal(t, unchecked.refused(http.StatusConflict, domain.CodeConflict)["uncheckedItems"], []any{item(2)})

	s.call(checker, "PUT", work+"/items/"+item(2), `{"status":"skip","reason":"no_access"}`, under...).want(http.StatusOK)
	found := s.call(checker, "POST", work+"/items", `{"description":"Typo in the footer","status":"fail","severity":"low"}`, under...).want(http.StatusCreated)
	with(t, found, map[string]any{"description": "Typo in the footer", "status": "fail", "severity": "minor"})
	stale := s.call(checker, "POST", work+"/complete", `{}`, "X-Claim-Token", "99")
	stale.refused(http.StatusConflict, domain.CodeConflict)

	done := s.call(checker, "POST", work+"/complete", `{"summary":"The card is charged twice","recordingUrl":"https://rec.example/1"}`, under...).want(http.StatusOK)
	reportID := done["reportId"]
	with(t, done, map[string]any{"overallStatus": "fail", "passCount": 1.0, "failCount": 2.0, "skipCount": 1.0, "status": "completed"})

	report := s.call(key, "GET", "/v1/jobs/"+id+"/report", "").want(http.StatusOK)
	lines, _ := report["items"].([]any)
	if len(lines) != 4 {
		t.Fatalf("the report has %d items", len(lines))
	}
	with(t, lines[1].(map[string]any), map[string]any{
		"id": item(1), "description": "The card is charged", "status": "fail", "checkerNote": "charged twice",
		"severity": "critical", "screenshotUrl": "http://127.0.0.1:8080/e/1.png", "expectedOutcome": "a receipt",
	})
	with(t, report, map[string]any{
		"id": reportID, "jobId": id, "overallStatus": "fail", "passCount": 1.0, "failCount": 2.0, "skipCount": 1.0,
		"checkerSummary": "The card is charged twice", "recordingUrl": "https://rec.example/1", "checkerRating": nil,
	})
	with(t, s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK), map[string]any{
		"status": "completed", "reportId": reportID, "isFinal": true, "creditsUsed": 5.0,
	})
	equal(t, s.call(key, "GET", "/v1/credits", "").want(http.StatusOK), map[string]any{
		"available": 95.0, "used": 5.0, "total": 100.0, "expiringCredits": []any{},
	})

	for _, secret := range []string{"s3cr3t-pass", "4711-door", key, checker, accountID + "x"} {
		if strings.Contains(s.logged.String(), secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
}

func TestASubmissionThatCannotBePaidWritesNothing(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(7)
	body := s.call(key, "POST", "/v1/jobs", strings.Replace(aJob, "{", `{"priority":"urgent",`, 1)).refused(http.StatusPaymentRequired, domain.CodeInsufficientCredits)
	with(t, body, map[string]any{"creditsRequired": 10.0, "creditsAvailable": 7.0, "creditsShort": 3.0})
	if n := s.count("job.created") + s.count("credits.debited"); n != 0 {
		t.Errorf("%d events were written", n)
	}
}

func TestCancellingRefundsOnce(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(20)
	id := s.submitted(key)
	want := map[string]any{"jobId": id, "status": "cancelled", "creditsRefunded": 5.0, "creditsExpired": 0.0, "creditsRemaining": 20.0}
	equal(t, s.call(key, "POST", "/v1/jobs/"+id+"/cancel", "").want(http.StatusOK), want)
	equal(t, s.call(key, "POST", "/v1/jobs/"+id+"/cancel", "").want(http.StatusOK), want)
	with(t, s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK), map[string]any{
		"status": "cancelled", "creditsUsed": 0.0, "isFinal": true,
	})
	gone := s.call(key, "GET", "/v1/jobs/"+id+"/report", "")
	gone.refused(http.StatusNotFound, domain.CodeNotFound)
	equal(t, gone.Header().Get("Retry-After"), "")

	claimed := s.submitted(key)
	s.call(s.checker(), "POST", "/v1/checker/claims", `{"jobId":"`+claimed+`"}`).want(http.StatusCreated)
	refused := s.call(key, "POST", "/v1/jobs/"+claimed+"/cancel", "").refused(http.StatusConflict, domain.CodeConflict)
	if refused["hint"] == nil {
		t.Error("the refusal has no hint")
	}
}

func TestListingJobs(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	projectID, _ := s.call(key, "POST", "/v1/projects", `{"name":"Shop"}`).want(http.StatusCreated)["projectId"].(string)
	first := s.submitted(key)
	second, _ := s.call(key, "POST", "/v1/jobs", strings.Replace(aJob, "{", `{"projectId":"`+projectID+`",`, 1)).want(http.StatusCreated)["jobId"].(string)
	third := s.submitted(key)
	s.call(key, "POST", "/v1/jobs/"+third+"/cancel", "").want(http.StatusOK)
	createdAt, _ := s.call(key, "GET", "/v1/jobs/"+third, "").want(http.StatusOK)["createdAt"].(string)

	for query, want := range map[string][]string{
		"":                                    {third, second, first},
		"?limit=2":                            {third, second},
		"?limit=2&offset=2":                   {first},
		"?offset=50":                          {},
		"?status=pending":                     {second, first},
		"?status=cancelled":                   {third},
		"?status=failed":                      {},
		"?projectId=" + projectID:             {second},
		"?projectId=" + uuid.NewString():      {},
		"?since=2020-01-01":                   {third, second, first},
		"?since=" + createdAt:                 {},
		"?since=2100-01-01T00:00:00+02:00":    {},
		"?unknown=%00&status=&limit=&since=":  {third, second, first},
		"?status=pending&projectId=nope&x=%2": nil,
	} {
		r := s.call(key, "GET", "/v1/jobs"+query, "")
		if want == nil {
			equal(t, r.paths(), []string{"query"})
			continue
		}
		body := r.want(http.StatusOK)
		got := []string{}
		list, _ := body["jobs"].([]any)
		for _, j := range list {
			id, _ := j.(map[string]any)["id"].(string)
			got = append(got, id)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
	body := s.call(key, "GET", "/v1/jobs?limit=1&offset=7", "").want(http.StatusOK)
	with(t, body, map[string]any{"total": 3.0, "limit": 1.0, "offset": 7.0})
	equal(t, s.call(key, "GET", "/v1/jobs?status=in_progress&limit=0&offset=-1&since=x&cursor=bXg", "").paths(),
		[]string{"cursor", "limit", "offset", "since", "status"})

	// Read by cursor, the list is whole, whatever is submitted meanwhile.
	var seen []string
	for query, more := "?limit=1&status=pending", true; more; {
		body := s.call(key, "GET", "/v1/jobs"+query, "").want(http.StatusOK)
		list, _ := body["jobs"].([]any)
		for _, j := range list {
			id, _ := j.(map[string]any)["id"].(string)
			seen = append(seen, id)
		}
		var next string
		next, more = body["nextCursor"].(string)
		query = "?limit=1&status=pending&cursor=" + next
		if len(seen) == 1 {
			s.submitted(key)
			equal(t, s.call(key, "GET", "/v1/jobs"+query+"&offset=1", "").paths(), []string{"offset"})
		}
	}
	equal(t, seen, []string{second, first})
}

func TestWhatAKeyMayDo(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	project := func(name string) string {
		id, _ := s.call(key, "POST", "/v1/projects", `{"name":"`+name+`"}`).want(http.StatusCreated)["projectId"].(string)
		return id
	}
	own, other := project("own"), project("other")
	free := s.submitted(key)
	soon := time.Now().Add(-time.Second)
	read := s.key(accountID, command.IssueKey{Scope: account.ScopeRead})
	bound := s.key(accountID, command.IssueKey{Scope: account.ScopeFull, ProjectID: own})
	stale := s.key(accountID, command.IssueKey{Scope: account.ScopeFull, ExpiresAt: &soon})

	for name, value := range map[string]string{
		"nothing": "", "no scheme": key, "another scheme": "Basic " + key, "an unknown key": "Bearer qa_live_nope",
		"an expired key": "Bearer " + stale, "an empty token": "Bearer ", "a checker's key": "Bearer " + s.checker(),
		"a giant": "Bearer " + strings.Repeat("x", 10_000),
	} {
		r := s.call("", "GET", "/v1/jobs", "", "Authorization", value)
		r.refused(http.StatusUnauthorized, domain.CodeUnauthorized)
		if r.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no WWW-Authenticate", name)
		}
	}
	s.call("", "GET", "/v1/jobs", "", "Authorization", "bearer  "+key).want(http.StatusOK)
	s.call(key, "GET", "/v1/checker/queue", "").refused(http.StatusUnauthorized, domain.CodeUnauthorized)

	s.call(read, "GET", "/v1/jobs/"+free, "").want(http.StatusOK)
	s.call(read, "POST", "/v1/jobs", "garbage").refused(http.StatusForbidden, domain.CodeForbidden)
	s.call(read, "PATCH", "/v1/projects/"+own, "{}").refused(http.StatusForbidden, domain.CodeForbidden)

	in := s.call(bound, "POST", "/v1/jobs", aJob).want(http.StatusCreated)
	equal(t, in["projectId"], own)
	s.call(bound, "POST", "/v1/jobs", strings.Replace(aJob, "{", `{"projectId":"`+other+`",`, 1)).refused(http.StatusForbidden, domain.CodeForbidden)
	s.call(bound, "GET", "/v1/jobs/"+free, "").refused(http.StatusForbidden, domain.CodeForbidden)
	s.call(bound, "POST", "/v1/jobs/"+free+"/cancel", "").refused(http.StatusForbidden, domain.CodeForbidden)
	s.call(bound, "GET", "/v1/projects/"+other, "").refused(http.StatusForbidden, domain.CodeForbidden)
	s.call(bound, "PATCH", "/v1/projects/"+other, "{}").refused(http.StatusForbidden, domain.CodeForbidden)
	s.call(bound, "POST", "/v1/projects", `{"name":"x"}`).refused(http.StatusForbidden, domain.CodeForbidden)
	s.call(bound, "GET", "/v1/jobs?projectId="+other, "").refused(http.StatusForbidden, domain.CodeForbidden)
	s.call(bound, "GET", "/v1/projects/"+uuid.NewString(), "").refused(http.StatusNotFound, domain.CodeNotFound)
	equal(t, s.call(bound, "GET", "/v1/jobs", "").want(http.StatusOK)["total"], 1.0)
	list, _ := s.call(bound, "GET", "/v1/projects", "").want(http.StatusOK)["projects"].([]any)
	equal(t, len(list), 1)

	at, err := s.commands.SuspendAccount(t.Context(), operator(uuid.New()), accountID)
	s.visible(at, err)
	s.call(key, "GET", "/v1/jobs", "").refused(http.StatusForbidden, domain.CodeAccountSuspended)
	s.call(key, "POST", "/v1/jobs", "garbage").refused(http.StatusForbidden, domain.CodeAccountSuspended)
	s.call(stale, "GET", "/v1/jobs", "").refused(http.StatusUnauthorized, domain.CodeUnauthorized)
}

func TestReadModelsThatLagDelayTheAnswerButDontPreventIt(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	waited := make(chan time.Duration, 1)
	s.writer.WaitFor = func(ctx context.Context, _ domain.Position) error {
		deadline, _ := ctx.Deadline()
		waited <- time.Until(deadline)
		return context.DeadlineExceeded
	}
	s.call(key, "POST", "/v1/jobs", aJob).want(http.StatusCreated)
	if got := <-waited; got > admit.VisibleWithin {
		t.Errorf("the answer would wait %s", got)
	}
}

func TestAWriteGoesOnWhenTheClientHangsUp(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(100)
	ctx, hangUp := context.WithCancel(t.Context())
	hungUp := false
	s.log.Before(func(stream string) {
		if strings.HasPrefix(stream, domain.CreditsStreams) {
			hungUp = true
			hangUp()
		}
	})
	s.callWith(ctx, key, "POST", "/v1/jobs", aJob).want(http.StatusCreated)
	if !hungUp || s.count("job.created") != 1 {
		t.Errorf("hung up: %v, jobs: %d", hungUp, s.count("job.created"))
	}
}

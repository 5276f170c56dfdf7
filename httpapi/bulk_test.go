package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
)

// bulkOf is a body with n jobs; change may alter the n-th, from 0.
func bulkOf(n int, change func(i int, body string) string) string {
	jobs := make([]string, n)
	for i := range jobs {
		jobs[i] = strings.Replace(aJob, "Checkout", fmt.Sprintf("Test %d", i), 1)
		if change != nil {
			jobs[i] = change(i, jobs[i])
		}
	}
	return `{"jobs":[` + strings.Join(jobs, ",") + `]}`
}

func texts(list any) []string {
	values, _ := list.([]any)
	out := []string{}
	for _, v := range values {
		s, _ := v.(string)
		out = append(out, s)
	}
	return out
}

// Specification, "POST /v1/jobs/bulk"; decisions, "Bulk".
func TestABatchFromItsSubmissionToItsEnd(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	batch := s.call(key, "POST", "/v1/jobs/bulk", bulkOf(5, func(i int, body string) string {
		switch i {
		case 1:
			return strings.Replace(body, "{", `{"priority":"urgent",`, 1)
		case 2:
			return strings.Replace(body, "{", `{"slaMinutes":15,`, 1)
		}
		return body
	})).want(http.StatusCreated)
	id, _ := batch["batchId"].(string)
	jobs := texts(batch["jobIds"])
	equal(t, batch, map[string]any{
		"batchId": id, "name": nil, "jobIds": batch["jobIds"], "totalCreditsDeducted": 30.0, "creditsRemaining": 70.0,
		"estimatedCompletionMinutes": 60.0,
	})
	equal(t, len(jobs), 5)
	with(t, s.call(key, "GET", "/v1/jobs/"+jobs[1], "").want(http.StatusOK), map[string]any{
		"title": "Test 1", "priority": "urgent", "source": "bulk", "batchId": id, "creditsUsed": 10.0,
	})

	read := func() map[string]any {
		t.Helper()
		return s.call(key, "GET", "/v1/jobs/bulk/"+id, "").want(http.StatusOK)
	}
	pending := read()
	var want []any
	for i, j := range jobs {
		want = append(want, map[string]any{
			"id": j, "status": "pending", "title": fmt.Sprintf("Test %d", i), "overallStatus": nil, "isFinal": false,
		})
	}
	equal(t, pending, map[string]any{
		"batchId": id, "name": nil, "overallStatus": "in_progress", "totalJobs": 5.0, "completedJobs": 0.0,
		"passCount": 0.0, "failCount": 0.0, "jobs": want,
	})

	w := s.claims(s.checker(), jobs[0])
	with(t, read(), map[string]any{"overallStatus": "in_progress", "completedJobs": 0.0})
	w.checks(passes).completes("Fine.")
	s.claims(s.checker(), jobs[1]).checks(fails).completes("Broken.")
	s.claims(s.checker(), jobs[2]).checks(skips).completes("Blocked.")
	s.call(key, "POST", "/v1/jobs/"+jobs[3]+"/cancel", "").want(http.StatusOK)
	with(t, read(), map[string]any{"overallStatus": "in_progress", "completedJobs": 3.0, "passCount": 1.0, "failCount": 1.0})

	s.failed(accountID, jobs[4])
	done := read()
	with(t, done, map[string]any{"overallStatus": "completed", "totalJobs": 5.0, "completedJobs": 3.0, "passCount": 1.0, "failCount": 1.0})
	list, _ := done["jobs"].([]any)
	for i, status := range []string{"completed", "completed", "completed", "cancelled", "failed"} {
		j, _ := list[i].(map[string]any)
		with(t, j, map[string]any{"id": jobs[i], "status": status, "isFinal": true})
		if _, reported := j["reportId"]; reported != (status == "completed") {
			t.Errorf("job %d: %v", i, j)
		}
	}
}

func TestABatchIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	without := func(field string) string { return strings.Replace(aJob, `"`+field+`"`, `"not-`+field+`"`, 1) }
	before := s.written()
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"none", `{"jobs":[]}`, []string{"jobs"}},
		{"absent", `{}`, []string{"jobs"}},
		{"null", `{"jobs":null}`, []string{"jobs"}},
		{"no list", `{"jobs":{}}`, []string{"jobs"}},
		{"no body", ``, []string{"body"}},
		{"no object", `[]`, []string{"body"}},
		{"21", bulkOf(21, nil), []string{"jobs"}},
		{"an entry that is no job", `{"jobs":[` + aJob + `,7,null,"x"]}`, []string{"jobs[1]", "jobs[2]", "jobs[3]"}},
		{"jobs[3].title missing", bulkOf(5, func(i int, body string) string {
			if i == 3 {
				return without("title")
			}
			return body
		}), []string{"jobs[3].title"}},
		{"every offending path", bulkOf(12, func(i int, body string) string {
			switch i {
			case 2:
				return without("url")
			case 4:
				return strings.Replace(body, "{", `{"checklistItems":[{"severity":"huge"}],"credentials":{"username":7},"slaMinutes":20,`, 1)
			case 10:
				return strings.Replace(body, "https://example.com/shop", "javascript:alert(1)", 1)
			case 11:
				return `{}`
			}
			return body
		}), []string{
			"jobs[2].url",
			"jobs[4].checklistItems[0].description", "jobs[4].checklistItems[0].severity", "jobs[4].credentials.username", "jobs[4].slaMinutes",
			"jobs[10].url",
			"jobs[11].description", "jobs[11].jobType", "jobs[11].title", "jobs[11].url",
		}},
	} {
		r := s.call(key, "POST", "/v1/jobs/bulk", c.body)
		if got := r.paths(); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	foreign := bulkOf(3, func(i int, body string) string {
		if i == 2 {
			return strings.Replace(body, "{", `{"projectId":"`+uuid.NewString()+`",`, 1)
		}
		return body
	})
	s.call(key, "POST", "/v1/jobs/bulk", foreign).refused(http.StatusNotFound, domain.CodeNotFound)
	equal(t, s.written(), before)
}

func TestABatchOfTwentyWithCreditsForNineteenChargesNothing(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(19 * 5)
	before := s.written()
	body := s.call(key, "POST", "/v1/jobs/bulk", bulkOf(20, nil)).refused(http.StatusPaymentRequired, domain.CodeInsufficientCredits)
	with(t, body, map[string]any{"creditsRequired": 100.0, "creditsAvailable": 95.0, "creditsShort": 5.0})
	equal(t, s.written(), before)

	// With the money it is twenty jobs.
	_, rich := s.account(100)
	batch := s.call(rich, "POST", "/v1/jobs/bulk", bulkOf(20, nil)).want(http.StatusCreated)
	with(t, batch, map[string]any{"totalCreditsDeducted": 100.0, "creditsRemaining": 0.0})
	equal(t, len(texts(batch["jobIds"])), 20)
}

func TestABatchIsSubmittedOnceUnderOneKey(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	first := s.call(key, "POST", "/v1/jobs/bulk", bulkOf(3, nil), "Idempotency-Key", "b")
	first.want(http.StatusCreated)
	again := s.call(key, "POST", "/v1/jobs/bulk", bulkOf(3, nil), "Idempotency-Key", "b")
	equal(t, again.Header().Get("Idempotent-Replayed"), "true")
	equal(t, again.Body.String(), first.Body.String())
	s.call(key, "POST", "/v1/jobs/bulk", bulkOf(2, nil), "Idempotency-Key", "b").refused(http.StatusConflict, domain.CodeConflict)
	equal(t, s.count("job.created"), 3)
}

// Decisions, "Bulk": cancel and repeat.
func TestABatchIsCancelledAndRepeated(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	items := `"checklistItems":[{"description":"It opens","severity":"critical"}],"credentials":{"username":"a@b.example","password":"hunter2"}`
	bulk := `{"jobs":[` + jobWith(items) + `,` + aJob + `,` + aJob + `]}`
	first := s.call(key, "POST", "/v1/jobs/bulk", bulk).want(http.StatusCreated)
	id, _ := first["batchId"].(string)
	jobs := texts(first["jobIds"])
	s.claims(s.checker(""), jobs[1])

	want := map[string]any{"batchId": id, "cancelled": 2.0, "creditsRefunded": 10.0, "creditsExpired": 0.0}
	for range 2 { // a repeat changes nothing
		with(t, s.call(key, "POST", "/v1/jobs/bulk/"+id+"/cancel", "").want(http.StatusOK), want)
		with(t, s.call(key, "GET", "/v1/credits", "").want(http.StatusOK), map[string]any{"available": 95.0})
	}
	with(t, s.call(key, "GET", "/v1/jobs/"+jobs[1], "").want(http.StatusOK), map[string]any{"status": "claimed"})

	again := s.call(key, "POST", "/v1/jobs/bulk/"+id+"/repeat", "", "Idempotency-Key", "again")
	batch := again.want(http.StatusCreated)
	with(t, batch, map[string]any{"totalCreditsDeducted": 15.0, "creditsRemaining": 80.0})
	equal(t, s.call(key, "POST", "/v1/jobs/bulk/"+id+"/repeat", "", "Idempotency-Key", "again").Body.String(), again.Body.String())
	for i, jobID := range texts(batch["jobIds"]) {
		with(t, s.call(key, "GET", "/v1/jobs/"+jobID, "").want(http.StatusOK), map[string]any{
			"batchId": batch["batchId"], "parentJobId": jobs[i], "status": "pending", "source": "retest",
		})
	}
	brief, _ := s.call(s.checker(""), "POST", "/v1/checker/claims", `{"jobId":"`+texts(batch["jobIds"])[0]+`"}`).
		want(http.StatusCreated)["brief"].(map[string]any)
	login, _ := brief["credentials"].(map[string]any)
	with(t, login, map[string]any{"username": "a@b.example", "password": "hunter2"})

	// All or none.
	_, poor := s.account(15)
	bought, _ := s.call(poor, "POST", "/v1/jobs/bulk", bulk).want(http.StatusCreated)["batchId"].(string)
	before := s.written()
	s.call(poor, "POST", "/v1/jobs/bulk/"+bought+"/repeat", "").refused(http.StatusPaymentRequired, domain.CodeInsufficientCredits)
	equal(t, s.written(), before)
}

func TestWhoMayReadABatch(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	_, other := s.account(100)
	own, _ := s.call(key, "POST", "/v1/projects", `{"name":"own"}`).want(http.StatusCreated)["projectId"].(string)
	bound := s.key(accountID, command.IssueKey{Scope: account.ScopeFull, ProjectID: own})
	read := s.key(accountID, command.IssueKey{Scope: account.ScopeRead})
	batch := func(key, body string) string {
		id, _ := s.call(key, "POST", "/v1/jobs/bulk", body).want(http.StatusCreated)["batchId"].(string)
		return id
	}
	mixed := batch(key, bulkOf(2, func(i int, body string) string {
		if i == 0 {
			return strings.Replace(body, "{", `{"projectId":"`+own+`",`, 1)
		}
		return body
	}))
	within := batch(bound, bulkOf(2, nil)) // in the key's project
	for _, path := range []string{"", "/report"} {
		s.call(other, "GET", "/v1/jobs/bulk/"+mixed+path, "").refused(http.StatusNotFound, domain.CodeNotFound)
		s.call(key, "GET", "/v1/jobs/bulk/"+uuid.NewString()+path, "").refused(http.StatusNotFound, domain.CodeNotFound)
		s.call(key, "GET", "/v1/jobs/bulk/a%20b"+path, "").refused(http.StatusNotFound, domain.CodeNotFound)
		s.call(bound, "GET", "/v1/jobs/bulk/"+mixed+path, "").refused(http.StatusForbidden, domain.CodeForbidden)
	}
	for _, path := range []string{"/cancel", "/repeat"} {
		s.call(other, "POST", "/v1/jobs/bulk/"+mixed+path, "").refused(http.StatusNotFound, domain.CodeNotFound)
		s.call(bound, "POST", "/v1/jobs/bulk/"+mixed+path, "").refused(http.StatusForbidden, domain.CodeForbidden)
		s.call(read, "POST", "/v1/jobs/bulk/"+mixed+path, "").refused(http.StatusForbidden, domain.CodeForbidden)
	}
	s.call(read, "GET", "/v1/jobs/bulk/"+mixed, "").want(http.StatusOK)
	equal(t, s.call(bound, "GET", "/v1/jobs/bulk/"+within, "").want(http.StatusOK)["totalJobs"], any(2.0))
	s.call(read, "POST", "/v1/jobs/bulk", bulkOf(1, nil)).refused(http.StatusForbidden, domain.CodeForbidden)
}

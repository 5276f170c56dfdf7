package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/input"
	"humanqa/internal/testing/must"
)

const (
	hookURL = "https://hooks.example.com/in"
	secretS = "0123456789 abcdefghijklmnopqrstu" // 32 characters, a blank inside
	secretT = "another secret of the same length"
)

// hosted submits a hosted test of a host.
func (s *service) hosted(key, host, more string, headers ...string) result {
	s.t.Helper()
	return s.call(key, "POST", "/v1/hosted/test", `{"url":"https://`+host+`/"`+more+`}`, headers...)
}

// complete claims and completes a job; the items of these ids or keys fail,
// every other one passes.
func (s *service) complete(jobID string, failing ...string) {
	s.t.Helper()
	ctx := s.t.Context()
	checker, err := s.commands.CreateChecker(ctx, operator(uuid.New()), "bob", nil)
	s.visible(checker.Position, err)
	cause := func() command.Cause {
		return command.Cause{CommandID: uuid.New(), Actor: "checker:" + checker.CheckerID}
	}
	claimed, err := s.commands.ClaimJob(ctx, cause(), checker.CheckerID, jobID)
	must.NoError(s.t, err)
	claim := command.Claim{CheckerID: checker.CheckerID, JobID: jobID, Token: claimed.Token}
	for _, item := range claimed.Checklist {
		verdict := command.CheckItem{ItemID: item.ID, Status: job.ItemPass}
		if slices.Contains(failing, item.ID) || slices.Contains(failing, item.Key) {
			verdict.Status = job.ItemFail
		}
		_, _, err := s.commands.CheckItem(ctx, cause(), claim, verdict)
		must.NoError(s.t, err)
	}
	_, at, err := s.commands.CompleteJob(ctx, cause(), claim, command.CompleteJob{Summary: "done"})
	s.visible(at, err)
}

// checklist gives the items of a job's list, "description origin" each.
func (s *service) checklist(jobID string) []string {
	s.t.Helper()
	var out []string
	err := s.log.Load(s.t.Context(), domain.JobStream(jobID), 0, func(r domain.Recorded) error {
		if c, ok := r.Event.(*job.Created); ok {
			for _, item := range c.Items {
				out = append(out, strings.TrimSpace(item.Description+" "+string(item.Origin)))
			}
		}
		return nil
	})
	must.NoError(s.t, err)
	return out
}

func TestAHostedTestAnswersItsHandle(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	body := s.hosted(key, "shop.replit.app", "").want(http.StatusCreated)
	id, projectID := body["jobId"].(string), body["projectId"].(string)
	equal(t, body, map[string]any{
		"jobId": id, "projectId": projectID, "status": "pending", "estimatedCompletionMinutes": 60.0,
		"creditsDeducted": 5.0, "creditsCharged": 5.0, "creditsRemaining": 95.0, "checklistItemCount": 1.0,
		"jobType": "First Impression", "jobTypeCode": "first_impression", "isHostedApp": true, "regressionItemsIncluded": 0.0,
		"statusUrl":          "https://qa.example/v1/hosted/status/" + id,
		"reportUrl":          "https://qa.example/v1/jobs/" + id + "/report",
		"dashboardReportUrl": "https://qa.example/dashboard/jobs/" + id,
	})
	with(t, s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK), map[string]any{
		"status": "pending", "title": "Hosted test of shop.replit.app", "url": "https://shop.replit.app/",
		"jobType": "First Impression", "projectId": projectID, "priority": "normal", "slaMinutes": 60.0,
	})
	with(t, s.call(key, "GET", "/v1/projects/"+projectID, "").want(http.StatusOK), map[string]any{
		"name": "shop.replit.app", "defaultUrl": nil, "webhookUrl": nil, "jobCount": 1.0,
	})
	with(t, s.hosted(key, "shop.example.com", `,"priority":"urgent","feature":"the search","targetDevice":"Pixel 9"`).want(http.StatusCreated), map[string]any{
		"creditsDeducted": 10.0, "creditsCharged": 10.0, "creditsRemaining": 85.0, "estimatedCompletionMinutes": 30.0,
		"isHostedApp": false, "jobType": "General QA",
	})
}

func TestWhatAHostedTestMayNotBe(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	long := func(n int) string { return strings.Repeat("ü", n) }
	secret := func(v string) string { return `{"url":"https://a.example","webhookSecret":"` + v + `"}` }
	for body, paths := range map[string][]string{
		``:                                 {"body"},
		`[]`:                               {"body"},
		`{}`:                               {"url"},
		`{"url":null}`:                     {"url"},
		`{"url":7}`:                        {"url"},
		`{"url":"ftp://a.example"}`:        {"url"},
		`{"url":"https://localhost/"}`:     {"url"},
		`{"url":"http://192.168.0.1/"}`:    {"url"},
		`{"url":"javascript:alert(1)"}`:    {"url"},
		`{"url":"https://u:p@a.example/"}`: {"url"},
		`{"url":"https://a.example","feature":"` + long(2001) + `"}`:            {"feature"},
		`{"url":"https://a.example","accessInstructions":"` + long(4001) + `"}`: {"accessInstructions"},
		`{"url":"https://a.example","targetDevice":"` + long(101) + `"}`:        {"targetDevice"},
		`{"url":"https://a.example","priority":"fast"}`:                         {"priority"},
		`{"url":"https://a.example","jobType":"auth_flow"}`:                     {"jobType"},
		`{"url":"https://a.example","jobType":"Nope"}`:                          {"jobType"},
		`{"url":"https://a.example","webhookUrl":"http://hooks.example.com/"}`:  {"webhookUrl"},
		`{"url":"https://a.example","webhookUrl":"https://10.0.0.1/"}`:          {"webhookUrl"},
		`{"url":"https://a.example","webhookUrl":"https://localhost/"}`:         {"webhookUrl"},
		`{"url":"https://a.example","subscribedWebhookEvents":["job.claimed"]}`: {"subscribedWebhookEvents[0]"},
		`{"url":"https://a.example","subscribedWebhookEvents":["Job Created"]}`: {"subscribedWebhookEvents[0]"},
		`{"url":"https://a.example","subscribedWebhookEvents":"job.created"}`:   {"subscribedWebhookEvents"},
		`{"url":1,"feature":2,"priority":3,"jobType":4,"webhookSecret":[]}`:     {"feature", "jobType", "priority", "url", "webhookSecret"},
		secret(""):                                 {"webhookSecret"},
		secret(strings.Repeat("x", 31)):            {"webhookSecret"},
		secret(strings.Repeat("x", 257)):           {"webhookSecret"},
		secret(strings.Repeat("x", 40) + `\t`):     {"webhookSecret"},
		secret(strings.Repeat("x", 40) + "é"):      {"webhookSecret"},
		secret(strings.Repeat("x", 40) + `\u007f`): {"webhookSecret"},
	} {
		if got := s.call(key, "POST", "/v1/hosted/test", body).paths(); !slices.Equal(got, paths) {
			t.Errorf("%.120s\nis refused for %v, want %v", body, got, paths)
		}
	}
	equal(t, s.count("job.created")+s.count("project.created")+s.count("host.linked"), 0)
}

func TestTheLongestOfEachIsTaken(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	s.hosted(key, "a.example", `,"feature":"`+strings.Repeat("ü", 2000)+`","webhookUrl":"`+hookURL+`","webhookSecret":"`+strings.Repeat("~", 256)+`"`).
		want(http.StatusCreated)
	s.hosted(key, strings.Repeat("a", 60)+"."+strings.Repeat("b", 60)+"."+strings.Repeat("c", 60)+".example", "").want(http.StatusCreated)
}

func TestAHostedTestsTypeIsDetectedOrGivenInEitherSpelling(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	first := func(more string) map[string]any {
		return s.hosted(key, uuid.NewString()+".example.com", more).want(http.StatusCreated)
	}
	for more, want := range map[string][2]string{
		``:                                     {"First Impression", "first_impression"},
		`,"feature":" "`:                       {"First Impression", "first_impression"},
		`,"jobType":null`:                      {"First Impression", "first_impression"},
		`,"feature":"the search"`:              {"General QA", "general_qa"},
		`,"feature":"Pay with PayPal"`:         {"Payment Flow", "payment_flow"},
		`,"jobType":"payment_flow"`:            {"payment_flow", "payment_flow"},
		`,"jobType":"CUSTOM","feature":"pay"`:  {"CUSTOM", "custom"},
		`,"jobType":"AI Review"`:               {"AI Review", "ai_review"},
		`,"jobType":"general qa","feature":""`: {"general qa", "general_qa"},
	} {
		got := first(more)
		equal(t, [2]string{got["jobType"].(string), got["jobTypeCode"].(string)}, want)
	}
	const items = `,"checklistItems":[{"description":"The cart works"}]`
	equal(t, first(items)["checklistItemCount"], any(1.0))
	equal(t, s.hosted(key, "shop.example.com", `,"jobType":"AI Review"`+items).paths(), []string{"checklistItems"})
	s.hosted(key, "shop.example.com", "").want(http.StatusCreated)
	with(t, s.hosted(key, "shop.example.com", "").want(http.StatusCreated), map[string]any{"jobType": "General QA"})
}

func TestHostedTestsOfOneHostBelongToOneProject(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	projectOf := func(url string) any {
		return s.call(key, "POST", "/v1/hosted/test", `{"url":"`+url+`"}`).want(http.StatusCreated)["projectId"]
	}
	shop := projectOf("https://shop.example.com/a")
	for _, url := range []string{"https://www.shop.example.com/b?c=d", "HTTPS://SHOP.example.com:443", "http://shop.example.com:80/"} {
		equal(t, projectOf(url), shop)
	}
	if projectOf("https://shop.example.com:8443/") == shop {
		t.Error("another port is another app")
	}
	named := s.project(key, `{"name":"Named","defaultUrl":"https://www.named.example.com/start"}`)
	equal(t, projectOf("https://named.example.com/"), any(named))

	_, other := s.account(100)
	if got := s.hosted(other, "shop.example.com", "").want(http.StatusCreated)["projectId"]; got == shop {
		t.Error("another account's test went to this one's project")
	}
}

func TestAnUrgentHostedTestWithSevenCredits(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(7)
	before := s.written()
	with(t, s.hosted(key, "new.example.com", `,"priority":"urgent","webhookUrl":"`+hookURL+`"`).
		refused(http.StatusPaymentRequired, domain.CodeInsufficientCredits), map[string]any{
		"creditsRequired": 10.0, "creditsAvailable": 7.0, "creditsShort": 3.0,
	})
	equal(t, s.written(), before)
	equal(t, s.call(key, "GET", "/v1/projects", "").want(http.StatusOK)["projects"], []any{})
}

func TestAProjectBoundKeysHostedTestsGoToItsProject(t *testing.T) {
	t.Parallel()
	s := shared(t)
	id, key := s.account(100)
	own := s.project(key, `{"name":"Own"}`)
	bound := s.key(id, command.IssueKey{Scope: account.ScopeFull, ProjectID: own})
	with(t, s.hosted(bound, "any.example.com", "").want(http.StatusCreated), map[string]any{"projectId": own})
	equal(t, s.count("host.linked"), 0)
}

func TestAHostedTestWithAnIdempotencyKeyIsOneTest(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	first := s.hosted(key, "a.example.com", "", "Idempotency-Key", "k").want(http.StatusCreated)
	again := s.hosted(key, "a.example.com", "", "Idempotency-Key", "k")
	equal(t, again.want(http.StatusCreated), first)
	equal(t, again.Header().Get("Idempotent-Replayed"), "true")
	s.hosted(key, "b.example.com", "", "Idempotency-Key", "k").refused(http.StatusConflict, domain.CodeConflict)
	equal(t, s.count("job.created"), 1)
}

func TestAccessInstructionsOfAHostedTestAreSeenByTheClaimantOnly(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	const sesame = "open sesame, says Ali"
	submitted := s.hosted(key, "a.example.com", `,"accessInstructions":"`+sesame+`"`)
	id := submitted.want(http.StatusCreated)["jobId"].(string)
	for _, where := range []string{
		submitted.Body.String(), s.call(key, "GET", "/v1/jobs/"+id, "").Body.String(), s.call(key, "GET", "/v1/jobs", "").Body.String(), s.logged.String(),
	} {
		if strings.Contains(where, sesame) {
			t.Errorf("they are shown: %s", where)
		}
	}
	claim := s.call(s.checker(), "POST", "/v1/checker/claims", `{"jobId":"`+id+`"}`).want(http.StatusCreated)
	equal(t, claim["brief"].(map[string]any)["accessInstructions"], any(sesame))
}

func TestTheHeadersOfAnAgentsLoop(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	for _, c := range []struct {
		headers []string
		paths   []string
	}{
		{[]string{input.SkillHeader, "fix"}, []string{input.IterationHeader}},
		{[]string{input.IterationHeader, "1"}, []string{input.SkillHeader}},
		{[]string{input.SkillHeader, " ", input.IterationHeader, "1"}, []string{input.SkillHeader}},
		{[]string{input.SkillHeader, strings.Repeat("x", 101), input.IterationHeader, "1"}, []string{input.SkillHeader}},
		{[]string{input.SkillHeader, "é", input.IterationHeader, "one"}, []string{input.IterationHeader, input.SkillHeader}},
		{[]string{input.SkillHeader, "fix", input.IterationHeader, "0"}, []string{input.IterationHeader}},
		{[]string{input.SkillHeader, "fix", input.IterationHeader, "1.5"}, []string{input.IterationHeader}},
		{[]string{input.SkillHeader, "fix", input.IterationHeader, ""}, []string{input.IterationHeader}},
		{[]string{input.SkillHeader, "fix", input.IterationHeader, "1", input.MaxIterationsHeader, "0"}, []string{input.MaxIterationsHeader}},
	} {
		equal(t, s.hosted(key, "a.example.com", "", c.headers...).paths(), c.paths)
	}
	s.hosted(key, "a.example.com", "").want(http.StatusCreated)
	equal(t, s.count("loop_session.started"), 0)
	for _, n := range []string{"1", "2"} {
		s.hosted(key, "a.example.com", "", input.SkillHeader, "fix", input.IterationHeader, n).want(http.StatusCreated)
	}
	equal(t, []int{s.count("loop_session.started"), s.count("loop_session.iterated")}, []int{1, 2})
}

func TestPrepareNextQueuesFixesForTheNextTest(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	first := s.hosted(key, "a.example.com", "").want(http.StatusCreated)
	id := first["projectId"].(string)
	s.complete(first["jobId"].(string), "item-1")
	prepared := s.call(key, "POST", "/v1/hosted/prepare-next",
		`{"projectId":"`+id+`","fixedBugIds":["item-1","item-1"],"fixedDescriptions":[" The cart adds up ","the cart adds up."]}`).want(http.StatusOK)
	equal(t, prepared, map[string]any{
		"message": "2 fixes will be verified by the project's next test", "regressionItems": 2.0,
		"descriptions": []any{"the page loads", "The cart adds up"}, "projectId": id,
	})
	next := s.hosted(key, "a.example.com", "").want(http.StatusCreated)
	with(t, next, map[string]any{"regressionItemsIncluded": 2.0, "checklistItemCount": 2.0})
	items := s.checklist(next["jobId"].(string))
	slices.Sort(items)
	equal(t, items, []string{"The cart adds up prepared_fix", "the page loads prepared_fix"})

	t.Run("one request once, also when its bug failed in another test than the last", func(t *testing.T) {
		const path, header = "/v1/hosted/prepare-next", "Idempotency-Key"
		other := s.hosted(key, "b.example.com", "").want(http.StatusCreated)
		s.complete(other["jobId"].(string), "item-1")
		body := `{"projectId":"` + other["projectId"].(string) + `","fixedBugIds":["item-1"]}`
		once := s.call(key, "POST", path, body, header, "k").want(http.StatusOK)
		s.complete(s.hosted(key, "b.example.com", "").want(http.StatusCreated)["jobId"].(string))
		equal(t, s.call(key, "POST", path, body, header, "k").want(http.StatusOK), once)
		equal(t, s.call(key, "POST", path, body).paths(), []string{"fixedBugIds[0]"})
	})
	t.Run("and for that one only, but what failed stays in", func(t *testing.T) {
		after := s.hosted(key, "a.example.com", "").want(http.StatusCreated)
		equal(t, s.checklist(after["jobId"].(string)), []string{"the page loads open_failure"})
	})
	t.Run("unless it is cancelled", func(t *testing.T) {
		s.call(key, "POST", "/v1/jobs/"+next["jobId"].(string)+"/cancel", "").want(http.StatusOK)
		with(t, s.hosted(key, "a.example.com", "").want(http.StatusCreated), map[string]any{"regressionItemsIncluded": 2.0})
	})
	t.Run("one is a fix", func(t *testing.T) {
		one := s.call(key, "POST", "/v1/hosted/prepare-next", `{"projectId":"`+id+`","fixedDescriptions":["x"]}`).want(http.StatusOK)
		equal(t, one["message"], any("1 fix will be verified by the project's next test"))
	})
}

func TestWhatPrepareNextRefuses(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(1000)
	first := s.hosted(key, "a.example.com", "").want(http.StatusCreated)
	id := first["projectId"].(string)
	s.complete(first["jobId"].(string))
	const path = "/v1/hosted/prepare-next"
	many := func(n int, text string) string {
		return `["` + strings.Join(slices.Repeat([]string{text}, n), `","`) + `"]`
	}
	both := []string{"fixedBugIds", "fixedDescriptions"}
	for more, paths := range map[string][]string{
		``: both,
		`,"fixedBugIds":[],"fixedDescriptions":[]`:                           both,
		`,"fixedBugIds":null`:                                                both,
		`,"fixedBugIds":"x"`:                                                 {"fixedBugIds"},
		`,"fixedBugIds":["item-1","item-9"]`:                                 {"fixedBugIds[0]", "fixedBugIds[1]"},
		`,"fixedBugIds":["a b"]`:                                             {"fixedBugIds[0]"},
		`,"fixedDescriptions":["x"," "]`:                                     {"fixedDescriptions[1]"},
		`,"fixedDescriptions":["x",7]`:                                       {"fixedDescriptions[1]"},
		`,"fixedDescriptions":["` + strings.Repeat("ü", 1001) + `"]`:         {"fixedDescriptions[0]"},
		`,"fixedDescriptions":` + many(51, "x"):                              {"fixedDescriptions"},
		`,"fixedBugIds":` + many(51, "x") + `,"fixedDescriptions":{"a":"b"}`: {"fixedBugIds", "fixedDescriptions"},
	} {
		if got := s.call(key, "POST", path, `{"projectId":"`+id+`"`+more+`}`).paths(); !slices.Equal(got, paths) {
			t.Errorf("%.80s\nis refused for %v, want %v", more, got, paths)
		}
	}
	equal(t, s.call(key, "POST", path, `{"fixedDescriptions":["x"]}`).paths(), []string{"projectId"})
	equal(t, s.call(key, "POST", path, `{"projectId":" ","fixedDescriptions":["x"]}`).paths(), []string{"projectId"})
	equal(t, s.call(key, "POST", path, "").paths(), []string{"body"})
	for _, nobodys := range []string{uuid.NewString(), "nope"} {
		s.call(key, "POST", path, `{"projectId":"`+nobodys+`","fixedBugIds":["item-1"]}`).refused(http.StatusNotFound, domain.CodeNotFound)
	}
	_, other := s.account(0)
	s.call(other, "POST", path, `{"projectId":"`+id+`","fixedDescriptions":["x"]}`).refused(http.StatusNotFound, domain.CodeNotFound)
	bound := s.key(accountID, command.IssueKey{Scope: account.ScopeFull, ProjectID: s.project(key, `{"name":"Other"}`)})
	s.call(bound, "POST", path, `{"projectId":"`+id+`","fixedDescriptions":["x"]}`).refused(http.StatusForbidden, domain.CodeForbidden)
	equal(t, s.count("project.regressions_prepared"), 0)

	s.call(key, "POST", path, `{"projectId":"`+id+`","fixedDescriptions":`+many(50, strings.Repeat("ü", 1000))+`}`).want(http.StatusOK)
}

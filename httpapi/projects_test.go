package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/project"
)

func eventList(names ...string) []any {
	out := []any{}
	for _, n := range names {
		out = append(out, n)
	}
	return out
}

func (s *service) project(key, body string) string {
	s.t.Helper()
	id, _ := s.call(key, "POST", "/v1/projects", body).want(http.StatusCreated)["projectId"].(string)
	return id
}

func TestCreatingAProject(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	created := s.call(key, "POST", "/v1/projects", `{"name":"Shop","description":"All of it","defaultUrl":"https://shop.example.com",
		"defaultJobType":"General QA","defaultSlaMinutes":15,"webhookUrl":"https://hooks.example.com/in","subscribedWebhookEvents":["job.completed"]}`).want(http.StatusCreated)
	id, _ := created["projectId"].(string)
	hook, _ := created["deployHookUrl"].(string)
	if token, ok := strings.CutPrefix(hook, "https://qa.example/v1/hooks/deploy/qh_"); !ok || len(token) < 22 {
		t.Errorf("the deploy hook is %q", hook)
	}
	with(t, created, map[string]any{"name": "Shop"})

	got := s.call(key, "GET", "/v1/projects/"+id, "")
	body := got.want(http.StatusOK)
	if strings.Contains(got.Body.String(), "qh_") || strings.Contains(got.Body.String(), "whsec_") {
		t.Errorf("a secret is shown: %s", got.Body)
	}
	equal(t, body["subscribedWebhookEvents"], eventList("job.completed"))
	equal(t, body["webhookSecretRotations"], []any{})
	with(t, body, map[string]any{
		"id": id, "projectId": id, "name": "Shop", "description": "All of it", "defaultUrl": "https://shop.example.com",
		"defaultJobType": "General QA", "defaultSlaMinutes": 15.0, "webhookUrl": "https://hooks.example.com/in",
		"webhookDisabled": false, "webhookDisabledReason": nil, "webhookSecretRotatedAt": nil, "allWebhookEvents": false,
		"jobCount": 0.0, "passRate": 0.0,
	})

	submitted := s.call(key, "POST", "/v1/jobs", strings.Replace(aJob, "{", `{"projectId":"`+id+`",`, 1)).want(http.StatusCreated)
	with(t, submitted, map[string]any{"estimatedCompletionMinutes": 15.0, "projectId": id})
	list, _ := s.call(key, "GET", "/v1/projects", "").want(http.StatusOK)["projects"].([]any)
	with(t, list[0].(map[string]any), map[string]any{"id": id, "jobCount": 1.0, "passRate": 0.0})
}

func TestWhatAProjectMayNotBe(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	equal(t, s.call(key, "POST", "/v1/projects", `{"name":" ","description":1,"defaultUrl":"http://localhost/x","defaultJobType":"Nope",
		"defaultSlaMinutes":20,"webhookUrl":"http://hooks.example.com","subscribedWebhookEvents":["job.completed","job.claimed",7]}`).paths(),
		[]string{"defaultJobType", "defaultSlaMinutes", "defaultUrl", "description", "name",
			"subscribedWebhookEvents[1]", "subscribedWebhookEvents[2]", "webhookUrl"})
	for _, bad := range []string{
		"https://localhost/x", "https://127.0.0.1/x", "https://10.1.2.3/x", "https://[::1]/", "https://169.254.169.254/latest", "https://user@hooks.example.com/",
		"ftp://hooks.example.com/", "hooks.example.com", "https://", "https://0x7f.1/",
	} {
		equal(t, s.call(key, "POST", "/v1/projects", `{"name":"x","webhookUrl":"`+bad+`"}`).paths(), []string{"webhookUrl"})
	}
	equal(t, s.log.count("project.created"), 0)
}

func TestSubscriptions(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	const hook = `"webhookUrl":"https://hooks.example.com/in"`
	all := eventList(project.EventNames()...)
	for body, want := range map[string]struct {
		names []any
		all   bool
	}{
		`{"name":"a",` + hook + `}`:                                           {all, true},
		`{"name":"b",` + hook + `,"subscribedWebhookEvents":[]}`:              {eventList(), false},
		`{"name":"c",` + hook + `,"subscribedWebhookEvents":["job.created"]}`: {eventList("job.created"), false},
		`{"name":"d","subscribedWebhookEvents":["job.created"]}`:              {eventList(), false},
		`{"name":"e"}`: {eventList(), false},
	} {
		got := s.call(key, "GET", "/v1/projects/"+s.project(key, body), "").want(http.StatusOK)
		equal(t, got["subscribedWebhookEvents"], want.names)
		equal(t, got["allWebhookEvents"], want.all)
	}
}

func TestPatchingAProject(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	id := s.project(key, `{"name":"Shop","description":"d","defaultUrl":"https://shop.example.com","defaultJobType":"custom","defaultSlaMinutes":30}`)
	patch := func(body string) map[string]any {
		t.Helper()
		return s.call(key, "PATCH", "/v1/projects/"+id, body).want(http.StatusOK)
	}
	unchanged := patch(`{}`)
	with(t, patch(`{"unknown":1}`), unchangedSettings(unchanged))
	with(t, patch(`{"description":null,"defaultUrl":"","defaultSlaMinutes":null,"name":"Shop 2"}`), map[string]any{
		"name": "Shop 2", "description": nil, "defaultUrl": nil, "defaultJobType": "custom", "defaultSlaMinutes": nil,
		"webhookUrl": nil, "webhookSecretRotations": nil, "allWebhookEvents": false,
	})
	with(t, patch(`{"description":"again","defaultSlaMinutes":60,"defaultJobType":"AI Review"}`), map[string]any{
		"description": "again", "defaultSlaMinutes": 60.0, "defaultJobType": "AI Review",
	})
	// A list without a URL applies to nothing.
	equal(t, patch(`{"subscribedWebhookEvents":["job.created"]}`)["subscribedWebhookEvents"], eventList())
	set := patch(`{"webhookUrl":"https://hooks.example.com/in","subscribedWebhookEvents":["job.created"]}`)
	equal(t, set["subscribedWebhookEvents"], eventList("job.created"))
	equal(t, set["webhookSecretRotations"], []any{})
	equal(t, patch(`{"name":"Shop 3"}`)["subscribedWebhookEvents"], eventList("job.created"))
	cleared := patch(`{"webhookUrl":""}`)
	equal(t, cleared["subscribedWebhookEvents"], eventList())
	with(t, cleared, map[string]any{"webhookUrl": nil, "webhookSecretRotations": nil})

	// What PATCH answered is what GET answers.
	after := patch(`{"webhookUrl":"https://hooks.example.com/two"}`)
	got := s.call(key, "GET", "/v1/projects/"+id, "").want(http.StatusOK)
	delete(got, "jobCount")
	delete(got, "passRate")
	equal(t, after, got)
	equal(t, s.log.count("project.webhook_secret_set"), 1)

	equal(t, s.call(key, "PATCH", "/v1/projects/"+id, `{"name":null,"webhookUrl":null,"subscribedWebhookEvents":null,
		"defaultSlaMinutes":45,"defaultUrl":"file:///etc/passwd","description":[]}`).paths(),
		[]string{"defaultSlaMinutes", "defaultUrl", "description", "name", "subscribedWebhookEvents", "webhookUrl"})
	for _, blank := range []string{"webhookUrl", "defaultUrl", "defaultJobType"} {
		equal(t, s.call(key, "PATCH", "/v1/projects/"+id, `{"`+blank+`":"  "}`).paths(), []string{blank})
	}
	for _, bad := range []string{`{"name":""}`, `{"name":" "}`} {
		equal(t, s.call(key, "PATCH", "/v1/projects/"+id, bad).paths(), []string{"name"})
	}
	s.call(key, "PATCH", "/v1/projects/"+uuid.NewString(), `{"name":"x"}`).refused(http.StatusNotFound, domain.CodeNotFound)
	equal(t, s.call(key, "PATCH", "/v1/projects/"+uuid.NewString(), `{"name":1}`).paths(), []string{"name"})
}

func unchangedSettings(body map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range body {
		if _, list := v.([]any); !list {
			out[k] = v
		}
	}
	return out
}

func TestEnablingAWebhook(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	bare := s.project(key, `{"name":"bare"}`)
	s.call(key, "POST", "/v1/projects/"+bare+"/webhook/enable", "").refused(http.StatusConflict, domain.CodeConflict)
	id := s.project(key, `{"name":"Shop","webhookUrl":"https://hooks.example.com/in"}`)
	at, err := s.commands.DisableWebhook(t.Context(), operator(uuid.New()), id, "d1", "status 500")
	s.visible(at, err)
	with(t, s.call(key, "GET", "/v1/projects/"+id, "").want(http.StatusOK), map[string]any{
		"webhookDisabled": true, "webhookDisabledReason": "status 500",
	})
	for range 2 {
		with(t, s.call(key, "POST", "/v1/projects/"+id+"/webhook/enable", "").want(http.StatusOK), map[string]any{
			"webhookDisabled": false, "webhookDisabledReason": nil,
		})
	}
}

func TestPricing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(0)
	prices, _ := s.call(key, "GET", "/v1/pricing", "").want(http.StatusOK)["prices"].([]any)
	equal(t, len(prices), 9)
	i := slices.IndexFunc(prices, func(p any) bool { return p.(map[string]any)["jobTypeCode"] == "ai_review" })
	equal(t, prices[i], map[string]any{"jobType": "AI Review", "jobTypeCode": "ai_review", "normal": 2.0, "urgent": 4.0})
}

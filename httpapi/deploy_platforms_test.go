package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/internal/testing/must"
)

// platformBody is a body as the platform's documentation has it.
func platformBody(t *testing.T, name string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", "deploys", name+".json"))
	must.NoError(t, err)
	return string(body)
}

// Decisions, "Deploy hook": each platform's body makes one test, whatever is repeated.
func TestADeployHookTakesWhatPlatformsSend(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(1000)
	_, hook := s.hook(key, withURL)
	const own = "https://shop.replit.app/start"
	for _, c := range []struct {
		name                             string
		headers                          []string
		url, commit, branch, environment string
		// repeat is another event of the same deployment, by what is replaced in the body.
		from, to string
	}{
		{"github", []string{"X-GitHub-Event", "deployment_status", "X-GitHub-Delivery", "d"}, "https://shop-git-cart.example.com/",
			"f95f852bd8fca8fcc58a9a2d6c842781e32a215e", "cart", "Preview", `"id":1115122348`, `"id":1115122349`},
		{"vercel", nil, "https://shop-7.vercel.app", "fa1eade47b73733d6312d5abfad33ce9e4068081", "cart", "preview", "deployment.succeeded", "deployment.ready"},
		{"netlify", []string{"X-Netlify-Event", "deploy_created"}, "https://deploy-preview-7--shop.netlify.app",
			"0a1b2c3d4e5f60718293a4b5c6d7e8f901234567", "cart", "deploy-preview", `"name":"shop"`, `"name":"shop "`},
		{"render", []string{"Webhook-Id", "msg_1"}, own, "", "", "", "12:00", "12:01"},
		{"railway", nil, own, "3c9d1e0f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d", "main", "production", "12:00", "12:01"},
		{"railway-new", nil, own, "3c9d1e0f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d", "main", "production", "12:00", "12:01"},
		{"gitlab", []string{"X-Gitlab-Event", "Deployment Hook"}, "https://staging.example.com",
			"279484c09fbe69ededfced8c1bb6e6d24616b468", "cart", "staging", `"deployable_id":796`, `"deployable_id":797`},
		{"heroku", []string{"Heroku-Webhook-Id", "h1"}, own, "9fceb02d0ae598e95dc970b74767f19372d61af8", "", "", `"sequence":"1"`, `"sequence":"2"`},
	} {
		body := platformBody(t, c.name)
		first := s.call("", "POST", hook, body, c.headers...).want(http.StatusCreated)
		id, _ := first["jobId"].(string)
		or := func(text string) any {
			if text == "" {
				return nil
			}
			return text
		}
		with(t, s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK), map[string]any{
			"url": c.url, "commitSha": or(c.commit), "branch": or(c.branch), "environment": or(c.environment),
			"description": "Test the app as a whole.", "source": "deploy",
		})
		again := strings.Replace(body, c.from, c.to, 1)
		if again == body {
			t.Fatalf("%s has no %s", c.name, c.from)
		}
		for _, ended := range []bool{false, true} { // also when its test has ended
			if ended {
				s.complete(id)
			}
			with(t, s.call("", "POST", hook, again, c.headers...).want(http.StatusOK), map[string]any{"jobId": id, "deduplicated": true, "creditsDeducted": 0.0})
		}
	}
	bare := strings.NewReplacer(`"deployment_id":15`, `"deployment_id":16`, `"commit_url"`, `"other_url"`).Replace(platformBody(t, "gitlab"))
	made := s.call("", "POST", hook, bare, "X-Gitlab-Event", "Deployment Hook").want(http.StatusCreated)
	equal(t, s.call(key, "GET", fmt.Sprint("/v1/jobs/", made["jobId"]), "").want(http.StatusOK)["commitSha"], any("279484c0"))
	// GitHub's default is a form.
	form := []string{"X-GitHub-Event", "deployment_status", "Content-Type", "application/x-www-form-urlencoded"}
	again := "payload=" + url.QueryEscape(platformBody(t, "github"))
	equal(t, s.call("", "POST", hook, again, form...).want(http.StatusOK)["deduplicated"], any(true))
	equal(t, s.count("job.created"), 9)
	if strings.Contains(s.stored(), "netlify-token") || strings.Contains(s.logged.String(), "netlify-token") {
		t.Error("Netlify's token is stored")
	}
}

func TestADeployHookTestsOnlyDeploymentsThatSucceeded(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	_, hook := s.hook(key, withURL)
	_, bare := s.hook(key, "")
	head := s.written()
	for _, c := range []struct {
		name, from, to string
		headers        []string
	}{
		{"github", "", "", []string{"X-GitHub-Event", "ping"}},
		{"github", `"state":"success"`, `"state":"in_progress"`, []string{"X-GitHub-Event", "deployment_status"}},
		{"vercel", "deployment.succeeded", "deployment.error", nil},
		{"netlify", `"state":"ready"`, `"state":"building"`, []string{"X-Netlify-Event", "deploy_building"}},
		{"render", "succeeded", "failed", []string{"Webhook-Id", "msg_1"}},
		{"railway", "SUCCESS", "CRASHED", nil},
		{"railway-new", "SUCCESS", "FAILED", nil},
		{"gitlab", `"status":"success"`, `"status":"running"`, []string{"X-Gitlab-Event", "Deployment Hook"}},
		{"gitlab", "", "", []string{"X-Gitlab-Event", "Pipeline Hook"}},
		{"heroku", `"status":"succeeded"`, `"status":"failed"`, []string{"Heroku-Webhook-Id", "h1"}},
		{"heroku", `"action":"update"`, `"action":"create"`, nil},
	} {
		body := strings.Replace(platformBody(t, c.name), c.from, c.to, 1)
		ignored := s.call("", "POST", hook, body, c.headers...).want(http.StatusAccepted)
		equal(t, ignored["ignored"], any(true))
		if ignored["reason"] == "" {
			t.Errorf("%s: no reason", c.name)
		}
	}
	// A message of another program buys no test.
	for _, body := range []string{
		`{"text":"x"}`, `{"Type":"SubscriptionConfirmation","TopicArn":"arn","SubscribeURL":"https://sns.example.com/"}`,
		`{"text":"Hello World! This is a test message."}`, `{"name":"Deployment","data":{"event":"EVENT_DEPLOYMENT_SUCCESS"},"ts":1}`,
		`{"type":"VolumeAlert","environment":{"id":"e1","name":"production"},"severity":"WARNING"}`,
		`{"type":"VolumeAlert.triggered","details":{},"resource":{"environment":{"id":"e1"}}}`, `{"ref":"refs/heads/main","commits":[]}`,
		`{"url":{"href":"https://a.example.com/"}}`, `{"zen":"Keep it simple."}`, `{"environment":["a"],"URL":"https://a.example.com/"}`,
	} {
		equal(t, s.call("", "POST", hook, body).want(http.StatusAccepted)["ignored"], any(true))
	}
	equal(t, s.call("", "POST", hook, "payload=%7B%7D", "X-GitHub-Event", "ping", "Content-Type", "application/x-www-form-urlencoded").Code, http.StatusAccepted)
	equal(t, s.call("", "POST", bare, platformBody(t, "railway")).paths(), []string{"url"})
	private := strings.Replace(platformBody(t, "vercel"), "shop-7.vercel.app", "10.0.0.1", 1)
	equal(t, s.call("", "POST", hook, private).paths(), []string{"payload.deployment.url"})
	s.call("", "POST", "/v1/hooks/deploy/qh_unknown", platformBody(t, "vercel")).refused(http.StatusNotFound, domain.CodeNotFound)
	equal(t, s.written(), head)
}

// The secret that opens a protected deployment is the claimant's alone.
func TestTheBypassOfAProtectedDeploymentIsSealed(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	_, hook := s.hook(key, withURL)
	made := s.call("", "POST", hook+"?x-vercel-protection-bypass=open-sesame", platformBody(t, "vercel"))
	id, _ := made.want(http.StatusCreated)["jobId"].(string)
	for what, text := range map[string]string{
		"answer": made.Body.String(), "job": s.call(key, "GET", "/v1/jobs/"+id, "").Body.String(), "log": s.stored(), "words": s.logged.String(),
	} {
		if strings.Contains(text, "open-sesame") {
			t.Errorf("the %s shows the secret: %s", what, text)
		}
	}
	claim := s.call(s.checker(), "POST", "/v1/checker/claims", `{"jobId":"`+id+`"}`).want(http.StatusCreated)
	brief, _ := claim["brief"].(map[string]any)
	if told, _ := brief["accessInstructions"].(string); !strings.Contains(told, "x-vercel-protection-bypass=open-sesame") {
		t.Errorf("the claimant is told %q", told)
	}
}

package dashboard_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/internal/testing/pagetest"
)

// An owner who has just proved who they are sees the deploy hook and replaces
// it; the one of before opens nothing then.
func TestADeployHookIsShownAndReplacedBehindAProof(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "Shop", DefaultURL: new("https://shop.example.com")})
	w.Shown(project.Position, err)
	path := "/dashboard/projects/" + project.ProjectID + "/hook"
	hookIn := func(got pagetest.Response) string {
		t.Helper()
		found := regexp.MustCompile(`<code id="hook">[^<]*(/v1/hooks/deploy/[^<]+)</code>`).FindStringSubmatch(got.Body)
		if got.Status != 200 || found == nil || got.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("no hook is shown: %d", got.Status)
		}
		return found[1]
	}
	if got := w.Call(owner, "GET", path, nil); strings.Contains(got.Body, "This project has no address") {
		t.Error("a project with an address is said to have none")
	}
	bare, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "Bare"})
	w.Shown(bare.Position, err)
	if got := w.Call(owner, "GET", "/dashboard/projects/"+bare.ProjectID+"/hook", nil); !strings.Contains(got.Body, "This project has no address and no earlier test.") ||
		!strings.Contains(got.Body, `-d "{\&#34;url\&#34;`) && !strings.Contains(got.Body, `-d "{\"url\": `) {
		t.Error("a project without an address does not say so")
	}
	// The first test lends its address, on the page and in a pipeline.
	bareHook := "/v1/hooks/deploy/" + bare.HookToken
	if got := w.Send(guest{}, "POST", bareHook, strings.NewReader(`{}`), "Content-Type", "application/json"); got.Status != 400 ||
		!strings.Contains(got.Body, "no test to take one from") {
		t.Errorf("a deploy without an address: %d %s", got.Status, got.Body)
	}
	if got := w.Send(guest{}, "POST", bareHook, strings.NewReader(`{"url": "https://bare.example.com"}`), "Content-Type", "application/json"); got.Status != 201 {
		t.Errorf("a deploy with an address: %d %s", got.Status, got.Body)
	}
	if got := w.Call(owner, "GET", "/dashboard/projects/"+bare.ProjectID+"/hook", nil); !strings.Contains(got.Body, "https://bare.example.com, the address of the first test, is tested") ||
		strings.Contains(got.Body, "This project has no address") {
		t.Error("the page does not tell of the first test's address")
	}
	if got := w.Send(guest{}, "POST", bareHook, strings.NewReader(`{"commitSha": "b2"}`), "Content-Type", "application/json"); got.Status != 201 {
		t.Errorf("a deploy by the first test's address: %d %s", got.Status, got.Body)
	} else if made := w.Call(owner, "GET", "/dashboard/jobs", nil); strings.Count(made.Body, "bare.example.com") < 2 {
		t.Error("the first test's address was not tested")
	}
	deploy := func(hook, commit string) int {
		t.Helper()
		return w.Send(guest{}, "POST", hook, strings.NewReader(`{"commitSha": "`+commit+`"}`), "Content-Type", "application/json").Status
	}
	first := hookIn(w.Call(owner, "GET", path, nil))
	if first != "/v1/hooks/deploy/"+project.HookToken {
		t.Error("it is not the hook that the project was made with")
	}
	if got := deploy(first, "a1"); got != 201 {
		t.Errorf("a deploy: %d", got)
	}
	form := url.Values{"command": {uuid.NewString()}}
	second := hookIn(w.Call(owner, "POST", path+"/rotate", form))
	if again := hookIn(w.Call(owner, "POST", path+"/rotate", form)); second == first || again != second {
		t.Error("the same form replaced it twice, or never")
	}
	if shown := hookIn(w.Call(owner, "GET", path, nil)); shown != second {
		t.Error("the page shows another one")
	}
	if got := deploy(first, "a2"); got != 404 {
		t.Errorf("by the hook of before: %d", got)
	}
	if got := deploy(second, "a2"); got != 201 {
		t.Errorf("by the new hook: %d", got)
	}
	sign := func(scheme, secret string) pagetest.Response {
		return w.Call(owner, "POST", path+"/signature", url.Values{"scheme": {scheme}, "secret": {secret}})
	}
	if got := sign("gitea", "canary-secret"); got.Status != 422 || strings.Contains(got.Body, "canary") {
		t.Errorf("an unknown platform: %d", got.Status)
	}
	if got := sign("vercel", "canary-secret"); got.Status != 303 {
		t.Errorf("a signature: %d", got.Status)
	}
	if got := w.Call(owner, "GET", path, nil); !strings.Contains(got.Body, "Only calls that Vercel has signed start a test.") || strings.Contains(got.Body, "canary") {
		t.Error("the page does not tell of the signature")
	}
	if got := deploy(second, "a3"); got != 401 {
		t.Errorf("without the signature: %d", got)
	}
	w.Call(owner, "POST", path+"/signature", url.Values{"remove": {"1"}})
	if got := deploy(second, "a3"); got != 201 {
		t.Errorf("once none is needed: %d", got)
	}
	w.Prove(owner, "1 hour")
	for method, to := range map[string]string{"GET": path, "POST": path + "/rotate"} {
		var form url.Values
		if method == "POST" {
			form = url.Values{}
		}
		if got := w.Call(owner, method, to, form); got.Status != 303 || !strings.HasPrefix(got.Header.Get("Location"), "/signin/confirm") {
			t.Errorf("%s without a fresh proof: %d", method, got.Status)
		}
	}
}

// The form says what a call of the hook with this body would do; it tests and charges
// nothing.
func TestTheHooksPageSaysWhatABodyWouldDo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "Shop", DefaultURL: new("https://shop.example.com")})
	w.Shown(project.Position, err)
	path := "/dashboard/projects/" + project.ProjectID + "/hook"
	for _, c := range []struct {
		platform, body string
		status         int
		says           string
	}{
		{"", `{"commitSha": "c1"}`, 200, `It would test https://shop.example.com for 5 credits.`},
		{"", ``, 200, `It would test https://shop.example.com`},
		{"", `{"text": "x"}`, 200, `<strong>Nothing would be tested:</strong> the body is no deployment of a platform`},
		{"gitlab", `{"status": "running", "deployment_id": 1}`, 200, `<strong>Nothing would be tested:</strong>`},
		{"gitlab", `{"status": "success", "deployment_id": 7, "environment_external_url": "https://stage.example.com"}`, 200, `It would test https://stage.example.com`},
		{"", `{"commitSha": `, 422, `must be valid JSON`},
		{"", `{"url": "http://127.0.0.1/"}`, 422, `private or reserved`},
	} {
		got := w.Call(owner, "POST", path+"/try", url.Values{"platform": {c.platform}, "body": {c.body}})
		if got.Status != c.status || !strings.Contains(got.Body, c.says) {
			t.Errorf("%s %s: %d, and not %q", c.platform, c.body, got.Status, c.says)
		}
	}
	if got := w.Call(owner, "POST", path+"/try", url.Values{"platform": {"gitlab"}, "body": {`{"status": "</textarea>"}`}}); !strings.Contains(got.Body, `{&#34;status&#34;: &#34;&lt;/textarea&gt;&#34;}</textarea>`) ||
		!strings.Contains(got.Body, `<option value="gitlab" selected>`) {
		t.Error("the form does not keep what was tried")
	}
	if got := w.Call(owner, "GET", "/dashboard/jobs", nil); strings.Contains(got.Body, "example.com") {
		t.Error("a trial started a test")
	}
	w.Send(guest{}, "POST", "/v1/hooks/deploy/"+project.HookToken, strings.NewReader(`{"commitSha": "c1"}`), "Content-Type", "application/json")
	if got := w.Call(owner, "POST", path+"/try", url.Values{"body": {`{"commitSha": "c1"}`}}); !strings.Contains(got.Body, "an earlier call led to this test") ||
		!strings.Contains(got.Body, ">Open that test</a>") {
		t.Error("a trial does not name the commit's own test")
	}
}

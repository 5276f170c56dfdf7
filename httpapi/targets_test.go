package httpapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/httpapi/input"
	"humanqa/internal/guard"
	"humanqa/internal/testing/must"
	"humanqa/projections/people"
)

// testsOf are all calls that name a URL under test, with it in the body and the
// path at which it is refused; key is of an account of its own.
func (s *service) testsOf(key, url string) map[string]func(*API) (r result, path string) {
	s.t.Helper()
	projectID, hook := s.hook(key, "")
	call := func(method, target, body, path string) func(*API) (result, string) {
		return func(a *API) (result, string) {
			other := *s
			other.API = a
			return other.call(key, method, target, strings.ReplaceAll(body, "$URL", url)), path
		}
	}
	job := `{"url":"$URL","title":"t","description":"d","jobType":"General QA"}`
	return map[string]func(*API) (result, string){
		"job":         call("POST", "/v1/jobs", job, "url"),
		"estimate":    call("POST", "/v1/estimate", job, "url"),
		"bulk":        call("POST", "/v1/jobs/bulk", `{"jobs":[`+aJob+","+job+`]}`, "jobs[1].url"),
		"hosted test": call("POST", "/v1/hosted/test", `{"url":"$URL"}`, "url"),
		"session":     call("POST", "/v1/hosted/sessions", `{"url":"$URL","slots":[{},{}]}`, "url"),
		"project":     call("POST", "/v1/projects", `{"name":"p","defaultUrl":"$URL"}`, "defaultUrl"),
		"setting":     call("PATCH", "/v1/projects/"+projectID, `{"defaultUrl":"$URL"}`, "defaultUrl"),
		"deploy":      call("POST", hook, `{"url":"$URL"}`, "url"),
	}
}

// ownPool has the account's tests kept to its own checkers.
func (s *service) ownPool(accountID, of string) {
	s.t.Helper()
	poolID, at, err := s.commands.CreatePool(s.t.Context(), operator(uuid.New()), "staff", of)
	s.visible(at, err)
	at, err = s.commands.ChoosePool(s.t.Context(), operator(uuid.New()), accountID, poolID)
	s.visible(at, err)
}

func TestAPrivateHostIsTestedWhereACheckerReachesIt(t *testing.T) {
	t.Parallel()
	s := shared(t)
	node := func(change func(*Deps)) *API {
		deps := s.deps
		change(&deps)
		return New(deps)
	}
	targets, err := guard.ParseTargets("127.0.0.0/8, staging.internal")
	must.NoError(t, err)
	allowing := node(func(d *Deps) { d.Targets = targets })
	_, plain := s.account(1000)
	sandboxID := s.parts.Account(1000, true)
	ownID, own := s.account(1000)
	s.ownPool(ownID, ownID)
	sharedID, shared := s.account(1000)
	s.ownPool(sharedID, "") // to anybody's pool: its checkers are anywhere

	const localhost, intranet, reserved = "http://localhost:3000/", "http://shop.staging.internal/", "http://169.254.169.254/"
	for name, c := range map[string]struct {
		node *API
		key  string
		url  string
		ok   bool
	}{
		"any account":                 {s.API, plain, localhost, false},
		"somebody else's pool":        {s.API, shared, intranet, false},
		"a sandbox":                   {s.API, s.key(sandboxID, command.IssueKey{Scope: account.ScopeFull}), localhost, true},
		"an account with its own":     {s.API, own, intranet, true},
		"what is reserved, though":    {s.API, own, reserved, false},
		"a demo":                      {node(func(d *Deps) { d.PrivateTargets = true }), plain, localhost, true},
		"what the operator lists":     {allowing, plain, "http://127.0.0.1:3000/", true},
		"and by its name":             {allowing, plain, intranet, true},
		"but not what is not listed":  {allowing, plain, "http://10.0.0.1/", false},
		"an address is one, in hex 6": {allowing, plain, "http://[fd00::1]/", false},
	} {
		for call, do := range s.testsOf(c.key, c.url) {
			r, path := do(c.node)
			if c.ok {
				if r.Code >= 300 {
					t.Errorf("%s: %s: %d %s", name, call, r.Code, r.Body)
				}
				continue
			}
			body := r.refused(http.StatusBadRequest, domain.CodeInvalidRequest)
			equal(t, r.paths(), []string{path})
			if hint := fmt.Sprint(body["hint"]); c.url != reserved && hint != input.PrivateHint {
				t.Errorf("%s: %s: the hint is %q", name, call, hint)
			}
		}
	}

	// What the service itself fetches does not depend on who asks.
	review := strings.ReplaceAll(strings.Replace(aJob, "Payment Flow", "AI Review", 1), "https://example.com/", "http://127.0.0.1:3000/")
	body := s.call(own, "POST", "/v1/jobs", review).refused(http.StatusBadRequest, domain.CodeInvalidRequest)
	equal(t, body["hint"], any(input.ReviewHint))
	s.call(own, "POST", "/v1/hosted/test", `{"url":"http://127.0.0.1:3000/","jobType":"ai_review"}`).refused(http.StatusBadRequest, domain.CodeInvalidRequest)
	other := *s
	other.API = allowing
	other.call(plain, "POST", "/v1/jobs", review).want(http.StatusCreated)

	// A listed host is not refused because it comes behind one that is.
	at := func(host string) string { return strings.Replace(aJob, "https://example.com/", host, 1) }
	r := other.call(plain, "POST", "/v1/jobs/bulk", `{"jobs":[`+at("http://10.0.0.1/")+","+at("http://127.0.0.1:3000/")+`]}`)
	r.refused(http.StatusBadRequest, domain.CodeInvalidRequest)
	equal(t, r.paths(), []string{"jobs[0].url"})
}

// What an account was once allowed to test is looked at again when it is tested.
func TestAPrivateHostIsTestedNoMoreOnceNoCheckerReachesIt(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(1000)
	s.ownPool(accountID, accountID)
	_, hook := s.hook(key, `,"defaultUrl":"http://localhost:3000/"`)
	jobID := fmt.Sprint(s.call(key, "POST", "/v1/hosted/test", `{"url":"http://localhost:3000/"}`).want(http.StatusCreated)["jobId"])
	s.call(key, "POST", "/v1/jobs/"+jobID+"/retest", "").want(http.StatusCreated)
	s.call("", "POST", hook, "").want(http.StatusCreated)
	row, err := s.deps.Reads.Jobs.Job(t.Context(), accountID, jobID)
	must.NoError(t, err)
	of := people.Account{ID: accountID}
	must.NoError(t, s.Limits.StillAllowed(t.Context(), of, row.Outline))

	at, err := s.commands.ChoosePool(t.Context(), operator(uuid.New()), accountID, "")
	s.visible(at, err)
	for _, path := range []string{"/v1/jobs/" + jobID + "/retest", hook} {
		r := s.call(key, "POST", path, "")
		equal(t, r.refused(http.StatusBadRequest, domain.CodeInvalidRequest)["hint"], any(input.PrivateHint))
		equal(t, r.paths(), []string{"url"})
	}
	if err := s.Limits.StillAllowed(t.Context(), of, row.Outline); err == nil || !strings.Contains(err.Error(), "its own pool of checkers") {
		t.Errorf("the page says %v", err) // it shows no hint
	}
}

func TestAHostThatDoesNotResolveIsAWarning(t *testing.T) {
	t.Parallel()
	s := shared(t)
	deps := s.deps
	asked := map[string]int{}
	late := make(chan struct{})
	deps.Resolve = func(ctx context.Context, host string) error {
		asked[host]++ // one after the other: each answer waits for its own
		switch host {
		case "gone.example.com":
			return &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		case "broken.example.com":
			return &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
		case "late.example.com":
			<-late
			return &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return nil
	}
	s.API = New(deps)
	_, key := s.account(1000)
	warned := func(path, body string) any {
		return s.call(key, "POST", path, body).want(http.StatusCreated)["warnings"]
	}
	at := func(host string) string { return strings.ReplaceAll(aJob, "example.com", host) }
	gone := func(path string) any {
		return map[string]any{"path": path, "message": "the host does not resolve where this service runs; check its spelling"}
	}
	equal(t, warned("/v1/jobs", at("gone.example.com")), any([]any{gone("url")}))
	equal(t, warned("/v1/jobs", at("fine.example.com")), nil)
	equal(t, warned("/v1/jobs", at("broken.example.com")), nil)
	equal(t, warned("/v1/jobs", at("8.8.8.8")), nil)
	equal(t, warned("/v1/projects", `{"name":"p","defaultUrl":"https://gone.example.com/"}`), any([]any{gone("defaultUrl")}))
	equal(t, warned("/v1/jobs/bulk", `{"jobs":[`+at("fine.example.com")+`,`+at("gone.example.com")+`]}`), any([]any{gone("jobs[1].url")}))
	equal(t, asked, map[string]int{"gone.example.com": 1, "fine.example.com": 1, "broken.example.com": 1})
	equal(t, warned("/v1/jobs", at("late.example.com")), nil) // nobody waits for it
	close(late)
}

func TestWhatAWebhookLacksIsSaid(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	unused := func(paths ...string) any {
		var list []any
		for _, path := range paths {
			list = append(list, map[string]any{"path": path, "message": "was not used: the project has no webhook; send webhookUrl with it"})
		}
		return list
	}
	const secret, events, url = `"webhookSecret":"0123456789abcdef0123456789abcdef"`, `"subscribedWebhookEvents":["job.completed"]`, `"webhookUrl":"https://hooks.example.com/"`
	test := func(more string) map[string]any {
		return s.call(key, "POST", "/v1/hosted/test", `{"url":"https://example.com/",`+more+`}`).want(http.StatusCreated)
	}
	equal(t, test(secret + "," + events)["warnings"], unused("webhookSecret", "subscribedWebhookEvents"))
	session := s.call(key, "POST", "/v1/hosted/sessions", `{"url":"https://example.com/","slots":[{},{}],`+events+`}`).want(http.StatusCreated)
	equal(t, session["warnings"], unused("subscribedWebhookEvents"))
	project := s.call(key, "POST", "/v1/projects", `{"name":"p",`+events+`}`).want(http.StatusCreated)
	equal(t, project["warnings"], unused("subscribedWebhookEvents"))
	path := fmt.Sprint("/v1/projects/", project["projectId"])
	equal(t, s.call(key, "PATCH", path, `{`+events+`}`).want(http.StatusOK)["warnings"], unused("subscribedWebhookEvents"))

	own := any([]any{map[string]any{"path": "webhookSecret", "message": "was not used: the service makes the secret of a project, " +
		"and the dashboard shows it; POST /v1/hosted/test takes one of your own"}})
	equal(t, s.call(key, "POST", "/v1/projects", `{"name":"q",`+secret+`}`).want(http.StatusCreated)["warnings"], own)
	equal(t, s.call(key, "POST", "/v1/projects", `{"name":"r",`+url+`,`+secret+`}`).want(http.StatusCreated)["warnings"], own)
	equal(t, s.call(key, "PATCH", path, `{`+secret+`}`).want(http.StatusOK)["warnings"], own)

	equal(t, test(secret + "," + events + "," + url)["warnings"], nil)
	equal(t, test(secret + "," + events)["warnings"], nil) // the project has a webhook by now
	equal(t, s.call(key, "PATCH", path, `{`+url+`,`+events+`}`).want(http.StatusOK)["warnings"], nil)
	equal(t, s.call(key, "PATCH", path, `{`+events+`}`).want(http.StatusOK)["warnings"], nil)
}

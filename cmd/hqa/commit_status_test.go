package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"humanqa/cmd/humanqa/service"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// statusToken is the canary: nothing but the code host ever sees it.
const statusToken = "canary-statuses-only"

// codeHosts answers the calls of GitHub's and GitLab's API that set commit statuses.
type codeHosts struct {
	*httptest.Server
	mu    sync.Mutex
	code  int                            // of every answer; 0: they are taken
	asked int                            // how many calls came
	got   map[string][]map[string]string // by the commit
}

func newCodeHosts(t *testing.T) *codeHosts {
	h := &codeHosts{got: map[string][]map[string]string{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.asked++
		if h.code != 0 {
			w.WriteHeader(h.code)
			return
		}
		body := map[string]string{}
		_ = json.NewDecoder(r.Body).Decode(&body) // an empty one has no state
		prefix, commit, _ := strings.Cut(r.URL.EscapedPath(), "/statuses/")
		gitHub := prefix == "/api/v3/repos/acme/shop" && r.Header.Get("Authorization") == "Bearer "+statusToken
		gitLab := prefix == "/api/v4/projects/acme%2Fshop" && r.Header.Get("Private-Token") == statusToken
		switch {
		case r.Method != http.MethodPost, !gitHub && !gitLab:
			w.WriteHeader(http.StatusNotFound)
		default:
			h.got[commit] = append(h.got[commit], body)
			w.WriteHeader(http.StatusCreated)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *codeHosts) answer(code int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.code, h.asked = code, 0
}

func (h *codeHosts) refused() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked > 0
}

// last is the newest status of the commit.
func (h *codeHosts) last(commit string) map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if all := h.got[commit]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// becomes waits until the commit has the state.
func (h *codeHosts) becomes(t *testing.T, commit, state string) map[string]string {
	t.Helper()
	eventually.True(t, "the commit is "+state, func() bool { return h.last(commit)["state"] == state })
	return h.last(commit)
}

// kept is how many tokens the service keeps.
func (s *qa) keptTokens() int {
	return operate(s, func(ctx context.Context, core *service.Core) (n int, err error) {
		return n, core.DB.GetContext(ctx, &n, "SELECT count(*) FROM vault.held")
	})
}

func (s *qa) forgotten(t *testing.T) {
	t.Helper()
	eventually.True(t, "the token is forgotten", func() bool { return s.keptTokens() == 0 })
}

// newAction is the action's script in a directory of its own, for a service and an account.
func newAction(t *testing.T, s *qa, key, api string) *action {
	a := &action{t: t, dir: t.TempDir()}
	a.environ = []string{
		runAsClient + "=1", "HQA_BINARY=" + os.Args[0], "HQA_URL=" + s.url, "HQA_API_KEY=" + key, "HOME=" + a.dir,
		"GITHUB_ACTIONS=true", "GITHUB_REPOSITORY=acme/shop", "GITHUB_SERVER_URL=https://github.example", "GITHUB_API_URL=" + api,
		"GITHUB_TOKEN=gh-token", "GITHUB_EVENT_PATH=" + filepath.Join(a.dir, "event.json"), "GITHUB_SHA=0123456789abcdef",
		"GITHUB_WORKFLOW=ci", "GITHUB_JOB=qa", "GITHUB_ACTION=human", "GITHUB_REF=refs/pull/7/merge",
		"GITHUB_OUTPUT=" + filepath.Join(a.dir, "output"), "GITHUB_STEP_SUMMARY=" + filepath.Join(a.dir, "summary"),
		"INPUT_URL=https://example.com", "INPUT_FEATURE=sign in", "INPUT_FILES=", "INPUT_CHANGED=", "INPUT_FAIL_ON=minor",
		"INPUT_MAX_CREDITS=5", "INPUT_TIMEOUT=1h", "INPUT_WAIT=true", "INPUT_COMMENT=true", "INPUT_STATUS_NAME=Human QA", "INPUT_REFRESH=false",
	}
	return a
}

// head writes the event of a pull request with this newest commit.
func (a *action) head(digit string) (commit string) {
	commit = strings.Repeat(digit, 40)
	event := fmt.Sprintf(`{"pull_request":{"number":7,"head":{"sha":"%s"}}}`, commit)
	must.NoError(a.t, os.WriteFile(filepath.Join(a.dir, "event.json"), []byte(event), 0o600))
	return commit
}

// ends runs the step to its end and gives the id of its job.
func (a *action) ends(run string, want int, more ...string) (jobID string) {
	a.t.Helper()
	step, out := a.start(run, more...)
	_ = step.Wait() // the code says it
	if got := step.ProcessState.ExitCode(); got != want {
		a.t.Fatalf("exit %d, want %d: %s", got, want, out)
	}
	lines := strings.Split(a.file("output"), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "job-id<<") {
			return lines[i+1]
		}
	}
	return ""
}

// detachedStep is the mode detached of the action: the step ends, and the service tells the
// commit, through a code host that is down, a kill, a newer commit and a refusal.
func detachedStep(t *testing.T, s *qa) {
	key := s.account(100, true)
	a := newAction(t, s, key, s.hosts.URL+"/api/v3")
	detached := []string{"INPUT_WAIT=detached", "INPUT_COMMENT=false", "HQA_STATUS_TOKEN=" + statusToken}
	commit := a.head("a")
	a.ends("1", exitUsage, "INPUT_WAIT=detached", "INPUT_COMMENT=false") // the workflow's own token would be dead by then

	s.hosts.answer(http.StatusBadGateway)
	t.Cleanup(func() { s.hosts.answer(0) })
	first := a.ends("1", exitPassed, detached...)
	if got := a.file("output"); !strings.Contains(got, "\nrunning\n") {
		t.Errorf("outputs: %s", got)
	}
	eventually.True(t, "the code host is asked", s.hosts.refused)
	if s.keptTokens() != 1 {
		t.Error("the token is not kept")
	}
	s.kill()
	s.start()
	s.hosts.answer(0)
	told := s.hosts.becomes(t, commit, "pending")
	if told["context"] != "Human QA" || told["target_url"] != s.url+"/dashboard/jobs/"+first {
		t.Errorf("told: %v", told)
	}
	if again := a.ends("1", exitPassed, append(detached, "HQA_STATUS_TOKEN=another")...); again != first || s.credits(key) != 95 {
		t.Errorf("a repeat is the job %s, %d credits are left", again, s.credits(key))
	}
	s.play(key, first, "item-1")
	if told := s.hosts.becomes(t, commit, "failure"); told["description"] != "1 failure in 1 test." {
		t.Errorf("told: %v", told)
	}
	s.forgotten(t)

	old := a.head("b")
	second := a.ends("2", exitPassed, detached...)
	s.hosts.becomes(t, old, "pending")
	commit = a.head("c")
	third := a.ends("3", exitPassed, detached...) // a newer commit takes its place
	if told := s.hosts.becomes(t, old, "error"); told["description"] != "A newer commit took the place of this one." {
		t.Errorf("told: %v", told)
	}
	eventually.True(t, "the older test is cancelled and its credits are back", func() bool {
		return s.call("GET", "/v1/jobs/"+second, key, nil)["cancelReason"] == "superseded" && s.credits(key) == 90
	})
	s.play(key, third)
	s.hosts.becomes(t, commit, "success")
	s.forgotten(t)

	s.hosts.answer(http.StatusForbidden)
	commit = a.head("d")
	fourth := a.ends("4", exitPassed, detached...)
	shown := func() map[string]any {
		status, _ := s.call("GET", "/v1/jobs/"+fourth, key, nil)["commitStatus"].(map[string]any)
		return status
	}
	eventually.True(t, "the refusal shows", func() bool { return shown()["error"] != nil })
	if got := fmt.Sprint(shown()); !strings.Contains(got, "may not write commit statuses") || !strings.Contains(got, commit) {
		t.Errorf("shown: %s", got)
	}
	s.forgotten(t)
	s.hosts.answer(0)
	s.play(key, fourth) // or the next submission would cancel it, and refund it, at a time of its own

	// A change that touches no test: the required check does not wait for ever.
	qa := filepath.Join(a.dir, "qa")
	must.NoError(t, os.Mkdir(qa, 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(qa, "pay.md"), []byte("---\npath: /pay\npaths: [pay/**]\n---\n# Pay\n\nPay.\n"), 0o600))
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "qa"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "tests"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = a.dir
		must.NoError(t, cmd.Run())
	}
	commit = a.head("e")
	left := s.credits(key)
	a.ends("5", exitPassed, append(detached, "INPUT_FEATURE=", "INPUT_CHANGED=main")...)
	s.hosts.becomes(t, commit, "success")
	// Two tests have one verdict.
	must.NoError(t, os.WriteFile(filepath.Join(qa, "home.md"), []byte("---\npath: /\n---\n# Home\n\nLook.\n\n- [ ] The page opens\n"), 0o600))
	must.NoError(t, os.WriteFile(filepath.Join(qa, "pay.md"), []byte("---\npath: /pay\n---\n# Pay\n\nPay.\n\n- [ ] minor: Pay\n"), 0o600))
	commit = a.head("f")
	a.ends("6", exitPassed, append(detached, "INPUT_FEATURE=", "INPUT_FILES=qa/home.md qa/pay.md", "INPUT_MAX_CREDITS=10", "INPUT_FAIL_ON=major")...)
	if s.credits(key) != left-10 {
		t.Errorf("%d credits are left of %d", s.credits(key), left)
	}
	var results outcome
	for line := range strings.Lines(a.file("output")) {
		if json.Unmarshal([]byte(line), &results) == nil && len(results.Jobs) > 0 {
			break
		}
	}
	if len(results.Jobs) != 2 {
		t.Fatalf("outputs: %s", a.file("output"))
	}
	s.hosts.becomes(t, commit, "pending")
	s.play(key, results.Jobs[1].JobID, "item-1") // minor, which does not count here
	if s.hosts.last(commit)["state"] != "pending" {
		t.Error("one of two tests is a verdict")
	}
	s.play(key, results.Jobs[0].JobID)
	if told := s.hosts.becomes(t, commit, "success"); told["description"] != "2 tests passed." || !strings.Contains(told["target_url"], "/dashboard/batches/") {
		t.Errorf("told: %v", told)
	}
	s.forgotten(t)

	for _, path := range []string{"/v1/jobs/" + first, "/v1/jobs/" + first + "/events", "/v1/jobs/" + first + "/report", "/v1/events?limit=100", "/v1/jobs?limit=100"} {
		if got := fmt.Sprint(s.call("GET", path, key, nil)); strings.Contains(got, statusToken) {
			t.Errorf("%s shows the token", path)
		}
	}
	if strings.Contains(s.process.Said(), statusToken) {
		t.Error("the service's log shows the token")
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// pullRequestStub answers the calls of GitHub's API that the step makes.
type pullRequestStub struct {
	*httptest.Server
	mu       sync.Mutex
	comments []string // the step's own
	forged   string   // a stranger's
	head     string   // the newest commit of the pull request
	written  int
	refuse   bool
}

func newPullRequest(t *testing.T) *pullRequestStub {
	p := &pullRequestStub{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		var in struct{ Body string }
		if r.Header.Get("Authorization") != "Bearer gh-token" || p.refuse {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_ = json.NewDecoder(r.Body).Decode(&in) // a GET has none
		const repository = "/repos/acme/shop"
		switch {
		case r.Method == http.MethodGet && r.URL.Path == repository+"/issues/7/comments":
			person := map[string]string{"type": "User"}
			list := []map[string]any{
				{"id": 1, "body": "a person's words", "user": person, "author_association": "MEMBER"},
				{"id": 2, "body": p.forged, "user": person, "author_association": "NONE"},
			}
			for i, body := range p.comments {
				list = append(list, map[string]any{"id": 100 + i, "body": body, "user": map[string]string{"type": "Bot"}, "author_association": "NONE"})
			}
			_ = json.NewEncoder(w).Encode(list)
		case r.Method == http.MethodPost && r.URL.Path == repository+"/issues/7/comments":
			p.comments, p.written = append(p.comments, in.Body), p.written+1
			w.WriteHeader(http.StatusCreated)
		case r.Method == http.MethodPatch && r.URL.Path == repository+"/issues/comments/100":
			p.comments[0], p.written = in.Body, p.written+1
		case r.Method == http.MethodGet && r.URL.Path == repository+"/commits/"+p.head+"/pulls":
			_ = json.NewEncoder(w).Encode([]map[string]int{{"number": 7}})
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *pullRequestStub) comment(t *testing.T) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.comments) != 1 {
		t.Fatalf("%d comments", len(p.comments))
	}
	return p.comments[0]
}

// action is the action's own script under GitHub's variables.
type action struct {
	t       *testing.T
	dir     string
	environ []string
}

func (a *action) start(run string, more ...string) (step *exec.Cmd, out *strings.Builder) {
	a.t.Helper()
	script, err := filepath.Abs("../../integrations/github/step.sh")
	must.NoError(a.t, err)
	for _, file := range []string{"output", "summary"} {
		must.NoError(a.t, os.RemoveAll(filepath.Join(a.dir, file)))
	}
	step, out = exec.CommandContext(a.t.Context(), script), &strings.Builder{}
	step.Dir, step.Stdout, step.Stderr = a.dir, out, os.Stderr
	step.Env = append(append(append(os.Environ(), a.environ...), "GITHUB_RUN_ID="+run, "GITHUB_RUN_NUMBER="+run), more...)
	must.NoError(a.t, step.Start())
	return step, out
}

func (a *action) file(name string) string {
	text, err := os.ReadFile(filepath.Join(a.dir, name))
	if err != nil {
		return ""
	}
	return string(text)
}

// latest is the account's newest test that no checker has begun.
func (s *qa) latest(key string) (id string) {
	s.t.Helper()
	eventually.True(s.t, "the test is submitted", func() bool {
		jobs, _ := s.call("GET", "/v1/jobs?limit=1&status=pending", key, nil)["jobs"].([]any)
		if len(jobs) > 0 {
			id, _ = jobs[0].(map[string]any)["id"].(string)
		}
		return id != ""
	})
	return id
}

// githubStep is the action's script against a service and a stub of GitHub: each mode, each
// exit, the comment after three runs, a run that is superseded.
func githubStep(t *testing.T, s *qa) {
	key := s.account(100, true)
	github := newPullRequest(t)
	a := newAction(t, s, key, github.URL)
	a.head("0")
	latest := func() (id string) { return s.latest(key) }
	exits := func(step *exec.Cmd, out *strings.Builder, want int) {
		t.Helper()
		_ = step.Wait() // the code says it
		if got := step.ProcessState.ExitCode(); got != want {
			t.Fatalf("exit %d, want %d: %s", got, want, out)
		}
	}

	step, out := a.start("1")
	first := latest()
	s.play(key, first, "item-1")
	exits(step, out, exitFailures)
	if !strings.Contains(out.String(), "::error title=Human QA (") {
		t.Errorf("no annotation: %s", out)
	}
	if got := a.file("output"); !strings.Contains(got, "\nfailed\n") || !strings.Contains(got, "\n"+first+"\n") || !strings.Contains(got, "\nfalse\n") {
		t.Errorf("outputs: %s", got)
	}
	if got := a.file("summary"); !strings.Contains(got, "### Human QA: failures") || !strings.Contains(got, "[data ") {
		t.Errorf("summary: %s", got)
	}
	if got := github.comment(t); !strings.Contains(got, "### Human QA: failures") || strings.Count(got, "<!-- hqa-run ") != 1 {
		t.Errorf("comment: %s", got)
	}
	const note = "The button does nothing."
	for name, text := range map[string]string{"comment": github.comment(t), "summary": a.file("summary"), "annotation": out.String()} {
		if !strings.Contains(text, note) || strings.Contains(outside(text), note) {
			t.Errorf("%s: a tester's note stands outside of a fence, or nowhere: %s", name, text)
		}
	}

	step, out = a.start("1") // the step repeated
	exits(step, out, exitFailures)
	if left := s.credits(key); left != 95 {
		t.Errorf("%d credits are left of 100 after one test and a repeat", left)
	}
	step, out = a.start("2")
	s.play(key, latest())
	exits(step, out, exitPassed)
	got := github.comment(t)
	if !strings.Contains(got, "### Human QA: passed") || strings.Count(got, "<!-- hqa-run ") != 3 || strings.Contains(got, "a person's words") {
		t.Errorf("comment after three runs: %s", got)
	}

	step, out = a.start("3") // a newer commit ends it
	latest()
	eventually.True(t, "it waits", func() bool { return strings.Contains(fmt.Sprint(a.file("output"), s.credits(key)), "85") })
	must.NoError(t, step.Process.Signal(syscall.SIGINT))
	exits(step, out, exitRunning)
	if left := s.credits(key); left != 90 {
		t.Errorf("%d credits are left of 100: the superseded run is not refunded", left)
	}
	step, out = a.start("8") // nobody can test it
	s.call("POST", "/v1/jobs/"+latest()+"/cancel", key, nil)
	exits(step, out, exitUntested)
	if got := a.file("output"); !strings.Contains(got, "\nuntested\n") || !strings.Contains(github.comment(t), "### Human QA: not tested") {
		t.Errorf("a cancelled test: %s %s", got, github.comment(t))
	}
	step, out = a.start("4", "INPUT_MAX_CREDITS=1")
	exits(step, out, exitRefused)
	step, out = a.start("5", "INPUT_FILES=qa/x.md")
	exits(step, out, exitUsage)
	github.mu.Lock()
	github.refuse = true
	github.mu.Unlock()
	step, out = a.start("6", "INPUT_WAIT=false") // no comment may be written: that is no verdict
	exits(step, out, exitPassed)
	if got := a.file("output"); !strings.Contains(got, "\nrunning\n") {
		t.Errorf("outputs: %s", got)
	}
}

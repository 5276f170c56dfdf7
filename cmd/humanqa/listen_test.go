package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/webhooks"
)

// listening is a "humanqa listen --json" that runs.
type listening struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func (p *program) listening(t *testing.T, args ...string) *listening {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
	t.Cleanup(cancel)
	l := &listening{t: t, cmd: p.command(ctx, append([]string{"--json", "listen"}, args...)...)}
	out, err := l.cmd.StdoutPipe()
	must.NoError(t, err)
	must.NoError(t, l.cmd.Start())
	l.lines = bufio.NewScanner(out)
	l.lines.Buffer(nil, 1<<20)
	var at struct{ URL string }
	l.next(&at)
	if !strings.HasPrefix(at.URL, "https://127.0.0.1:") {
		t.Fatalf("it listens at %q", at.URL)
	}
	return l
}

func (l *listening) next(into any) {
	l.t.Helper()
	if !l.lines.Scan() {
		l.t.Fatalf("listen ended: %v", l.lines.Err())
	}
	if err := json.Unmarshal(l.lines.Bytes(), into); err != nil {
		l.t.Fatalf("listen printed %q: %v", l.lines.Text(), err)
	}
}

// until gives the next delivery of that event, about what was triggered.
func (l *listening) until(event string, told triggered) heard {
	l.t.Helper()
	for {
		var h heard
		if l.next(&h); h.Event == event && told.isAbout(h) {
			return h
		}
	}
}

// isAbout says whether a delivery is of what was triggered. A loop's end names no
// job.
func (t triggered) isAbout(h heard) bool {
	switch {
	case t.DeliveryID != "":
		return h.DeliveryID == t.DeliveryID
	case t.Event == "loop_session.ended":
		return true
	}
	return strings.Contains(string(h.Body), `"`+t.JobID+t.SessionID+`"`)
}

func (l *listening) stop() {
	l.t.Helper()
	must.NoError(l.t, l.cmd.Process.Signal(syscall.SIGINT))
	began := time.Now()
	if _, err := io.Copy(io.Discard, nothingLeft{l.lines}); err != nil {
		l.t.Error(err)
	}
	if err := l.cmd.Wait(); err != nil {
		l.t.Errorf("listen: %v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		l.t.Errorf("it took %s to stop", took)
	}
}

// nothingLeft reads the lines to their end.
type nothingLeft struct{ *bufio.Scanner }

func (n nothingLeft) Read([]byte) (int, error) {
	if n.Scan() {
		return 0, nil
	}
	return 0, io.EOF
}

// Every event can be had in a sandbox, verified, and passed on byte for byte to a
// server on this machine; the project's webhook is given back at the end.
func everyEvent(t *testing.T, s *instance) {
	dir := s.inboxes()
	var box, live struct{ AccountID, APIKey string }
	s.cli(&box, "account", "create", "--name", "Box", "--sandbox", "--credits", "500")
	s.cli(&live, "account", "create", "--name", "Real", "--credits", "10")
	project, _ := s.call(http.StatusCreated, "POST", "/v1/projects", box.APIKey, map[string]string{"name": "Shop"}).field("projectId").(string)

	got := make(chan *http.Request, 100)
	bodies := make(chan []byte, 100)
	var status atomic.Int64
	status.Store(http.StatusAccepted)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is missing does not verify
		got <- r
		bodies <- body
		w.WriteHeader(int(status.Load()))
	}))
	defer app.Close()

	refused := func(says string, args ...string) {
		t.Helper()
		_, stderr, err := s.tryCLI(args...)
		if err == nil || !strings.Contains(stderr, says) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: %v %q, want %q", args, err, stderr, says)
		}
	}
	refused("has no webhook: humanqa listen --project gives it one", "trigger", "job.created", "--project", project)
	refused("there is no event job.dreamt: name one of job.ai_report_ready", "trigger", "job.dreamt", "--project", project)
	hooked := map[string]string{"name": "Live", "webhookUrl": "https://hooks.example.com/in"}
	theirs, _ := s.call(http.StatusCreated, "POST", "/v1/projects", live.APIKey, hooked).field("projectId").(string)
	refused("is no sandbox's", "trigger", "job.created", "--project", theirs)
	refused("goes to hooks.example.com", "listen", "--dir", dir, "--project", theirs)
	refused("exclude each other", "listen", "--hang", "--answer", "500")
	refused("must be a URL", "listen", "--forward-to", "localhost:3000")

	l := s.in(t).listening(t, "--dir", dir, "--project", project, "--forward-to", app.URL+"/hook")
	pointed := func(want bool) {
		t.Helper()
		eventually.True(t, "the webhook is the listener's, or nobody's", func() bool {
			return (s.call(http.StatusOK, "GET", "/v1/projects/"+project, box.APIKey, nil).field("webhookUrl") != nil) == want
		})
	}
	pointed(true)
	var secret struct{ WebhookSecret string }
	s.cli(&secret, "project", "secret", "--project", project)
	for _, event := range slices.Sorted(maps.Keys(stories)) {
		var told triggered
		s.cli(&told, "trigger", event, "--project", project)
		if told.Event != event || told.ProjectID != project || told.JobID+told.SessionID+told.DeliveryID == "" {
			t.Errorf("trigger printed %+v", told)
		}
		h := l.until(event, told)
		if !h.Verified || h.Problem != "" || h.Answered != http.StatusAccepted || !strings.HasPrefix(h.Forwarded, "passed on in ") {
			t.Errorf("%s: %+v", event, h)
		}
		for r := range got {
			body := <-bodies
			if err := webhooks.Verify([]byte(secret.WebhookSecret), r.Header, body, time.Now()); err != nil || r.URL.Path != "/hook" || r.Header.Get("User-Agent") != "Service-Webhook/1.0" {
				t.Errorf("%s was passed on with %v: %v", r.Header.Get(webhooks.EventHeader), r.Header, err)
			}
			if r.Header.Get(webhooks.DeliveryHeader) == h.DeliveryID {
				if string(body) != string(h.Body) {
					t.Errorf("passed on was %s, printed %s", body, h.Body)
				}
				break
			}
		}
	}
	// What the server says is what the service hears.
	status.Store(http.StatusTeapot)
	var told triggered
	s.cli(&told, "trigger", "webhook.test", "--project", project)
	if h := l.until("webhook.test", told); h.Answered != http.StatusTeapot {
		t.Errorf("the server's word became %+v", h)
	}
	app.Close()
	told = triggered{}
	s.cli(&told, "trigger", "webhook.test", "--project", project)
	if h := l.until("webhook.test", told); h.Answered != http.StatusBadGateway || !strings.Contains(h.Forwarded, "not passed on: ") {
		t.Errorf("a server that is away became %+v", h)
	}
	l.stop()
	pointed(false)
}

func listenerAnswers(t *testing.T, s *instance) {
	dir := s.inboxes()
	var box struct{ AccountID, APIKey string }
	s.cli(&box, "account", "create", "--name", "Box", "--sandbox")
	project, _ := s.call(http.StatusCreated, "POST", "/v1/projects", box.APIKey, map[string]string{"name": "Shop"}).field("projectId").(string)
	path := "/v1/projects/" + project
	send := func(l *listening) (heard, string) {
		t.Helper()
		eventually.True(t, "the webhook is the listener's", func() bool {
			return s.call(http.StatusOK, "GET", path, box.APIKey, nil).field("webhookUrl") != nil
		})
		var told triggered
		s.cli(&told, "trigger", "webhook.test", "--project", project)
		return l.until("webhook.test", told), told.DeliveryID
	}
	ended := func(id string) reply {
		t.Helper()
		var r reply
		eventually.True(t, "the attempt is over", func() bool {
			r = s.call(http.StatusOK, "GET", path+"/deliveries/"+id, box.APIKey, nil)
			return r.field("status") != "pending"
		})
		return r
	}
	l := s.in(t).listening(t, "--dir", dir, "--project", project, "--answer", "503")
	h, id := send(l)
	if r := ended(id); h.Answered != 503 || r.field("status") != "failed" || r.number("lastStatusCode") != 503 {
		t.Errorf("told to answer 503: %+v %s", h, r.body)
	}
	l.stop()

	l = s.in(t).listening(t, "--dir", dir, "--project", project, "--hang")
	h, id = send(l) // it is printed when it comes
	l.stop()        // and lets go of it
	if r := ended(id); h.Answered != 0 || r.field("status") == "delivered" || r.field("lastStatusCode") != nil {
		t.Errorf("told to hang: %+v %s", h, r.body)
	}
}

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"humanqa/domain/announce"
	"humanqa/internal/hqa/listen"
	"humanqa/internal/hqa/trigger"
	"humanqa/internal/signature"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// listener is a "hqa --json listen" that runs.
type listener struct {
	*launched
	place listen.Place
}

func (u *user) listening(s *qa, args ...string) listener {
	u.t.Helper()
	p := u.launch(append([]string{"--json", "listen", "--dir", s.certificates}, args...)...)
	l := listener{launched: p}
	must.NoError(u.t, json.Unmarshal([]byte(p.until(`"type":"listening"`)), &l.place))
	if !strings.HasPrefix(l.place.URL, "https://127.0.0.1:") {
		u.t.Fatalf("it listens at %q", l.place.URL)
	}
	return l
}

// delivery gives the next one of what was triggered. A loop's end names no job.
func (l listener) delivery(told trigger.Told) (h listen.Heard) {
	l.t.Helper()
	about := told.DeliveryID + told.SessionID
	if about == "" && told.Event != "loop_session.ended" {
		about = told.JobID
	}
	for {
		line := l.until(`"event":"` + told.Event + `"`)
		if strings.Contains(line, `"`+about) {
			must.NoError(l.t, json.Unmarshal([]byte(line), &h))
			return h
		}
	}
}

func (l listener) stop() {
	l.t.Helper()
	must.NoError(l.t, l.cmd.Process.Signal(syscall.SIGINT))
	if code := l.exit(); code != exitPassed {
		l.t.Errorf("a listener that was interrupted exits with %d", code)
	}
}

func (u *user) trigger(event, project string) (told trigger.Told) {
	u.t.Helper()
	must.NoError(u.t, json.Unmarshal([]byte(u.must(exitPassed, "--json", "trigger", event, "--project", project).out), &told))
	return told
}

// Every event can be had in a sandbox, verified, and passed on byte for byte to a server on
// this machine; the project's webhook is given back at the end.
func everyEvent(t *testing.T, s *qa) {
	u, live := s.user(t, s.account(500, true)), s.user(t, s.account(10, false))
	project, _ := s.call("POST", "/v1/projects", u.key(), map[string]any{"name": "Shop", "defaultUrl": "https://shop.example/"})["projectId"].(string)
	path := "/v1/projects/" + project

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

	refused := func(u *user, says string, args ...string) {
		t.Helper()
		if r := u.must(exitUsage, args...); !strings.Contains(r.err, says) || strings.Count(r.err, "\n") != 1 || r.out != "" {
			t.Errorf("hqa %v: %+v, want %q", args, r, says)
		}
	}
	refused(u, "has no webhook: hqa listen --project gives it one", "trigger", "job.created", "--project", project)
	refused(u, `there is no event "job.dreamt": name one of job.ai_report_ready`, "trigger", "job.dreamt", "--project", project)
	hooked := map[string]string{"name": "Live", "webhookUrl": "https://hooks.example.com/in"}
	theirs, _ := s.call("POST", "/v1/projects", live.key(), hooked)["projectId"].(string)
	refused(live, "is no sandbox's", "trigger", "job.created", "--project", theirs)
	refused(live, "goes to hooks.example.com", "listen", "--project", theirs)
	refused(u, "not found", "listen", "--project", theirs) // another account's
	refused(u, "not found", "trigger", "job.created", "--project", theirs)
	refused(u, "exclude each other", "listen", "--hang", "--answer", "500")
	refused(u, "must be a URL", "listen", "--forward-to", "localhost:3000")
	refused(u, "is not a loopback address", "listen", "--addr", "0.0.0.0:0")
	if left := s.credits(u.key()) + s.credits(live.key()); left != 510 {
		t.Errorf("%d credits are left", left)
	}

	l := u.listening(s, "--project", project, "--forward-to", app.URL+"/hook")
	webhook := func() any { return s.call("GET", path, u.key(), nil)["webhookUrl"] }
	pointed := func(want bool) {
		t.Helper()
		eventually.True(t, "the webhook is the listener's, or is cleared", func() bool { return (webhook() != nil) == want })
	}
	pointed(true)
	var secret []byte
	eventually.True(t, "the secret is there", func() bool {
		secret, _ = os.ReadFile(l.place.SecretFile)
		return len(secret) > 0
	})
	if info, err := os.Stat(l.place.SecretFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret's file: %v %v", info, err)
	}
	secret = []byte(strings.TrimSpace(string(secret)))
	published := []string{trigger.Test}
	for _, k := range announce.Kinds() {
		if !k.OfAccount && !k.Listed { // those are of no project
			published = append(published, k.Name)
		}
	}
	if slices.Sort(published); !slices.Equal(published, trigger.Events()) {
		t.Errorf("hqa triggers %v, and the service publishes %v", trigger.Events(), published)
	}
	for _, event := range published {
		told := u.trigger(event, project)
		if told.Event != event || told.ProjectID != project || told.JobID+told.SessionID+told.DeliveryID == "" {
			t.Errorf("trigger printed %+v", told)
		}
		h := l.delivery(told)
		if !h.Verified || h.Problem != "" || h.Answered != http.StatusAccepted || !strings.HasPrefix(h.Forwarded, "passed on in ") {
			t.Errorf("%s: %+v", event, h)
		}
		for r := range got {
			body := <-bodies
			if err := signature.Verify(secret, r.Header, body, time.Now()); err != nil || r.URL.Path != "/hook" || r.Header.Get("User-Agent") != "Service-Webhook/1.0" {
				t.Errorf("%s was passed on with %v: %v", r.Header.Get(signature.EventHeader), r.Header, err)
			}
			if r.Header.Get(signature.DeliveryHeader) == h.DeliveryID {
				if string(body) != string(h.Body) {
					t.Errorf("passed on was %s, printed %s", body, h.Body)
				}
				break
			}
		}
	}
	if url := s.call("GET", path, u.key(), nil)["defaultUrl"]; url != "https://shop.example/" {
		t.Errorf("the project's URL became %v", url)
	}
	// The service hears the server's answer.
	status.Store(http.StatusTeapot)
	if h := l.delivery(u.trigger(trigger.Test, project)); h.Answered != http.StatusTeapot {
		t.Errorf("the server's answer became %+v", h)
	}
	app.Close()
	if h := l.delivery(u.trigger(trigger.Test, project)); h.Answered != http.StatusBadGateway || !strings.Contains(h.Forwarded, "not passed on: ") {
		t.Errorf("a server that is away became %+v", h)
	}
	l.stop()
	pointed(false)

	// The secret is kept for the next time.
	ended := func(id string) (d map[string]any) {
		t.Helper()
		eventually.True(t, "the attempt is over", func() bool {
			d = s.call("GET", path+"/deliveries/"+id, u.key(), nil)
			return d["status"] != "pending"
		})
		return d
	}
	l = u.listening(s, "--project", project, "--answer", "503")
	pointed(true)
	h := l.delivery(u.trigger(trigger.Test, project))
	if d := ended(h.DeliveryID); !h.Verified || h.Answered != 503 || d["status"] != "failed" || d["lastStatusCode"] != 503.0 {
		t.Errorf("told to answer 503: %+v %v", h, d)
	}
	// A webhook of a killed listener is taken over by the next one.
	must.NoError(t, l.cmd.Process.Kill())
	l.exit()
	l = u.listening(s, "--project", project, "--hang")
	eventually.True(t, "the webhook is the new listener's", func() bool { return webhook() == l.place.URL })
	h = l.delivery(u.trigger(trigger.Test, project)) // it is printed when it comes
	l.stop()                                         // and lets go of it
	if d := ended(h.DeliveryID); h.Answered != 0 || d["status"] == "delivered" || d["lastStatusCode"] != nil {
		t.Errorf("told to hang: %+v %v", h, d)
	}
	pointed(false)
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"humanqa/cmd/humanqa/service"
	"humanqa/internal/receiver"
	"humanqa/internal/testing/must"
)

func (p *program) newSandbox(credits int) (id, key string) {
	p.t.Helper()
	var out struct{ AccountID, APIKey string }
	p.cli(&out, "account", "create", "--name", "Acme", "--sandbox", "--credits", fmt.Sprint(credits))
	if !strings.HasPrefix(out.APIKey, "qa_test_") {
		p.t.Errorf("a sandbox's key starts with %.8s", out.APIKey)
	}
	return out.AccountID, out.APIKey
}

func (p *program) advance(key string, seconds int) {
	p.t.Helper()
	r, err := p.try("POST", "/v1/sandbox/clock/advance", key, map[string]any{"seconds": seconds})
	if err != nil || r.status/100 != 2 {
		p.t.Fatalf("advance: %v %d %s", err, r.status, r.body)
	}
}

// call2xx is a read that may have to be repeated.
func (p *program) call2xx(method, path, key string) reply {
	p.t.Helper()
	r, err := p.try(method, path, key, nil)
	if err != nil || r.status/100 != 2 {
		p.t.Fatalf("%s %s: %v %d %s", method, path, err, r.status, r.body)
	}
	return r
}

// list gives a top-level array of the answer.
func (r reply) list(name string) []any {
	l, _ := r.field(name).([]any)
	return l
}

type playedSession struct {
	id   string
	jobs []string
}

func (p *program) newSession(key string, slots int) playedSession {
	p.t.Helper()
	places := make([]any, slots)
	for i := range places {
		places[i] = map[string]any{}
	}
	r := p.call(201, "POST", "/v1/hosted/sessions", key, map[string]any{"url": "https://example.com/room", "slots": places})
	out := playedSession{id: r.text("sessionId")}
	for _, slot := range r.list("slots") {
		o, _ := slot.(map[string]any)
		id, _ := o["jobId"].(string)
		out.jobs = append(out.jobs, id)
	}
	if len(out.jobs) != slots || r.number("creditsDeducted") != 5*slots || r.text("status") != "lobby" {
		p.t.Fatalf("session: %s", r.body)
	}
	return out
}

func (p *program) readySlots(key, session string, slots ...int) {
	p.t.Helper()
	r, err := p.try("POST", "/v1/sandbox/sessions/"+session+"/ready", key, map[string]any{"slots": slots})
	if err != nil || r.status/100 != 2 {
		p.t.Fatalf("ready: %v %d %s", err, r.status, r.body)
	}
}

// events reads the account's feed to its end.
func (p *program) events(t *testing.T, key string, kinds ...string) []map[string]any {
	t.Helper()
	var all []map[string]any
	after := ""
	for {
		query := url.Values{"types": {strings.Join(kinds, ",")}, "after": {after}}
		r := p.call(200, "GET", "/v1/events?"+query.Encode(), key, nil)
		var page struct {
			Events []map[string]any
			Next   string
		}
		must.NoError(t, json.Unmarshal(r.body, &page))
		if len(page.Events) == 0 {
			return all
		}
		all, after = append(all, page.Events...), page.Next
	}
}

// history counts a stream's events by type.
func (p *program) history(stream string) map[string]int {
	p.t.Helper()
	stdout, stderr, err := p.tryCLI("--json", "replay", stream)
	if err != nil {
		p.t.Fatalf("replay %s: %v %s", stream, err, stderr)
	}
	counts := map[string]int{}
	for line := range strings.Lines(stdout) {
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			p.t.Fatalf("replay printed %q: %v", line, err)
		}
		counts[e.Type]++
	}
	return counts
}

// happened holds a stream's events, by type, against what must have happened
// exactly so often.
func (p *program) happened(t *testing.T, stream string, want map[string]int) {
	t.Helper()
	got := p.history(stream)
	for kind, n := range want {
		if got[kind] != n {
			t.Errorf("%s: %d times %s, want %d: %v", stream, got[kind], kind, n, got)
		}
	}
}

// mailbox receives webhooks and counts them by delivery.
type mailbox struct {
	*receiver.Receiver
	t *testing.T

	mu     sync.Mutex
	secret []byte
	seen   map[string]bool
	bodies map[string][]map[string]any // by event, in the order of their arrival
}

// inboxes is where the certificates lie that a service with --demo delivers to.
func (p *program) inboxes() string {
	var cfg service.Config
	cfg.DataDir = p.dir
	return service.ReceiverDir(cfg)
}

func (p *program) openInboxFor(t *testing.T) *mailbox {
	t.Helper()
	in := &mailbox{t: t, seen: map[string]bool{}, bodies: map[string][]map[string]any{}}
	in.Receiver = p.receive(t, receiver.Config{Secret: in.key, Received: in.take})
	return in
}

// newReceived makes an account and a project whose webhooks arrive at a receiver of its own.
func (p *program) newReceived(t *testing.T) (key, project, inbox string, arrived chan receiver.Delivery) {
	t.Helper()
	arrived = make(chan receiver.Delivery, 10)
	inbox = p.receive(t, receiver.Config{Received: func(_ context.Context, r receiver.Delivery) int {
		arrived <- r
		return http.StatusNoContent
	}}).URL()
	_, key = p.newAccount(100)
	project = p.call(http.StatusCreated, "POST", "/v1/projects", key, map[string]any{"name": "Shop", "webhookUrl": inbox}).text("projectId")
	return key, project, inbox, arrived
}

// receive answers deliveries until the test ends.
func (p *program) receive(t *testing.T, cfg receiver.Config) *receiver.Receiver {
	t.Helper()
	cfg.Dir = p.inboxes()
	r, err := receiver.New(t.Context(), cfg)
	must.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("inbox: %v", err)
		}
	})
	return r
}

// trust tells the inbox what the project signs with.
func (in *mailbox) trust(p *instance, project string) {
	var out struct{ WebhookSecret string }
	p.cli(&out, "project", "secret", "--project", project)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.secret = []byte(out.WebhookSecret)
}

func (in *mailbox) key() []byte {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.secret
}

func (in *mailbox) take(_ context.Context, r receiver.Delivery) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !r.Verified {
		in.t.Errorf("a webhook that is not verified: %s %v", r.Event, r.Err)
	}
	if in.seen[r.DeliveryID] {
		return http.StatusNoContent // at least once: the id tells
	}
	in.seen[r.DeliveryID] = true
	var body map[string]any
	if err := json.Unmarshal(r.Body, &body); err != nil {
		in.t.Errorf("%s: %v", r.Event, err)
	}
	in.bodies[r.Event] = append(in.bodies[r.Event], body)
	return http.StatusNoContent
}

func (in *mailbox) count(event string) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.bodies[event])
}

func (in *mailbox) field(event, name string) []any {
	in.mu.Lock()
	defer in.mu.Unlock()
	var values []any
	for _, body := range in.bodies[event] {
		data, _ := body["data"].(map[string]any)
		values = append(values, data[name])
	}
	return values
}

package httpapi

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/internal/guard"
	"humanqa/internal/signature"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/webhooks/send"
)

// arrival is a delivery that a receiver took.
type arrival struct {
	id, event, jobID string
	header           http.Header
	body             []byte
}

func (a arrival) signedBy(secret string) bool {
	return signature.Verify([]byte(secret), a.header, a.body, time.Now()) == nil
}

// receiver is an HTTPS server that notes what it takes; while it is down it
// answers 500.
type receiver struct {
	*httptest.Server
	down atomic.Bool

	mu    sync.Mutex
	taken []arrival
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil || r.down.Load() {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	var told struct{ JobID string }
	_ = json.Unmarshal(body, &told) // a test event has no job
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = append(r.taken, arrival{
		req.Header.Get(signature.DeliveryHeader), req.Header.Get(signature.EventHeader), told.JobID, req.Header.Clone(), body,
	})
}

func (r *receiver) all() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.taken)
}

// delivering starts a receiver, and a dispatcher that may reach it.
func (s *service) delivering() *receiver {
	s.t.Helper()
	r := &receiver{}
	r.Server = httptest.NewTLSServer(r)
	r.Config.ErrorLog = nil
	s.t.Cleanup(r.Close)
	local := guard.Allow{netip.MustParsePrefix("127.0.0.0/8")}
	s.Limits.WebhookAllow = local
	ca := filepath.Join(s.t.TempDir(), "ca.pem")
	must.NoError(s.t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}), 0o600))
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	report := send.Report{
		Disabled: func(ctx context.Context, projectID, deliveryID, reason string) error {
			_, err := s.commands.DisableWebhook(ctx, command.Cause{CommandID: domain.NewCommandID(), Actor: "webhooks"}, projectID, deliveryID, reason)
			return err
		},
		Confirmed: func(ctx context.Context, projectID, sealed string) error {
			_, err := s.commands.ConfirmSecret(ctx, command.Cause{CommandID: domain.NewCommandID(), Actor: "webhooks"}, projectID, sealed)
			return err
		},
	}
	d := send.NewDispatcher(s.db, s.deps.Vault, report, send.Config{
		DSN: pgtest.DSN(s.t, s.db), Allow: local, CAFile: ca, Log: quiet,
		Retries: []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond},
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("the dispatcher ended with %v", err)
		}
	})
	return r
}

func (s *service) hookedTo(key string, r *receiver) (projectID, path string) {
	s.t.Helper()
	projectID = s.project(key, `{"name":"Shop","webhookUrl":"`+r.URL+`/in"}`)
	return projectID, "/v1/projects/" + projectID
}

func (s *service) health(key, path string) map[string]any {
	s.t.Helper()
	h, _ := s.call(key, "GET", path, "").want(http.StatusOK)["webhookHealth"].(map[string]any)
	return h
}

// Own headers are set, replaced and removed by name. No answer, no delivery's record, no event and no
// line of the service's log ever holds a value.
func TestOwnHeadersOfAProjectsWebhook(t *testing.T) {
	t.Parallel()
	s := own(t)
	r := s.delivering()
	_, key := s.account(1000)
	_, stranger := s.account(10)
	const canary, second = "Bearer canary-5b1c77e0a9", "canary-second-0f3d"
	created := s.call(key, "POST", "/v1/projects", `{"name":"Shop","webhookUrl":"`+r.URL+`/in","webhookHeaders":{"authorization":"`+canary+`"}}`).want(http.StatusCreated)
	path := "/v1/projects/" + created["projectId"].(string)
	names := func(want ...any) {
		t.Helper()
		got, _ := s.call(key, "GET", path, "").want(http.StatusOK)["webhookHeaderNames"].([]any)
		if !slices.Equal(got, want) {
			t.Errorf("the names are %v, want %v", got, want)
		}
	}
	names("Authorization")
	body := s.call(key, "PATCH", path, `{"webhookHeaders":{"X-Tenant":"`+second+`"}}`).want(http.StatusOK)
	equal(t, body["webhookHeaderNames"], any([]any{"Authorization", "X-Tenant"}))
	id := s.call(key, "POST", path+"/webhook/test", "").want(http.StatusAccepted)["id"].(string)
	eventually.True(t, "the test event arrives", func() bool { return len(r.all()) == 1 })
	if h := r.all()[0].header; h.Get("Authorization") != canary || h.Get("X-Tenant") != second {
		t.Errorf("it carries %v", h)
	}
	for _, read := range []string{path, "/v1/projects", path + "/deliveries", path + "/deliveries/" + id, "/v1/events?limit=100"} {
		if got := s.call(key, "GET", read, ""); strings.Contains(got.Body.String(), "canary") {
			t.Errorf("%s answers %s", read, got.Body)
		}
	}
	s.call(stranger, "PATCH", path, `{"webhookHeaders":{"X-Tenant":"theirs"}}`).want(http.StatusNotFound)

	before := s.written()
	for wrong, at := range map[string]string{
		`{"Host":"canary.example"}`: "webhookHeaders.Host", `{"X-A":"canary\r\nX-B: 1"}`: "webhookHeaders.X-A", `{"X-A":1}`: "webhookHeaders.X-A", `{"webhook-id":"canary"}`: "webhookHeaders.webhook-id",
		`{"X-A":""}`: "webhookHeaders.X-A", `{"":"canary"}`: "webhookHeaders.", `["canary"]`: "webhookHeaders", `{"X-A":"1","x-a":"canary"}`: "webhookHeaders.x-a", `{"X-A":"` + strings.Repeat("canary", 500) + `"}`: "webhookHeaders.X-A",
		`{"` + strings.Repeat("X", 65) + `":"canary"}`: "webhookHeaders",
	} {
		got := s.call(key, "PATCH", path, `{"webhookHeaders":`+wrong+`}`)
		details, _ := got.refused(http.StatusBadRequest, domain.CodeInvalidRequest)["details"].([]any)
		if len(details) != 1 || details[0].(map[string]any)["path"] != at || strings.Contains(got.Body.String(), "canary") && !strings.Contains(at, "canary") {
			t.Errorf("%.60s: %s", wrong, got.Body)
		}
	}
	equal(t, s.written(), before)

	s.call(key, "PATCH", path, `{"webhookHeaders":{"authorization":null}}`).want(http.StatusOK)
	names("X-Tenant")
	s.call(key, "PATCH", path, `{"webhookUrl":"https://hooks.example.com/x"}`).want(http.StatusOK)
	names()
	s.call(key, "PATCH", path, `{"webhookUrl":"`+r.URL+`/back"}`).want(http.StatusOK)
	names("X-Tenant")
	s.call(key, "PATCH", path, `{"webhookHeaders":null}`).want(http.StatusOK)
	names()
	bare := s.project(key, `{"name":"Bare"}`)
	if got := s.call(key, "PATCH", "/v1/projects/"+bare, `{"webhookHeaders":{"X-A":"1"}}`).want(http.StatusOK); !strings.Contains(fmt.Sprint(got["warnings"]), "webhookHeaders") {
		t.Errorf("without a webhook: %v", got["warnings"])
	}
	if strings.Contains(s.logged.String(), "canary") {
		t.Errorf("the service logged %s", s.logged)
	}
	for _, e := range s.events() {
		if raw, err := json.Marshal(e.Event); err != nil || strings.Contains(string(raw), "canary") {
			t.Errorf("%s holds %s: %v", e.Type, raw, err)
		}
	}
}

// A receiver that is down for 80 events, is disabled, repaired, enabled and
// replayed to: all of them arrive once, under their first ids, each job's in
// their order.
func TestAReceiverThatWasDownGetsEveryEventOnceWhenItIsRepaired(t *testing.T) {
	t.Parallel()
	s := own(t)
	r := s.delivering()
	_, key := s.account(1000)
	project, path := s.hookedTo(key, r)
	r.down.Store(true)
	const jobs = 40
	var ids []string
	for range jobs / 20 {
		batch := s.call(key, "POST", "/v1/jobs/bulk", bulkOf(20, func(_ int, body string) string {
			return strings.Replace(body, "{", `{"projectId":"`+project+`",`, 1)
		})).want(http.StatusCreated)
		for _, id := range batch["jobIds"].([]any) {
			ids = append(ids, id.(string))
		}
	}
	for _, id := range ids {
		s.call(key, "POST", "/v1/jobs/"+id+"/cancel", "").want(http.StatusOK)
	}
	eventually.Within(t, eventually.Patience, func() error {
		if h := s.health(key, path); h["status"] != "disabled" || h["held"].(float64)+h["failed"].(float64) != 2*jobs {
			return fmt.Errorf("the webhook's health is %v", h)
		}
		return nil
	})
	first := map[string]bool{}
	for cursor := ""; ; {
		page := s.call(key, "GET", path+"/deliveries?limit=30&cursor="+cursor, "").want(http.StatusOK)
		for _, d := range page["deliveries"].([]any) {
			first[d.(map[string]any)["id"].(string)] = true
		}
		if page["nextCursor"] == nil {
			break
		}
		cursor = page["nextCursor"].(string)
	}
	equal(t, len(first), 2*jobs)
	equal(t, len(r.all()), 0)

	r.down.Store(false)
	s.call(key, "POST", path+"/webhook/enable", "").want(http.StatusOK)
	equal(t, s.call(key, "POST", path+"/webhook/replay", `{"since":"2026-01-01"}`).want(http.StatusAccepted)["count"], any(float64(2*jobs)))
	eventually.Within(t, eventually.Patience, func() error {
		if got := len(s.call(key, "GET", path+"/deliveries?status=pending", "").want(http.StatusOK)["deliveries"].([]any)); got > 0 || len(r.all()) < 2*jobs {
			return fmt.Errorf("%d have arrived", len(r.all()))
		}
		return nil
	})
	secret, err := s.commands.WebhookSecret(t.Context(), project)
	must.NoError(t, err)
	story := map[string]string{}
	for _, a := range r.all() {
		if !first[a.id] {
			t.Errorf("%s arrived under another id, or twice", a.event)
		}
		delete(first, a.id)
		if !a.signedBy(secret) {
			t.Errorf("%s does not verify", a.id)
		}
		story[a.jobID] += a.event + " "
	}
	equal(t, len(first), 0)
	equal(t, len(story), jobs)
	for id, told := range story {
		if told != "job.created job.cancelled " {
			t.Errorf("of %s arrived: %s", id, told)
		}
	}
	with(t, s.health(key, path), map[string]any{"status": "ok", "held": 0.0, "failed": 0.0, "consecutiveFailures": 0.0, "lastError": nil})
}

// While secrets are rotated under load every delivery verifies with the old or
// the new one in their overlap, and with the new one only after it.
func TestARotationUnderLoadLeavesNothingThatDoesNotVerify(t *testing.T) {
	t.Parallel()
	s := own(t)
	r := s.delivering()
	_, key := s.account(1_000_000)
	project, path := s.hookedTo(key, r)
	old, err := s.commands.WebhookSecret(t.Context(), project)
	must.NoError(t, err)
	// Each job knows what had been answered before it was submitted.
	const before, overlapping, finished, leaked = 0, 1, 2, 3
	var phase atomic.Int64
	var submitted sync.Map // phase, by job
	var working sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		working.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				now := phase.Load()
				out := s.call(key, "POST", "/v1/jobs", jobWith(`"projectId":"`+project+`"`))
				var told struct{ JobID string }
				if err := json.Unmarshal(out.Body.Bytes(), &told); err != nil || out.Code != http.StatusCreated {
					t.Errorf("a job was refused: %d %s", out.Code, out.Body)
					return
				}
				submitted.Store(told.JobID, now)
			}
		})
	}
	count := func(in int64) (n int) {
		for _, a := range r.all() {
			if of, known := submitted.Load(a.jobID); known && of == in {
				n++
			}
		}
		return n
	}
	settled := func(in int64) {
		t.Helper()
		eventually.True(t, fmt.Sprintf("10 jobs of phase %d have arrived", in), func() bool { return count(in) >= 10 })
	}
	rotate := func(body string, next int64) string {
		t.Helper()
		out := s.call(key, "POST", path+"/webhook/rotate-secret", body).want(http.StatusOK)
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
		defer cancel()
		if err := s.deps.WebhooksShown(ctx); err != nil { // on a slow machine the answer comes earlier
			t.Fatal(err)
		}
		phase.Store(next)
		secret, _ := out["webhookSecret"].(string)
		return secret
	}
	settled(before)
	fresh := rotate("", overlapping)
	settled(overlapping)
	both := r.all()
	rotate(`{"finish":true}`, finished)
	settled(finished)
	third := rotate(`{"immediate":true}`, leaked)
	settled(leaked)
	close(stop)
	working.Wait()

	for _, a := range both {
		if of, _ := submitted.Load(a.jobID); of == int64(overlapping) && (!a.signedBy(old) || !a.signedBy(fresh)) {
			t.Errorf("in the overlap %s verifies with old: %t, new: %t", a.id, a.signedBy(old), a.signedBy(fresh))
		}
		if a.header.Get(signature.SignatureHeader) != signature.Of([]byte(old), a.body) {
			t.Errorf("X-Service-Signature of %s left the old secret before the end", a.id)
		}
	}
	seen := map[string]bool{}
	for _, a := range r.all() {
		by := []bool{a.signedBy(old), a.signedBy(fresh), a.signedBy(third)}
		if !slices.Contains(by, true) {
			t.Errorf("%s verifies with no secret", a.id)
		}
		if seen[a.id] {
			t.Errorf("%s arrived twice", a.id)
		}
		seen[a.id] = true
		of, _ := submitted.Load(a.jobID)
		switch of {
		case int64(finished):
			if by[0] {
				t.Errorf("%s, after the rotation was finished, verifies with the old secret", a.id)
			}
		case int64(leaked):
			if !slices.Equal(by, []bool{false, false, true}) || strings.Contains(a.header.Get("webhook-signature"), " ") {
				t.Errorf("%s, after the leak, verifies with %v", a.id, by)
			}
		}
	}
}

package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/httpapi/input"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
)

const aWebhook = `{"name":"Shop","webhookUrl":"https://hooks.example.com/in"}`

// disabled has the project's webhook disabled as the dispatcher does.
func (s *service) disabled(projectID string) {
	s.t.Helper()
	at, err := s.commands.DisableWebhook(s.t.Context(), operator(uuid.New()), projectID, uuid.NewString(), "answered 500")
	s.visible(at, err)
}

func (s *service) jobIn(key, projectID string) string {
	s.t.Helper()
	id, _ := s.call(key, "POST", "/v1/jobs", jobWith(`"projectId":"`+projectID+`"`)).want(http.StatusCreated)["jobId"].(string)
	return id
}

// shownIn gives the deliveries of a list as "event status".
func shownIn(r result) (list []string) {
	r.t.Helper()
	deliveries, _ := r.want(http.StatusOK)["deliveries"].([]any)
	for _, d := range deliveries {
		of := d.(map[string]any)
		list = append(list, fmt.Sprint(of["event"], " ", of["status"]))
	}
	return list
}

// Decisions, "Deliveries": what is held is seen, replayed and dropped.
func TestHeldDeliveriesAreSeenReplayedAndDropped(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	project := s.project(key, aWebhook)
	path := "/v1/projects/" + project
	s.disabled(project)
	first := s.jobIn(key, project)
	s.call(key, "POST", "/v1/jobs/"+first+"/cancel", "").want(http.StatusOK)
	second := s.jobIn(key, project)

	equal(t, shownIn(s.call(key, "GET", path+"/deliveries", "")), []string{"job.created held", "job.cancelled held", "job.created held"})
	equal(t, shownIn(s.call(key, "GET", path+"/deliveries?jobId="+first, "")), []string{"job.cancelled held", "job.created held"})
	equal(t, shownIn(s.call(key, "GET", path+"/deliveries?event=job.cancelled&status=held", "")), []string{"job.cancelled held"})
	equal(t, shownIn(s.call(key, "GET", path+"/deliveries?status=failed", "")), []string(nil))
	equal(t, s.call(key, "GET", path+"/deliveries?status=x&event=y&limit=0&cursor=z", "").paths(), []string{"cursor", "event", "limit", "status"})

	page := s.call(key, "GET", path+"/deliveries?limit=2", "").want(http.StatusOK)
	equal(t, len(page["deliveries"].([]any)), 2)
	rest := s.call(key, "GET", path+"/deliveries?limit=2&cursor="+fmt.Sprint(page["nextCursor"]), "").want(http.StatusOK)
	equal(t, rest["nextCursor"], any(nil))
	oldest := rest["deliveries"].([]any)[0].(map[string]any)
	with(t, oldest, map[string]any{
		"event": "job.created", "jobId": first, "status": "held", "attempts": 0.0, "nextAttemptAt": nil, "lastStatusCode": nil, "lastError": nil,
	})
	id := fmt.Sprint(oldest["id"])
	whole := s.call(key, "GET", path+"/deliveries/"+id, "").want(http.StatusOK)
	with(t, whole, map[string]any{"id": id, "projectId": project})
	equal(t, whole["attempts"], any([]any{}))
	requestID, _ := whole["headers"].(map[string]any)["X-Request-Id"].(string)
	if requestID == "" {
		t.Error("the delivery does not name the request that led to it")
	}
	equal(t, whole["headers"], any(map[string]any{
		"Content-Type": "application/json", "User-Agent": "Service-Webhook/1.0", "X-Service-Event": "job.created",
		"X-Service-Delivery": id, "webhook-id": id, "X-Request-Id": requestID,
	}))
	var body struct{ Event, JobID string }
	if err := json.Unmarshal([]byte(whole["body"].(string)), &body); err != nil || body.Event != "job.created" || body.JobID != first {
		t.Errorf("the body is %v, %v", whole["body"], err)
	}
	health := s.call(key, "GET", path, "").want(http.StatusOK)["webhookHealth"]
	with(t, health.(map[string]any), map[string]any{"status": "disabled", "held": 3.0, "failed": 0.0})

	// While it is disabled nothing can be sent.
	for _, what := range []string{"/webhook/test", "/webhook/replay", "/deliveries/" + id + "/redeliver"} {
		s.call(key, "POST", path+what, `{"since":"2026-01-01"}`).refused(http.StatusConflict, domain.CodeConflict)
	}
	equal(t, s.call(key, "POST", path+"/webhook/drop", `{"deliveryIds":["`+id+`","`+uuid.NewString()+`"]}`).want(http.StatusAccepted), map[string]any{"count": 1.0})

	// Whoever was told that it is enabled may replay at once.
	with(t, s.call(key, "POST", path+"/webhook/enable", "").want(http.StatusOK)["webhookHealth"].(map[string]any), map[string]any{"status": "ok", "held": 2.0})
	equal(t, s.call(key, "POST", path+"/webhook/replay", `{"since":"2999-01-01T00:00:00Z"}`).want(http.StatusAccepted), map[string]any{"count": 0.0})
	equal(t, s.call(key, "POST", path+"/webhook/replay", `{"since":"2026-01-01"}`).want(http.StatusAccepted), map[string]any{"count": 2.0})
	equal(t, shownIn(s.call(key, "GET", path+"/deliveries", "")), []string{"job.created pending", "job.cancelled pending", "job.created dropped"})
	equal(t, s.call(key, "POST", path+"/webhook/replay", `{"since":"2026-01-01"}`).want(http.StatusAccepted), map[string]any{"count": 0.0})

	// One that was dropped is sent all the same when it is asked for by itself.
	with(t, s.call(key, "POST", path+"/deliveries/"+id+"/redeliver", "").want(http.StatusAccepted), map[string]any{"id": id, "status": "pending", "jobId": first})
	with(t, s.call(key, "POST", path+"/webhook/test", "").want(http.StatusAccepted), map[string]any{"event": "webhook.test", "jobId": nil, "status": "pending"})
	equal(t, shownIn(s.call(key, "GET", path+"/deliveries?jobId="+second, "")), []string{"job.created pending"})

	bare := "/v1/projects/" + s.project(key, `{"name":"bare"}`)
	equal(t, shownIn(s.call(key, "GET", bare+"/deliveries", "")), []string(nil))
	equal(t, s.call(key, "GET", bare, "").want(http.StatusOK)["webhookHealth"], any(nil))
	for what, body := range map[string]string{"test": "", "replay": `{"since":"2026-01-01"}`, "rotate-secret": ""} {
		s.call(key, "POST", bare+"/webhook/"+what, body).refused(http.StatusConflict, domain.CodeConflict)
	}
}

func TestWhatIsReplayedOrDroppedMustBeChosen(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(0)
	path := "/v1/projects/" + s.project(key, aWebhook)
	for body, want := range map[string][]string{
		``: {"body"}, `[]`: {"body"}, `{}`: {"since"}, `{"since":null}`: {"since"}, `{"since":"yesterday"}`: {"since"},
		`{"since":"2026-01-01","deliveryIds":[]}`:                            {"since"},
		`{"deliveryIds":["x","` + uuid.NewString() + `",7]}`:                 {"deliveryIds[0]", "deliveryIds[2]"},
		`{"deliveryIds":[` + strings.Repeat(`"",`, input.MaxChosen) + `""]}`: {"deliveryIds", "since"},
	} {
		for _, what := range []string{"replay", "drop"} {
			equal(t, s.call(key, "POST", path+"/webhook/"+what, body).paths(), want)
		}
	}
	equal(t, s.call(key, "POST", path+"/webhook/replay", `{"deliveryIds":[]}`).want(http.StatusAccepted), map[string]any{"count": 0.0})
}

// Decisions, "Rotation".
func TestARotationOfTheSecret(t *testing.T) {
	t.Parallel()
	s := shared(t)
	id, key := s.account(0)
	project := s.project(key, aWebhook)
	path := "/v1/projects/" + project
	secret := func() string {
		plain, err := s.commands.WebhookSecret(t.Context(), project)
		must.NoError(t, err)
		return plain
	}
	rotate := func(key, body string, headers ...string) result {
		return s.call(key, "POST", path+"/webhook/rotate-secret", body, headers...)
	}
	before := time.Now()
	first := secret()
	out := rotate(key, "", wire.IdempotencyHeader, "k")
	with(t, out.want(http.StatusOK), map[string]any{
		"webhookSecret": secret(),
		"next": "Give your server the new secret within 24 hours. Until then webhook-signature carries a signature of each secret, " +
			"and X-Service-Signature alternates between the two from one attempt of a delivery to the next. " +
			`The rotation ends when your server accepts the new secret, or when you send {"finish": true}.`,
	})
	if secret() == first {
		t.Fatal("nothing was rotated")
	}
	until, err := time.Parse(time.RFC3339, fmt.Sprint(out.want(http.StatusOK)["previousValidUntil"]))
	if err != nil || until.Before(before.Add(24*time.Hour-time.Second)) || until.After(time.Now().Add(24*time.Hour)) {
		t.Errorf("the old one signs until %v, %v", until, err)
	}
	// The answer that was lost can be asked for again; what is stored of it is sealed.
	equal(t, rotate(key, "", wire.IdempotencyHeader, "k").Body.String(), out.Body.String())
	if strings.Contains(s.stored(), secret()) {
		t.Error("the secret lies open in the log")
	}
	rotate(key, "").refused(http.StatusConflict, domain.CodeConflict)
	equal(t, rotate(key, `{"finish":true,"immediate":true}`).paths(), []string{"finish"})
	equal(t, rotate(key, `{"finish":"yes","immediate":0}`).paths(), []string{"finish", "immediate"})

	p := s.call(key, "GET", path, "").want(http.StatusOK)
	equal(t, p["webhookSecretPreviousValidUntil"], out.want(http.StatusOK)["previousValidUntil"])
	history, _ := p["webhookSecretRotations"].([]any)
	entry, _ := history[0].(map[string]any)
	if entry["userId"] != nil || !strings.HasPrefix(fmt.Sprint(entry["keyId"]), id+".") {
		t.Errorf("the history is %v", history)
	}
	if body := s.call(key, "GET", path, "").Body.String(); strings.Contains(body, "whsec_") {
		t.Errorf("the project shows a secret: %s", body)
	}

	for range 2 {
		with(t, rotate(key, `{"finish":true}`).want(http.StatusOK), map[string]any{
			"webhookSecret": nil, "previousValidUntil": nil, "webhookSecretRotatedAt": out.want(http.StatusOK)["webhookSecretRotatedAt"],
			"next": "The rotation has ended: only the present secret signs.",
		})
	}
	equal(t, s.call(key, "GET", path, "").want(http.StatusOK)["webhookSecretPreviousValidUntil"], any(nil))
	leaked := rotate(key, `{"immediate":true}`).want(http.StatusOK)
	with(t, leaked, map[string]any{"webhookSecret": secret(), "previousValidUntil": nil,
		"next": "Give your server the new secret now: the old one signs nothing any more. " +
			"Deliveries that your server refuses four times are held; enable the webhook and replay them then.",
	})
	equal(t, s.count("project.webhook_rotation_finished"), 1)

	rotate(s.key(id, command.IssueKey{Scope: account.ScopeRead}), "").refused(http.StatusForbidden, domain.CodeForbidden)
	other := s.project(key, `{"name":"other"}`)
	rotate(s.key(id, command.IssueKey{Scope: account.ScopeFull, ProjectID: other}), "").refused(http.StatusForbidden, domain.CodeForbidden)
	_, stranger := s.account(0)
	rotate(stranger, "").refused(http.StatusNotFound, domain.CodeNotFound)
	if s.count("project.webhook_secret_set") != 3 {
		t.Error("a key that must not rotated the secret")
	}
}

// A sandbox's clock moves its account, not the receiver's day to change over.
func TestASandboxsOverlapIsADayOfTheWallsClock(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.sandbox()
	path := "/v1/projects/" + s.project(key, aWebhook)
	s.call(key, "POST", "/v1/sandbox/clock/advance", `{"seconds":864000}`).want(http.StatusOK)
	out := s.call(key, "POST", path+"/webhook/rotate-secret", "").want(http.StatusOK)
	until, err := time.Parse(time.RFC3339, fmt.Sprint(out["previousValidUntil"]))
	if err != nil || time.Until(until) > 25*time.Hour {
		t.Errorf("the old one signs until %v, %v", until, err)
	}
	s.call(key, "POST", "/v1/sandbox/clock/advance", `{"seconds":864000}`).want(http.StatusOK)
	equal(t, s.call(key, "GET", path, "").want(http.StatusOK)["webhookSecretPreviousValidUntil"], out["previousValidUntil"])
}

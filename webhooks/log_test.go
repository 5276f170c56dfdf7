package webhooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/internal/signature"
	"humanqa/internal/testing/hooktest"
	"humanqa/internal/testing/must"
	"humanqa/webhooks"
)

func (b *bundle) health(projectID string) webhooks.Health {
	b.Helper()
	all, err := b.DeliveryLog().Health(context.Background(), "acc", projectID)
	must.NoError(b, err)
	return all[projectID]
}

// An owner sees a failing endpoint before it is disabled.
func TestHealthTellsOfFailuresBeforeTheWebhookIsDisabled(t *testing.T) {
	b := setup(t)
	b.Config.Retries = []time.Duration{10 * time.Millisecond, 10 * time.Minute}
	var code atomic.Int64
	code.Store(http.StatusOK)
	e := b.Endpoint(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(code.Load())) })
	b.Project("p1", e.URL, nil)
	b.Project("p2", e.URL, nil)
	b.Subscribe()
	b.Subscribed()
	if h := b.health("p1"); h.Status() != webhooks.HealthOK || h.LastSuccessAt != nil || h.URL != e.URL {
		t.Errorf("before anything: %+v", h)
	}
	b.Dispatch()
	b.Submit("p1", "j1")
	b.Settled("p1", map[string]int{"delivered": 1})
	first := b.health("p1")
	if first.Status() != webhooks.HealthOK || first.LastSuccessAt == nil {
		t.Errorf("after a success: %+v", first)
	}

	code.Store(http.StatusBadGateway)
	b.Submit("p1", "j2")
	b.Eventually("two attempts have failed", func() bool { return b.health("p1").ConsecutiveFailures == 2 })
	failing := b.health("p1")
	if failing.Status() != webhooks.HealthFailing || failing.LastError != "answered 502" || failing.FailingSince == nil ||
		failing.FailingSince.Before(*first.LastSuccessAt) || !failing.LastSuccessAt.Equal(*first.LastSuccessAt) {
		t.Errorf("while it fails: %+v", failing)
	}
	if h := b.health("p2"); h.Status() != webhooks.HealthOK {
		t.Errorf("another one: %+v", h)
	}
	if all, err := b.DeliveryLog().Health(context.Background(), "other", "p1"); err != nil || len(all) != 0 {
		t.Errorf("another account is told %v, %v", all, err)
	}

	// The second retry would take ten minutes: sent at once, it is the last one.
	waiting := b.Deliveries("p1")[1]
	if next := waiting.NextAttemptAt(); next == nil || time.Until(*next) < 5*time.Minute {
		t.Errorf("the next attempt is at %v", next)
	}
	b.Exec(`UPDATE webhooks.deliveries SET failures = 2 WHERE id = $1`, waiting.ID)
	b.Exec(`UPDATE webhooks.deliveries SET due_at = now() WHERE id = $1`, waiting.ID)
	b.Exec(`UPDATE webhooks.endpoints SET due_at = now()`)
	b.Settled("p1", map[string]int{"delivered": 1, "failed": 1})
	<-b.Told
	b.Submit("p1", "j3")
	b.Settled("p1", map[string]int{"delivered": 1, "failed": 1, "held": 1})
	if h := b.health("p1"); h.Status() != webhooks.HealthDisabled || h.ConsecutiveFailures != 3 || h.Held != 1 || h.Failed != 1 {
		t.Errorf("disabled: %+v", h)
	}

	b.Change("p1", &project.WebhookDisabled{At: hooktest.At}, &project.WebhookEnabled{At: hooktest.At})
	b.Subscribed()
	if h := b.health("p1"); h.Status() != webhooks.HealthOK || h.ConsecutiveFailures != 0 || h.FailingSince != nil || h.LastError != "" || h.Held != 1 {
		t.Errorf("enabled again: %+v", h)
	}
	code.Store(http.StatusOK)
	if n, err := b.DeliveryLog().Replay(context.Background(), "acc", "p1", webhooks.Chosen{}); err != nil || n != 2 {
		t.Errorf("Replay gives %d, %v", n, err)
	}
	b.Settled("p1", map[string]int{"delivered": 3})
}

func TestATestEventIsSentOnceAndDisablesNothing(t *testing.T) {
	ctx := context.Background()
	b := setup(t)
	var code atomic.Int64
	code.Store(http.StatusInternalServerError)
	e := b.Endpoint(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(code.Load())) })
	b.Project("p1", e.URL+"/hook", nil)
	b.Subscribe()
	b.Subscribed()
	b.Dispatch()

	id, sent := uuid.New(), time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC)
	for range 2 { // the same one
		must.NoError(t, b.DeliveryLog().Test(ctx, "acc", "p1", id, sent))
	}
	if err := b.DeliveryLog().Test(ctx, "other", "p1", uuid.New(), sent); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("another account's test gives %v", err)
	}
	r := e.Next()
	if r.Event() != "webhook.test" || r.Delivery() != id.String() || r.Path != "/hook" {
		t.Errorf("%s %s came to %s", r.Event(), r.Delivery(), r.Path)
	}
	golden(t, "webhook.test.json", pretty(t, r.Body))
	if err := signature.Verify([]byte("secret of p1"), r.Header, []byte(r.Body), time.Now()); err != nil {
		t.Errorf("it does not verify: %v", err)
	}
	b.Settled("p1", map[string]int{"failed": 1})
	if h := b.health("p1"); h.Status() != webhooks.HealthOK || h.Failed != 0 {
		t.Errorf("a test left the health %+v", h)
	}
	if n, err := b.DeliveryLog().Replay(ctx, "acc", "p1", webhooks.Chosen{}); err != nil || n != 0 {
		t.Errorf("a replay takes %d tests along, %v", n, err)
	}
	// Sent again by its id it is the same event, once more.
	code.Store(http.StatusOK)
	must.NoError(t, b.DeliveryLog().Redeliver(ctx, "acc", "p1", id))
	if again := e.Next(); again.Delivery() != r.Delivery() || again.Body != r.Body {
		t.Error("the redelivery is another event")
	}
	b.Settled("p1", map[string]int{"delivered": 1})

	b.Change("p1", &project.WebhookDisabled{At: hooktest.At})
	b.Subscribed()
	if err := b.DeliveryLog().Test(ctx, "acc", "p1", uuid.New(), sent); !domain.IsKind(err, domain.KindConflict) {
		t.Errorf("a test of a disabled webhook gives %v", err)
	}
}

// A test that waits when its endpoint is disabled is dropped: it is about what
// is no more. Old ones go, also those that failed.
func TestATestEventIsNeverHeld(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	b.Subscribe()
	b.Subscribed()
	for range 2 {
		must.NoError(t, b.DeliveryLog().Test(context.Background(), "acc", "p1", uuid.New(), time.Now()))
	}
	b.Change("p1", &project.WebhookDisabled{At: hooktest.At})
	b.Settled("p1", map[string]int{"dropped": 2})
	b.Exec(`UPDATE webhooks.deliveries SET state = 'failed', settled_at = now() - interval '31 days'
		WHERE id = (SELECT id FROM webhooks.deliveries LIMIT 1)`)
	b.Dispatch()
	b.Settled("p1", map[string]int{"dropped": 1})
	e.None()
}

func TestARedeliveryIsOneMoreAttemptOfTheSameDelivery(t *testing.T) {
	ctx := context.Background()
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	stop := b.Dispatch()
	first := e.Next()
	b.Settled("p1", map[string]int{"delivered": 1})
	id := b.Deliveries("p1")[0].ID
	must.NoError(t, b.DeliveryLog().Redeliver(ctx, "acc", "p1", id))
	if again := e.Next(); again.Delivery() != first.Delivery() || again.Body != first.Body {
		t.Error("it is another delivery")
	}
	b.Settled("p1", map[string]int{"delivered": 1})
	if n := len(b.Attempts("p1", first.Delivery())); n != 2 {
		t.Errorf("%d attempts are logged", n)
	}
	for _, of := range []struct {
		account, project string
		id               uuid.UUID
	}{{"other", "p1", id}, {"acc", "p1", uuid.New()}, {"acc", "p2", id}} {
		if err := b.DeliveryLog().Redeliver(ctx, of.account, of.project, of.id); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("%v: %v, want not found", of, err)
		}
	}
	stop()

	// While a request is under way it is not sent beside it.
	b.Exec(`UPDATE webhooks.deliveries SET state = 'pending'`)
	b.Exec(`UPDATE webhooks.endpoints SET lease_id = gen_random_uuid(), leased_until = now() + interval '1 minute', in_flight = ARRAY[$1::uuid] WHERE project_id = 'p1'`, id)
	must.NoError(t, b.DeliveryLog().Redeliver(ctx, "acc", "p1", id))
	d := b.Deliveries("p1")[0]
	if !d.Sending || d.NextAttemptAt() != nil {
		t.Errorf("the running request was given up: %+v", d)
	}
	b.Exec(`UPDATE webhooks.deliveries SET state = 'delivered'`)
	b.Exec(`UPDATE webhooks.endpoints SET lease_id = NULL, leased_until = NULL, in_flight = '{}'`)
	b.Change("p1", &project.WebhookDisabled{At: hooktest.At})
	b.Subscribed()
	if err := b.DeliveryLog().Redeliver(ctx, "acc", "p1", id); !domain.IsKind(err, domain.KindConflict) {
		t.Errorf("to a disabled webhook: %v, want a conflict", err)
	}
}

func TestTheListOfDeliveries(t *testing.T) {
	ctx := context.Background()
	b := setup(t)
	b.Project("p1", "https://hooks.example.com/", nil)
	b.Project("p2", "https://hooks.example.com/", nil)
	for i := range 5 {
		id := fmt.Sprint("j", i)
		b.Submit("p1", id)
		b.Events.Add(domain.JobStream(id), hooktest.Claimed(), hooktest.Completed())
	}
	b.Submit("p2", "elsewhere")
	b.Change("p1", &project.WebhookDisabled{At: hooktest.At})
	b.Subscribe()
	b.Subscribed()
	b.Exec(`UPDATE webhooks.deliveries SET state = 'failed' WHERE ordering_key = 'job-j1' AND event = 'job.claimed'`)

	list := func(f webhooks.DeliveryFilter) (ids []string) {
		t.Helper()
		for {
			page, next, err := b.DeliveryLog().Deliveries(ctx, "acc", "p1", f)
			must.NoError(t, err)
			for _, d := range page {
				ids = append(ids, d.JobID()+" "+d.Event)
			}
			if f.After = next; next == "" {
				return ids
			}
			if !webhooks.IsCursor(next) || len(page) != f.Limit {
				t.Fatalf("a page of %d leads on to %q", len(page), next)
			}
		}
	}
	var want []string // the newest first
	for i := 4; i >= 0; i-- {
		for _, event := range []string{"job.completed", "job.claimed", "job.created"} {
			want = append(want, fmt.Sprintf("j%d %s", i, event))
		}
	}
	for _, limit := range []int{1, 4, 15, 100} {
		if got := list(webhooks.DeliveryFilter{Limit: limit}); !slices.Equal(got, want) {
			t.Errorf("by pages of %d: %v", limit, got)
		}
	}
	for what, f := range map[string]webhooks.DeliveryFilter{
		"j1 job.claimed": {State: webhooks.StateFailed}, "j3 job.claimed": {JobID: "j3", Event: "job.claimed"},
	} {
		f.Limit = 10
		if got := list(f); !slices.Equal(got, []string{what}) {
			t.Errorf("%+v lists %v", f, got)
		}
	}
	if got, next, err := b.DeliveryLog().Deliveries(ctx, "other", "p1", webhooks.DeliveryFilter{}); err != nil || len(got) != 0 || next != "" {
		t.Errorf("another account is shown %v, %q, %v", got, next, err)
	}
	for _, no := range []string{"x", "!", "LjAwMDAwMDAw", "enp6enp6enp6enp6eg"} {
		if webhooks.IsCursor(no) {
			t.Errorf("%q is a cursor", no)
		}
	}
}

// What a long outage left is replayed in several transactions; each job's events
// stay in their order, and what was dropped, or chosen by its id, is not among them.
func TestALongOutageIsReplayedInOrder(t *testing.T) {
	ctx := context.Background()
	b := setup(t)
	b.Project("p1", "https://hooks.example.com/", nil)
	b.Change("p1", &project.WebhookDisabled{At: hooktest.At})
	b.Subscribe()
	b.Subscribed()
	const kept = 4321
	b.Exec(`
INSERT INTO webhooks.deliveries (id, project_id, event_id, event, ordering_key, revision, body, state, created_at)
SELECT gen_random_uuid(), 'p1', gen_random_uuid(), 'job.created', 'job-' || n % 7, n, '', CASE n % 3 WHEN 0 THEN 'failed' ELSE 'held' END,
	now() - interval '1 hour' + n * interval '1 millisecond'
FROM generate_series(1, $1::integer) AS n`, kept)
	b.Change("p1", &project.WebhookEnabled{At: hooktest.At})
	b.Subscribed()
	if n, err := b.DeliveryLog().Replay(ctx, "acc", "p1", webhooks.Chosen{IDs: []uuid.UUID{}}); err != nil || n != 0 {
		t.Errorf("of none named it replays %d, %v", n, err)
	}
	since := b.moment(`SELECT created_at FROM webhooks.deliveries WHERE revision = 100`)
	if n, err := b.DeliveryLog().Drop(ctx, "acc", "p1", webhooks.Chosen{Since: since.Add(4 * time.Second)}); err != nil || n != kept-4100 {
		t.Errorf("Drop gives %d, %v", n, err)
	}
	if n, err := b.DeliveryLog().Replay(ctx, "acc", "p1", webhooks.Chosen{Since: since}); err != nil || n != 4000 {
		t.Errorf("Replay gives %d, %v", n, err)
	}
	states := b.States("p1")
	if states["pending"] != 4000 || states["dropped"] != kept-4100 || states["held"]+states["failed"] != 100 {
		t.Errorf("left are %v", states)
	}
	var first, last int
	if err := b.DB.QueryRow(`SELECT min(revision), max(revision) FROM webhooks.deliveries WHERE state = 'pending'`).Scan(&first, &last); err != nil || first != 101 || last != 4100 {
		t.Errorf("replayed are %d to %d, %v", first, last, err)
	}
}

func (b *bundle) moment(query string) (at time.Time) {
	b.Helper()
	must.NoError(b, b.DB.Get(&at, query))
	return at
}

// The bytes are the same in the list, on the wire, and after a replay.
func TestADeliveryIsShownAsItWasSent(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("thank you")) })
	b.Project("p1", e.URL+"/hook?token=theirs", nil)
	b.Submit("p1", "j1")
	b.Events.Add(domain.JobStream("j1"), &job.Cancelled{Reason: "client", At: hooktest.At})
	b.Subscribe()
	b.Dispatch()
	for range 2 {
		r := e.Next()
		b.Eventually("it is settled", func() bool { return len(b.Attempts("p1", r.Delivery())) == 1 })
		whole, err := b.DeliveryLog().Delivery(context.Background(), "acc", "", uuid.MustParse(r.Delivery()))
		if err != nil || string(whole.Body) != r.Body || !json.Valid(whole.Body) || whole.Event != r.Event() || whole.ProjectID != "p1" {
			t.Errorf("sent was %s, shown is %+v, %v", r.Body, whole, err)
		}
		shown := http.Header{}
		for _, h := range whole.Headers(whole.Attempts[0]) {
			shown.Set(h.Name, h.Value)
		}
		sent := r.Header.Clone()
		sent.Del("Content-Length") // HTTP's own
		sent.Del("Connection")
		if len(shown) != len(sent) {
			t.Errorf("sent were %v, shown are %v", sent, shown)
		}
		if err := signature.Verify([]byte("secret of p1"), shown, whole.Body, time.Now()); err != nil {
			t.Error("what is shown does not verify")
		}
		if a := whole.Attempts[0]; a.Response != "thank you" || a.Status.Int64 != 200 {
			t.Errorf("the attempt is %+v", a)
		}
	}
}

package webhooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/domain/session"
	"humanqa/internal/must"
	"humanqa/webhooks"
)

func TestTheEventListFilters(t *testing.T) {
	list := func(names ...string) *[]string { l := append([]string{}, names...); return &l }
	every := append(announce.Subscribable(), "job.claimed", "job.failed_sla", "job.cancelled", "job.failed")
	tests := []struct {
		name string
		list *[]string
		want []string
	}{
		{"omitted means every kind", nil, every},
		{"empty means none", list(), nil},
		{"exactly those named", list("job.completed"), []string{"job.completed"}},
		{"what the list cannot name is not sent to who gave one", list(every...), announce.Subscribable()},
	}
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.subscribe()
	for i, tt := range tests {
		id := string(rune('a' + i))
		b.project(id, e.URL, tt.list)
		b.submit(id, "job-of-"+id)
		b.log.record(domain.JobStream("job-of-"+id), claimed(),
			&job.SLAMissed{RequeueCount: 1, Requeued: true, At: at}, claimed(), completed(), analysed())
		b.submit(id, "cancelled-of-"+id)
		b.log.record(domain.JobStream("cancelled-of-"+id), &job.Cancelled{Reason: "client", At: at})
		b.submit(id, "failed-of-"+id)
		b.log.record(domain.JobStream("failed-of-"+id), &job.Failed{Reason: "operator", At: at})
		lobby := openSession()
		lobby.ProjectID = id
		b.log.record(domain.SessionStream("session-of-"+id), lobby, &session.Started{At: at}, &session.Completed{At: at})
		b.log.record(domain.LoopStream("loop-of-"+id), &loop.Ended{ProjectID: id, Alert: true, At: at})
	}
	b.subscribed()
	for i, tt := range tests {
		var got []string
		for _, d := range b.deliveries(string(rune('a' + i))) {
			got = append(got, d.Event)
		}
		slices.Sort(got)
		got = slices.Compact(got)
		want := slices.Sorted(slices.Values(tt.want))
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, want)
		}
	}
}

func TestOnlyWhatHappensAfterItIsSetReachesAnEndpoint(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.on("p1", &project.Created{AccountID: "acc", At: at})
	b.submit("p1", "before")
	b.on("p1",
		&project.SecretSet{Sealed: sealed("p1", "s"), At: at},
		&project.WebhookSet{URL: e.URL, At: at})
	b.log.record(domain.JobStream("before"), claimed())
	b.on("p1", &project.WebhookCleared{At: at})
	b.log.record(domain.JobStream("before"), &job.Released{Token: 1})
	b.submit("p1", "between")
	b.on("p1", &project.WebhookSet{URL: e.URL, At: at})
	b.submit("p1", "after")
	b.log.record(domain.JobStream("without a project"), created(""))
	b.subscribe()
	b.subscribed()
	got := map[string]string{}
	for _, d := range b.deliveries("p1") {
		got[d.Stream+" "+d.Event] = d.State
	}
	want := map[string]string{"job-before job.claimed": "held", "job-after job.created": "pending"}
	if len(got) != len(want) {
		t.Errorf("deliveries are %v, want %v", got, want)
	}
	for k, state := range want {
		if got[k] != state {
			t.Errorf("%s is %q, want %q", k, got[k], state)
		}
	}
}

func TestADisabledEndpointHoldsAndAReplaySends(t *testing.T) {
	ctx := context.Background()
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.project("p1", e.URL, nil)
	b.on("p1", &project.WebhookDisabled{Reason: "on request", At: at})
	b.submit("p1", "j1")
	b.submit("p1", "j2")
	b.submit("p1", "j3")
	b.subscribe()
	b.dispatch()
	b.settled("p1", map[string]int{"held": 3})

	if _, err := b.record().Replay(ctx, "acc", "p1", webhooks.Chosen{}); !domain.IsKind(err, domain.KindConflict) {
		t.Errorf("a replay to a disabled endpoint gives %v, want a conflict", err)
	}
	if _, err := b.record().Replay(ctx, "other", "p1", webhooks.Chosen{}); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("another account's replay gives %v, want not found", err)
	}
	held := b.deliveries("p1")
	if n, err := b.record().Drop(ctx, "acc", "p1", webhooks.Chosen{IDs: []uuid.UUID{held[0].ID}}); err != nil || n != 1 {
		t.Errorf("Drop gives %d, %v", n, err)
	}

	b.on("p1", &project.WebhookEnabled{At: at})
	b.submit("p1", "j4")
	r := e.next()
	if r.event() != "job.created" {
		t.Errorf("%s came", r.event())
	}
	b.settled("p1", map[string]int{"dropped": 1, "held": 2, "delivered": 1})
	e.none() // what was held waits for a word

	if n, err := b.record().Replay(ctx, "acc", "p1", webhooks.Chosen{}); err != nil || n != 2 {
		t.Errorf("Replay gives %d, %v", n, err)
	}
	b.settled("p1", map[string]int{"dropped": 1, "delivered": 3})
	got := []string{e.next().delivery(), e.next().delivery()}
	want := []string{held[1].ID.String(), held[2].ID.String()}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("replayed %v, want %v", got, want)
	}
}

func TestAFailedDeliveryIsReplayedUnderItsID(t *testing.T) {
	ctx := context.Background()
	b := setup(t)
	broken := make(chan struct{})
	e := b.endpoint(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-broken:
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()
	first := e.next()
	b.settled("p1", map[string]int{"failed": 1})
	<-b.told
	for range 3 {
		e.next()
	}

	close(broken)
	b.on("p1", &project.WebhookDisabled{DeliveryID: first.delivery(), At: at}, &project.WebhookEnabled{At: at})
	b.subscribed()
	id := b.deliveries("p1")[0].ID
	if n, err := b.record().Replay(ctx, "acc", "p1", webhooks.Chosen{IDs: []uuid.UUID{id}}); err != nil || n != 1 {
		t.Fatalf("Replay gives %d, %v", n, err)
	}
	again := e.next()
	if again.delivery() != first.delivery() || again.body != first.body {
		t.Error("the replay is another delivery")
	}
	b.settled("p1", map[string]int{"delivered": 1})
	if n := len(b.attempts("p1", first.delivery())); n != 5 {
		t.Errorf("%d attempts are logged, want 5", n)
	}
	whole, err := b.record().Delivery(ctx, "acc", "p1", id)
	if err != nil || string(whole.Body) != first.body || whole.AccountID != "acc" {
		t.Errorf("the delivery is %+v, %v", whole, err)
	}
	for _, h := range whole.Headers(whole.Attempts[0]) {
		if first.header.Get(h.Name) != h.Value {
			t.Errorf("%s was %q, and is shown as %q", h.Name, first.header.Get(h.Name), h.Value)
		}
	}
	for _, of := range [][2]string{{"other", "p1"}, {"acc", "p2"}, {"other", ""}} {
		if _, err := b.record().Delivery(ctx, of[0], of[1], id); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("as one of %v it gives %v, want not found", of, err)
		}
	}
}

func TestTheLogIsToldOfADisabledEndpointUntilItKnows(t *testing.T) {
	b := setup(t)
	b.cfg.Retries = []time.Duration{}
	e := b.endpoint(status(http.StatusInternalServerError))
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.subscribe()
	refused := make(chan struct{}, 10)
	stop := b.run(webhooks.NewDispatcher(b.db, plainVault{}, webhooks.Report{Disabled: func(context.Context, string, string, string) error {
		refused <- struct{}{}
		return domain.Unavailable(context.DeadlineExceeded)
	}}, b.cfg).Run)
	<-refused
	stop()

	// As after a crash: only the rows know.
	b.dispatch()
	select {
	case told := <-b.told:
		if want := "p1 " + e.next().delivery() + " answered 500"; told != want {
			t.Errorf("the log was told %q, want %q", told, want)
		}
	case <-time.After(patience):
		t.Fatal("the log was never told")
	}
}

func TestARotationSignsWithBothSecrets(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.project("p1", e.URL, nil)
	rotate := func(id string, until time.Time) {
		b.on(id, &project.SecretSet{SecretID: "s2", Sealed: sealed(id, "the new one"), Rotated: true, At: at, PreviousUntil: &until})
	}
	rotate("p1", time.Now().Add(time.Hour))
	b.project("p2", e.URL, nil)
	rotate("p2", time.Now().Add(-time.Second))
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()
	r := e.next()
	body := []byte(r.body)
	if r.header.Get("X-Service-Signature") != webhooks.Signature([]byte("secret of p1"), body) {
		t.Error("X-Service-Signature is not the old secret's")
	}
	for _, secret := range []string{"the new one", "secret of p1"} {
		if err := webhooks.Verify([]byte(secret), r.header, body, time.Now()); err != nil {
			t.Errorf("%q does not verify: %v", secret, err)
		}
	}

	alone := func(what, projectID, jobID string) {
		t.Helper()
		b.submit(projectID, jobID)
		r := e.next()
		if r.header.Get("X-Service-Signature") != webhooks.Signature([]byte("the new one"), []byte(r.body)) ||
			strings.Contains(r.header.Get("webhook-signature"), " ") {
			t.Errorf("the old secret signs after %s", what)
		}
	}
	alone("the overlap", "p2", "j2")
	b.on("p1", &project.RotationFinished{At: at})
	alone("the rotation was finished", "p1", "j3")
	b.project("p3", e.URL, nil)
	b.on("p3", &project.SecretSet{SecretID: "s2", Sealed: sealed("p3", "the new one"), Rotated: true, At: at})
	alone("it leaked", "p3", "j4")
}

// While deliveries go on, each verifies with the old secret or the new one, those of
// the overlap with both, and those after it with the new one only.
func TestARotationUnderLoadLeavesNoDeliveryUnverified(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.project("p1", e.URL, nil)
	b.subscribe()
	b.dispatch()
	const each = 60
	submit := func(phase string) {
		for i := range each {
			b.submit("p1", fmt.Sprint(phase, i))
		}
	}
	submit("before")
	until := time.Now().Add(time.Hour)
	b.on("p1", &project.SecretSet{SecretID: "s2", Sealed: sealed("p1", "the new one"), Rotated: true, At: at, PreviousUntil: &until})
	submit("overlap")
	b.on("p1", &project.RotationFinished{At: at})
	submit("after")
	for range 3 * each {
		r := e.next()
		var told struct{ JobID string }
		must.NoError(t, json.Unmarshal([]byte(r.body), &told))
		verifies := func(secret string) bool {
			return webhooks.Verify([]byte(secret), r.header, []byte(r.body), time.Now()) == nil
		}
		byOld, byNew := verifies("secret of p1"), verifies("the new one")
		if !byOld && !byNew || !byNew && !strings.HasPrefix(told.JobID, "before") || byOld && strings.HasPrefix(told.JobID, "after") {
			t.Errorf("%s verifies with the old secret: %t, with the new one: %t", told.JobID, byOld, byNew)
		}
	}
}

// Invariant 15.
func TestADeliveryGoesOnlyToItsProjectsURLUnderItsSecret(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	const projects, jobs = 10, 10
	for p := range projects {
		id := string(rune('a' + p))
		b.project(id, e.URL+"/"+id, nil)
	}
	for j := range jobs {
		for p := range projects {
			id := string(rune('a' + p))
			b.submit(id, id+string(rune('0'+j)))
		}
	}
	b.subscribe()
	b.dispatch()
	for range projects * jobs {
		r := e.next()
		id := r.path[1:]
		if err := webhooks.Verify([]byte("secret of "+id), r.header, []byte(r.body), time.Now()); err != nil {
			t.Errorf("%s is not signed by its secret", r.path)
		}
	}
	for p := range projects {
		b.settled(string(rune('a'+p)), map[string]int{"delivered": jobs})
	}
}

func TestNothingIsSentAfterAnEndpointIsCleared(t *testing.T) {
	b := setup(t)
	b.cfg.PerEndpoint, b.cfg.MostPerEndpoint = 1, 1
	gate := make(chan struct{})
	e := b.endpoint(func(w http.ResponseWriter, _ *http.Request) {
		<-gate
		w.WriteHeader(http.StatusInternalServerError)
	})
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.submit("p1", "j2")
	b.subscribe()
	b.dispatch()
	e.next() // one is under way
	b.on("p1", &project.WebhookCleared{At: at})
	b.subscribed()
	close(gate)
	b.eventually("the request under way is settled", func() bool {
		for _, d := range b.deliveries("p1") {
			if d.LastError != "" {
				return true
			}
		}
		return false
	})
	b.settled("p1", map[string]int{"held": 2})
	e.none()
}

// A failure that was decided about the old URL does not disable the new one.
func TestALastFailureOfAnOldURLSparesTheNewOne(t *testing.T) {
	b := setup(t)
	b.cfg.Retries = []time.Duration{}
	gate := make(chan struct{})
	e := b.endpoint(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			<-gate
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	b.project("p1", e.URL+"/old", nil)
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()
	if r := e.next(); r.path != "/old" {
		t.Fatalf("the first request went to %s", r.path)
	}
	b.on("p1", &project.WebhookSet{URL: e.URL + "/new", At: at})
	b.subscribed()
	close(gate)
	if r := e.next(); r.path != "/new" {
		t.Errorf("the second request went to %s", r.path)
	}
	b.settled("p1", map[string]int{"delivered": 1})
}

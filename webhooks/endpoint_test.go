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
	"humanqa/domain/subscription"
	"humanqa/internal/signature"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/hooktest"
	"humanqa/internal/testing/must"
	"humanqa/webhooks"
	"humanqa/webhooks/send"
)

func TestTheEventListFilters(t *testing.T) {
	list := func(names ...string) *[]string { l := append([]string{}, names...); return &l }
	var every []string
	for _, k := range announce.Kinds() {
		if !k.OfAccount && !k.Listed {
			every = append(every, k.Name)
		}
	}
	tests := []struct {
		name string
		list *[]string
		want []string
	}{
		{"omitted means every kind", nil, every},
		{"empty means none", list(), nil},
		{"exactly those named", list("job.completed"), []string{"job.completed"}},
		{"what the list cannot name is not sent to who gave one", list(every...), slices.DeleteFunc(announce.Choices(),
			func(name string) bool { return slices.Contains(subscription.Disputes(), name) })},
		{"disputes only where they are named", list("job.disputed", "job.dispute_decided"), []string{"job.disputed", "job.dispute_decided"}},
	}
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Subscribe()
	for i, tt := range tests {
		id := string(rune('a' + i))
		b.Project(id, e.URL, tt.list)
		b.Submit(id, "job-of-"+id)
		b.Events.Add(domain.JobStream("job-of-"+id), hooktest.Claimed(),
			&job.SLAMissed{RequeueCount: 1, Requeued: true, At: hooktest.At}, hooktest.Claimed(),
			&job.QuestionAsked{QuestionID: "q", At: hooktest.At}, &job.AnswerGiven{QuestionID: "q", At: hooktest.At},
			hooktest.Completed(), analysed(),
			&job.Disputed{DisputeID: "d", At: hooktest.At}, &job.DisputeAnswered{DisputeID: "d", At: hooktest.At},
			&job.DisputeDecided{DisputeID: "d", Decision: job.Stands, At: hooktest.At})
		b.Submit(id, "cancelled-of-"+id)
		b.Events.Add(domain.JobStream("cancelled-of-"+id), &job.Cancelled{Reason: "client", At: hooktest.At})
		b.Submit(id, "failed-of-"+id)
		b.Events.Add(domain.JobStream("failed-of-"+id), &job.Failed{Reason: "operator", At: hooktest.At})
		lobby := openSession()
		lobby.ProjectID = id
		b.Events.Add(domain.SessionStream("session-of-"+id), lobby, &session.Started{At: hooktest.At}, &session.Completed{At: hooktest.At})
		b.Events.Add(domain.LoopStream("loop-of-"+id), &loop.Ended{ProjectID: id, Alert: true, At: hooktest.At})
	}
	b.Subscribed()
	for i, tt := range tests {
		var got []string
		for _, d := range b.Deliveries(string(rune('a' + i))) {
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
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Change("p1", &project.Created{AccountID: "acc", At: hooktest.At})
	b.Submit("p1", "before")
	b.Change("p1",
		&project.SecretSet{Sealed: hooktest.Seal("p1", "s"), At: hooktest.At},
		&project.WebhookSet{URL: e.URL, At: hooktest.At})
	b.Events.Add(domain.JobStream("before"), hooktest.Claimed())
	b.Change("p1", &project.WebhookCleared{At: hooktest.At})
	b.Events.Add(domain.JobStream("before"), &job.Released{Token: 1})
	b.Submit("p1", "between")
	b.Change("p1", &project.WebhookSet{URL: e.URL, At: hooktest.At})
	b.Submit("p1", "after")
	b.Events.Add(domain.JobStream("without a project"), hooktest.Created(""))
	b.Subscribe()
	b.Subscribed()
	got := map[string]string{}
	for _, d := range b.Deliveries("p1") {
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
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	b.Change("p1", &project.WebhookDisabled{Reason: "on request", At: hooktest.At})
	b.Submit("p1", "j1")
	b.Submit("p1", "j2")
	b.Submit("p1", "j3")
	b.Subscribe()
	b.Dispatch()
	b.Settled("p1", map[string]int{"held": 3})

	if _, err := b.DeliveryLog().Replay(ctx, "acc", "p1", webhooks.Chosen{}); !domain.IsKind(err, domain.KindConflict) {
		t.Errorf("a replay to a disabled endpoint gives %v, want a conflict", err)
	}
	if _, err := b.DeliveryLog().Replay(ctx, "other", "p1", webhooks.Chosen{}); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("another account's replay gives %v, want not found", err)
	}
	held := b.Deliveries("p1")
	if n, err := b.DeliveryLog().Drop(ctx, "acc", "p1", webhooks.Chosen{IDs: []uuid.UUID{held[0].ID}}); err != nil || n != 1 {
		t.Errorf("Drop gives %d, %v", n, err)
	}

	b.Change("p1", &project.WebhookEnabled{At: hooktest.At})
	b.Submit("p1", "j4")
	r := e.Next()
	if r.Event() != "job.created" {
		t.Errorf("%s came", r.Event())
	}
	b.Settled("p1", map[string]int{"dropped": 1, "held": 2, "delivered": 1})
	e.None() // what was held waits for a word

	if n, err := b.DeliveryLog().Replay(ctx, "acc", "p1", webhooks.Chosen{}); err != nil || n != 2 {
		t.Errorf("Replay gives %d, %v", n, err)
	}
	b.Settled("p1", map[string]int{"dropped": 1, "delivered": 3})
	got := []string{e.Next().Delivery(), e.Next().Delivery()}
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
	e := b.Endpoint(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-broken:
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	first := e.Next()
	b.Settled("p1", map[string]int{"failed": 1})
	<-b.Told
	for range 3 {
		e.Next()
	}

	close(broken)
	b.Change("p1", &project.WebhookDisabled{DeliveryID: first.Delivery(), At: hooktest.At}, &project.WebhookEnabled{At: hooktest.At})
	b.Subscribed()
	id := b.Deliveries("p1")[0].ID
	if n, err := b.DeliveryLog().Replay(ctx, "acc", "p1", webhooks.Chosen{IDs: []uuid.UUID{id}}); err != nil || n != 1 {
		t.Fatalf("Replay gives %d, %v", n, err)
	}
	again := e.Next()
	if again.Delivery() != first.Delivery() || again.Body != first.Body {
		t.Error("the replay is another delivery")
	}
	b.Settled("p1", map[string]int{"delivered": 1})
	if n := len(b.Attempts("p1", first.Delivery())); n != 5 {
		t.Errorf("%d attempts are logged, want 5", n)
	}
	whole, err := b.DeliveryLog().Delivery(ctx, "acc", "p1", id)
	if err != nil || string(whole.Body) != first.Body || whole.AccountID != "acc" {
		t.Errorf("the delivery is %+v, %v", whole, err)
	}
	for _, h := range whole.Headers(whole.Attempts[0]) {
		if first.Header.Get(h.Name) != h.Value {
			t.Errorf("%s was %q, and is shown as %q", h.Name, first.Header.Get(h.Name), h.Value)
		}
	}
	for _, of := range [][2]string{{"other", "p1"}, {"acc", "p2"}, {"other", ""}} {
		if _, err := b.DeliveryLog().Delivery(ctx, of[0], of[1], id); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("as one of %v it gives %v, want not found", of, err)
		}
	}
}

func TestTheLogIsToldOfADisabledEndpointUntilItKnows(t *testing.T) {
	b := setup(t)
	b.Config.Retries = []time.Duration{}
	e := b.Endpoint(hooktest.Status(http.StatusInternalServerError))
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	refused := make(chan struct{}, 10)
	stop := b.RunLoop(send.NewDispatcher(b.DB, hooktest.Vault{}, send.Report{Disabled: func(context.Context, string, string, string) error {
		refused <- struct{}{}
		return domain.Unavailable(context.DeadlineExceeded)
	}}, b.Config).Run)
	<-refused
	stop()

	// As after a crash: only the rows know.
	b.Dispatch()
	select {
	case told := <-b.Told:
		if want := "p1 " + e.Next().Delivery() + " answered 500"; told != want {
			t.Errorf("the log was told %q, want %q", told, want)
		}
	case <-time.After(eventually.Patience):
		t.Fatal("the log was never told")
	}
}

func TestARotationSignsWithBothSecrets(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	rotate := func(id string, until time.Time) {
		b.Change(id, &project.SecretSet{SecretID: "s2", Sealed: hooktest.Seal(id, "the new one"), Rotated: true, At: hooktest.At, PreviousUntil: &until})
	}
	rotate("p1", time.Now().Add(time.Hour))
	b.Project("p2", e.URL, nil)
	rotate("p2", time.Now().Add(-time.Second))
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	r := e.Next()
	body := []byte(r.Body)
	if r.Header.Get("X-Service-Signature") != signature.Of([]byte("secret of p1"), body) {
		t.Error("X-Service-Signature is not the old secret's")
	}
	for _, secret := range []string{"the new one", "secret of p1"} {
		if err := signature.Verify([]byte(secret), r.Header, body, time.Now()); err != nil {
			t.Errorf("%q does not verify: %v", secret, err)
		}
	}

	alone := func(what, projectID, jobID string) {
		t.Helper()
		b.Submit(projectID, jobID)
		r := e.Next()
		if r.Header.Get("X-Service-Signature") != signature.Of([]byte("the new one"), []byte(r.Body)) ||
			strings.Contains(r.Header.Get("webhook-signature"), " ") {
			t.Errorf("the old secret signs after %s", what)
		}
	}
	alone("the overlap", "p2", "j2")
	b.Change("p1", &project.RotationFinished{At: hooktest.At})
	alone("the rotation was finished", "p1", "j3")
	b.Project("p3", e.URL, nil)
	b.Change("p3", &project.SecretSet{SecretID: "s2", Sealed: hooktest.Seal("p3", "the new one"), Rotated: true, At: hooktest.At})
	alone("it leaked", "p3", "j4")
}

// While deliveries go on, each verifies with the old secret or the new one, those of
// the overlap with both, and those after it with the new one only.
func TestARotationUnderLoadLeavesNoDeliveryUnverified(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	b.Subscribe()
	b.Dispatch()
	const each = 60
	submit := func(phase string) {
		for i := range each {
			b.Submit("p1", fmt.Sprint(phase, i))
		}
	}
	submit("before")
	until := time.Now().Add(time.Hour)
	b.Change("p1", &project.SecretSet{SecretID: "s2", Sealed: hooktest.Seal("p1", "the new one"), Rotated: true, At: hooktest.At, PreviousUntil: &until})
	submit("overlap")
	b.Change("p1", &project.RotationFinished{At: hooktest.At})
	submit("after")
	for range 3 * each {
		r := e.Next()
		var told struct{ JobID string }
		must.NoError(t, json.Unmarshal([]byte(r.Body), &told))
		verifies := func(secret string) bool {
			return signature.Verify([]byte(secret), r.Header, []byte(r.Body), time.Now()) == nil
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
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	const projects, jobs = 10, 10
	for p := range projects {
		id := string(rune('a' + p))
		b.Project(id, e.URL+"/"+id, nil)
	}
	for j := range jobs {
		for p := range projects {
			id := string(rune('a' + p))
			b.Submit(id, id+string(rune('0'+j)))
		}
	}
	b.Subscribe()
	b.Dispatch()
	for range projects * jobs {
		r := e.Next()
		id := r.Path[1:]
		if err := signature.Verify([]byte("secret of "+id), r.Header, []byte(r.Body), time.Now()); err != nil {
			t.Errorf("%s is not signed by its secret", r.Path)
		}
	}
	for p := range projects {
		b.Settled(string(rune('a'+p)), map[string]int{"delivered": jobs})
	}
}

func TestNothingIsSentAfterAnEndpointIsCleared(t *testing.T) {
	b := setup(t)
	b.Config.PerEndpoint, b.Config.MostPerEndpoint = 1, 1
	gate := make(chan struct{})
	e := b.Endpoint(func(w http.ResponseWriter, _ *http.Request) {
		<-gate
		w.WriteHeader(http.StatusInternalServerError)
	})
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Submit("p1", "j2")
	b.Subscribe()
	b.Dispatch()
	e.Next() // one is under way
	b.Change("p1", &project.WebhookCleared{At: hooktest.At})
	b.Subscribed()
	close(gate)
	b.Eventually("the request under way is settled", func() bool {
		for _, d := range b.Deliveries("p1") {
			if d.LastError != "" {
				return true
			}
		}
		return false
	})
	b.Settled("p1", map[string]int{"held": 2})
	e.None()
}

// A failure that was decided about the old URL does not disable the new one.
func TestALastFailureOfAnOldURLSparesTheNewOne(t *testing.T) {
	b := setup(t)
	b.Config.Retries = []time.Duration{}
	gate := make(chan struct{})
	e := b.Endpoint(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			<-gate
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	b.Project("p1", e.URL+"/old", nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	if r := e.Next(); r.Path != "/old" {
		t.Fatalf("the first request went to %s", r.Path)
	}
	b.Change("p1", &project.WebhookSet{URL: e.URL + "/new", At: hooktest.At})
	b.Subscribed()
	close(gate)
	if r := e.Next(); r.Path != "/new" {
		t.Errorf("the second request went to %s", r.Path)
	}
	b.Settled("p1", map[string]int{"delivered": 1})
}

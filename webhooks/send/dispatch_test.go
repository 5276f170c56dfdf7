package send_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"humanqa/domain"
	"humanqa/internal/testing/hooktest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/webhooks"
	"humanqa/webhooks/send"
)

func TestTheEventsOfAJobArriveInOrder(t *testing.T) {
	b := setup(t)
	const jobs = 30
	var mu sync.Mutex
	refused := map[string]bool{}
	e := b.Endpoint(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		id := r.Header.Get("X-Service-Delivery")
		if !refused[id] { // every delivery fails once
			refused[id] = true
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	b.Project("p1", e.URL, nil)
	for j := range jobs {
		b.Events.Add(domain.JobStream(fmt.Sprint(j)), hooktest.Created("p1"), hooktest.Claimed(), hooktest.Completed())
	}
	b.Subscribe()
	b.Dispatch()
	b.Settled("p1", map[string]int{"delivered": 3 * jobs})

	seen := map[string][]string{}
	for range 6 * jobs {
		r := e.Next()
		_, rest, _ := strings.Cut(r.Body, `"jobId":"`)
		id, _, _ := strings.Cut(rest, `"`)
		seen[id] = append(seen[id], strings.TrimPrefix(r.Event(), "job."))
	}
	for id, events := range seen {
		if got, want := strings.Join(events, " "), "created created claimed claimed completed completed"; got != want {
			t.Errorf("job %s: %s, want %s", id, got, want)
		}
	}
}

func TestAHangingEndpointIsNotFeltByOthers(t *testing.T) {
	b := setup(t)
	b.Config.Timeout, b.Config.Lease = 5*time.Minute, 10*time.Minute // they hang for longer than the test waits
	release := make(chan struct{})
	hanging := b.Endpoint(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	healthy := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("hanging", hanging.URL, nil)
	b.Project("healthy", healthy.URL, nil)
	for j := range 1000 {
		b.Submit("hanging", fmt.Sprintf("h%d", j))
	}
	b.Subscribe()
	b.Dispatch()
	for range 8 {
		hanging.Next()
	}
	for j := range 20 {
		b.Submit("healthy", fmt.Sprint(j))
		healthy.Next()
	}
	b.Settled("healthy", map[string]int{"delivered": 20})
	hanging.None() // eight in flight, and no more
}

func TestAfterATimeOutAnEndpointIsServedOneAtATimeUntilItAnswers(t *testing.T) {
	b := setup(t)
	b.Config.Timeout, b.Config.PerEndpoint = 2*time.Second, 3
	b.Config.Retries = []time.Duration{300 * time.Millisecond, time.Second, time.Second}
	var mu sync.Mutex
	running, most, answered := 0, 0, false
	hanging := 3
	e := b.Endpoint(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if hanging > 0 {
			hanging--
			mu.Unlock()
			hooktest.Hang(w, r)
		}
		running++
		if !answered {
			most = max(most, running)
		}
		mu.Unlock()
		<-time.After(5 * time.Millisecond)
		mu.Lock()
		running--
		answered = true
		mu.Unlock()
	})
	b.Project("p1", e.URL, nil)
	for j := range 10 {
		b.Submit("p1", fmt.Sprint(j))
	}
	b.Subscribe()
	b.Dispatch()
	b.Settled("p1", map[string]int{"delivered": 10})
	mu.Lock()
	defer mu.Unlock()
	if most != 1 {
		t.Errorf("%d requests ran at once before the first answer, want 1", most)
	}
}

func TestACrashedDispatchersDeliveryIsSentAgainUnderTheSameID(t *testing.T) {
	b := setup(t)
	b.Config.Drain = 100 * time.Millisecond
	first := make(chan struct{}, 1)
	first <- struct{}{}
	e := b.Endpoint(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-first:
			hooktest.Hang(w, r)
		default:
		}
	})
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	mortal := pgtest.NewDB(t, b.Config.DSN)
	stop := b.DispatchOn(mortal)
	lost := e.Next()
	if err := mortal.Close(); err != nil { // it will never settle
		t.Fatal(err)
	}
	stop()

	b.Exec("UPDATE webhooks.endpoints SET leased_until = now(), due_at = now()") // as after a minute
	b.Dispatch()
	again := e.Next()
	if again.Delivery() != lost.Delivery() || again.Body != lost.Body {
		t.Error("another delivery was sent")
	}
	b.Settled("p1", map[string]int{"delivered": 1})
	attempts := b.Attempts("p1", lost.Delivery())
	if len(attempts) != 2 || !strings.Contains(attempts[0].Error, "outcome is unknown") || attempts[1].Error != "" {
		t.Errorf("the attempt log says %+v", attempts)
	}
}

// Here the lease is shorter than the request, as if the process had been
// stopped for a while: what it comes back with no longer counts.
func TestACompletionAfterTheLeaseIsFencedOff(t *testing.T) {
	b := setup(t)
	b.Config.Timeout, b.Config.Lease, b.Config.PerEndpoint = time.Minute, 200*time.Millisecond, 2
	first, release := make(chan struct{}, 1), make(chan struct{})
	first <- struct{}{}
	e := b.Endpoint(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-first:
			<-release
			w.WriteHeader(http.StatusGone) // would disable the endpoint
		default:
		}
	})
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	r := e.Next()
	if again := e.Next(); again.Delivery() != r.Delivery() {
		t.Error("another delivery was sent")
	}
	b.Settled("p1", map[string]int{"delivered": 1})
	close(release)
	b.Eventually("the late attempt is in the log as it was", func() bool {
		list := b.Attempts("p1", r.Delivery())
		last := len(list) - 1 // the second may outlast so short a lease, too
		return last > 0 && list[0].Status.Int64 == http.StatusGone && list[last].Status.Int64 == http.StatusOK
	})
	b.Settled("p1", map[string]int{"delivered": 1})
	select {
	case told := <-b.Told:
		t.Errorf("a fenced completion disabled the endpoint: %s", told)
	default:
	}
}

// A stop is bounded: on a busy machine an outcome may not be written in time. Then it says so, the
// delivery is left to its lease, and it is stopped again.
func TestAStopInterruptsAndTheNextStartSendsAgainAtOnce(t *testing.T) {
	b := setup(t)
	b.Config.Timeout, b.Config.Lease = 30*time.Second, time.Minute
	log, said := logtest.NewNullLogger()
	b.Config.Log = log
	hang := make(chan struct{}, 1)
	e := b.Endpoint(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
			hooktest.Hang(w, r)
		default:
		}
	})
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	var lost hooktest.Request
	for settled, stops := false, 0; !settled; stops++ {
		hang <- struct{}{}
		said.Reset()
		stop := b.Dispatch()
		lost = e.Next()
		stop()
		d := b.Deliveries("p1")[0]
		if settled = !d.Sending; settled && (d.State != "pending" || d.LastError != "interrupted: the service stopped") || stops == 10 {
			t.Fatalf("after stop %d the delivery is %+v", stops, d)
		}
		if !settled {
			late := func(e *logrus.Entry) bool {
				return strings.Contains(e.Message, "settle: ") || strings.Contains(e.Message, "go on although they were told to stop")
			}
			if !slices.ContainsFunc(said.AllEntries(), late) {
				t.Fatalf("it was not settled, and nobody is told: %+v", d)
			}
			b.Exec("UPDATE webhooks.endpoints SET leased_until = now(), due_at = now()") // as after a minute
		}
	}
	b.Dispatch()
	if e.Next().Delivery() != lost.Delivery() {
		t.Error("another delivery was sent")
	}
	b.Settled("p1", map[string]int{"delivered": 1})
}

func TestDispatchersNeverSendOneDeliveryAtTheSameTime(t *testing.T) {
	b := setup(t)
	b.Config.Timeout, b.Config.Lease = time.Minute, 2*time.Minute // a slow machine is no reason to send again
	const jobs = 400
	var mu sync.Mutex
	running, sent := map[string]int{}, map[string]int{}
	e := b.Endpoint(func(_ http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Service-Delivery")
		mu.Lock()
		running[id]++
		sent[id]++
		if running[id] > 1 {
			t.Errorf("delivery %s is sent twice at once", id)
		}
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			running[id]--
		}()
	})
	for p := range 5 {
		b.Project(fmt.Sprint("p", p), e.URL, nil)
	}
	b.Dispatch()
	b.DispatchOn(pgtest.NewDB(t, b.Config.DSN))
	b.DispatchOn(pgtest.NewDB(t, b.Config.DSN))
	for j := range jobs {
		b.Submit(fmt.Sprint("p", j%5), fmt.Sprint(j))
	}
	b.Subscribe()
	for p := range 5 {
		b.Settled(fmt.Sprint("p", p), map[string]int{"delivered": jobs / 5})
	}
	mu.Lock()
	defer mu.Unlock()
	if len(sent) != jobs {
		t.Errorf("%d deliveries were sent, want %d", len(sent), jobs)
	}
	for id, n := range sent {
		if n != 1 {
			t.Errorf("delivery %s was sent %d times", id, n)
		}
	}
}

func TestASecretThatCannotBeOpenedPostponesWithoutCountingAFailure(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	b.Events.Add(domain.ProjectStream("p1"), hooktest.SecretOf("somebody else"))
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	b.Eventually("the delivery is postponed", func() bool {
		list := b.Deliveries("p1")
		return len(list) == 1 && list[0].LastError == "the signing secret cannot be opened"
	})
	d := b.Deliveries("p1")[0]
	if d.State != "pending" || time.Until(d.DueAt) < 30*time.Second {
		t.Errorf("the delivery is %+v", d)
	}
	if n := len(b.Attempts("p1", d.ID.String())); n != 0 {
		t.Errorf("%d attempts are logged, but nothing was sent", n)
	}
	e.None()
}

// Another Postgres behind the log, and no backup of the data keys: every delivery
// of the project meets the same.
func TestASecretThatCannotBeOpenedIsToldOnceAProjectInLogHealthAndMetrics(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	said := &lines{}
	b.Config.Log.(*logrus.Logger).SetOutput(said)
	b.Project("p1", e.URL, nil)
	b.Events.Add(domain.ProjectStream("p1"), hooktest.SecretOf("somebody else"))
	const jobs = 40
	for n := range jobs {
		b.Submit("p1", fmt.Sprint("j", n))
	}
	b.Subscribe()
	b.Subscribed()
	d := b.NewDispatcher()
	b.RunLoop(d.Run)
	b.Eventually("all wait", func() bool {
		var due int
		must.NoError(t, b.DB.Get(&due, `SELECT count(*) FROM webhooks.deliveries WHERE due_at < now() + interval '30 seconds'`))
		return due == 0
	})
	b.Eventually("the log and the metrics tell of it", func() bool { // behind the rows
		return strings.Contains(said.String(), "signing secret cannot be opened") && sealedEndpoints(t, d) > 0
	})
	if n := strings.Count(said.String(), "signing secret cannot be opened"); n != 1 {
		t.Errorf("said %d times:\n%s", n, said)
	}
	health, err := b.DeliveryLog().Health(t.Context(), "acc", "p1")
	if h := health["p1"]; err != nil || h.Status() != webhooks.HealthFailing || h.LastError != "the signing secret cannot be opened" || h.FailingSince == nil {
		t.Errorf("the webhook's health is %+v, %v", h, err)
	}
	if n := sealedEndpoints(t, d); n != 1 {
		t.Errorf("the metrics tell of %v sealed endpoints", n)
	}

	b.Events.Add(domain.ProjectStream("p1"), hooktest.SecretOf("p1"))
	b.Subscribed()
	if _, err := b.DB.Exec(`UPDATE webhooks.deliveries SET due_at = now(); UPDATE webhooks.endpoints SET due_at = now()`); err != nil {
		t.Fatal(err)
	}
	b.Settled("p1", map[string]int{"delivered": jobs})
	health, err = b.DeliveryLog().Health(t.Context(), "acc", "p1")
	if h := health["p1"]; err != nil || h.Status() != webhooks.HealthOK || h.LastError != "" || sealedEndpoints(t, d) != 0 {
		t.Errorf("with a secret that opens the health is %+v, %v", h, err)
	}
}

func sealedEndpoints(t *testing.T, d *send.Dispatcher) float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(d.Collectors()...)
	families, err := reg.Gather()
	must.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "humanqa_webhook_sealed_endpoints" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("no such metric")
	return 0
}

// lines is what a logger said.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestWithoutNotificationsTheTimersDo(t *testing.T) {
	b := setup(t)
	b.Config.DSN, b.Config.Poll = "", 50*time.Millisecond
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	b.Dispatch()
	b.Subscribe()
	b.Submit("p1", "j1")
	e.Next()
	b.Settled("p1", map[string]int{"delivered": 1})
}

func TestAStartWithABrokenCAFileFails(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Config.CAFile = t.TempDir() // a directory
	b.Project("p1", e.URL, nil)
	if err := b.NewDispatcher().Run(context.Background()); err == nil {
		t.Error("the dispatcher started")
	}
}

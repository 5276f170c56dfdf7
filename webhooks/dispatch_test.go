package webhooks_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/internal/must"
	"humanqa/internal/pgtest"
	"humanqa/webhooks"
)

func TestTheEventsOfAJobArriveInOrder(t *testing.T) {
	b := setup(t)
	const jobs = 30
	var mu sync.Mutex
	refused := map[string]bool{}
	e := b.endpoint(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		id := r.Header.Get("X-Service-Delivery")
		if !refused[id] { // every delivery fails once
			refused[id] = true
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	b.project("p1", e.URL, nil)
	for j := range jobs {
		b.log.record(domain.JobStream(fmt.Sprint(j)), created("p1"), claimed(), completed())
	}
	b.subscribe()
	b.dispatch()
	b.settled("p1", map[string]int{"delivered": 3 * jobs})

	seen := map[string][]string{}
	for range 6 * jobs {
		r := e.next()
		_, rest, _ := strings.Cut(r.body, `"jobId":"`)
		id, _, _ := strings.Cut(rest, `"`)
		seen[id] = append(seen[id], strings.TrimPrefix(r.event(), "job."))
	}
	for id, events := range seen {
		if got, want := strings.Join(events, " "), "created created claimed claimed completed completed"; got != want {
			t.Errorf("job %s: %s, want %s", id, got, want)
		}
	}
}

func TestAHangingEndpointIsNotFeltByOthers(t *testing.T) {
	b := setup(t)
	b.cfg.Timeout, b.cfg.Lease = 10*time.Second, 15*time.Second
	release := make(chan struct{})
	hanging := b.endpoint(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	healthy := b.endpoint(status(http.StatusOK))
	b.project("hanging", hanging.URL, nil)
	b.project("healthy", healthy.URL, nil)
	for j := range 1000 {
		b.submit("hanging", fmt.Sprintf("h%d", j))
	}
	b.subscribe()
	b.dispatch()
	for range 8 {
		hanging.next()
	}
	for j := range 20 {
		start := time.Now()
		b.submit("healthy", fmt.Sprint(j))
		healthy.next()
		if took := time.Since(start); took > time.Second {
			t.Errorf("event %d reached the healthy endpoint after %s", j, took)
		}
	}
	b.settled("healthy", map[string]int{"delivered": 20})
	hanging.none() // eight in flight, and no more
}

func TestAfterATimeOutAnEndpointIsServedOneAtATimeUntilItAnswers(t *testing.T) {
	b := setup(t)
	b.cfg.Timeout, b.cfg.Lease, b.cfg.PerEndpoint = 200*time.Millisecond, 2*time.Second, 3
	b.cfg.Retries = []time.Duration{300 * time.Millisecond, time.Second, time.Second}
	var mu sync.Mutex
	running, most, answered := 0, 0, false
	hanging := 3
	e := b.endpoint(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if hanging > 0 {
			hanging--
			mu.Unlock()
			hang(w, r)
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
	b.project("p1", e.URL, nil)
	for j := range 10 {
		b.submit("p1", fmt.Sprint(j))
	}
	b.subscribe()
	b.dispatch()
	b.settled("p1", map[string]int{"delivered": 10})
	mu.Lock()
	defer mu.Unlock()
	if most != 1 {
		t.Errorf("%d requests ran at once before the first answer, want 1", most)
	}
}

func TestACrashedDispatchersDeliveryIsSentAgainUnderTheSameID(t *testing.T) {
	b := setup(t)
	patient := b.cfg.Lease
	b.cfg.Lease, b.cfg.Drain = 900*time.Millisecond, 100*time.Millisecond
	first := make(chan struct{}, 1)
	first <- struct{}{}
	e := b.endpoint(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-first:
			hang(w, r)
		default:
		}
	})
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.subscribe()
	mortal := pgtest.NewDB(t, b.cfg.DSN)
	stop := b.dispatchOn(mortal)
	lost := e.next()
	if err := mortal.Close(); err != nil { // it will never settle
		t.Fatal(err)
	}
	stop()

	b.cfg.Lease = patient // the next one has a busy machine's time to answer in
	b.dispatch()
	again := e.next()
	if again.delivery() != lost.delivery() || again.body != lost.body {
		t.Error("another delivery was sent")
	}
	b.settled("p1", map[string]int{"delivered": 1})
	attempts := b.attempts("p1", lost.delivery())
	if len(attempts) != 2 || !strings.Contains(attempts[0].Error, "outcome is unknown") || attempts[1].Error != "" {
		t.Errorf("the attempt log says %+v", attempts)
	}
}

// Here the lease is shorter than the request, as if the process had been
// stopped for a while: what it comes back with no longer counts.
func TestACompletionAfterTheLeaseIsFencedOff(t *testing.T) {
	b := setup(t)
	b.cfg.Timeout, b.cfg.Lease, b.cfg.PerEndpoint = time.Minute, 200*time.Millisecond, 2
	first, release := make(chan struct{}, 1), make(chan struct{})
	first <- struct{}{}
	e := b.endpoint(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-first:
			<-release
			w.WriteHeader(http.StatusGone) // would disable the endpoint
		default:
		}
	})
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()
	r := e.next()
	if again := e.next(); again.delivery() != r.delivery() {
		t.Error("another delivery was sent")
	}
	b.settled("p1", map[string]int{"delivered": 1})
	close(release)
	b.eventually("the late attempt is in the log as it was", func() bool {
		list := b.attempts("p1", r.delivery())
		return len(list) == 2 && list[0].Status.Int64 == http.StatusGone && list[1].Status.Int64 == http.StatusOK
	})
	b.settled("p1", map[string]int{"delivered": 1})
	select {
	case told := <-b.told:
		t.Errorf("a fenced completion disabled the endpoint: %s", told)
	default:
	}
}

func TestAStopInterruptsAndTheNextStartSendsAgainAtOnce(t *testing.T) {
	b := setup(t)
	b.cfg.Drain = 2 * time.Second // it bounds the settling, too
	b.cfg.Timeout, b.cfg.Lease = 30*time.Second, time.Minute
	first := make(chan struct{}, 1)
	first <- struct{}{}
	e := b.endpoint(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-first:
			hang(w, r)
		default:
		}
	})
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.subscribe()
	stop := b.dispatch()
	lost := e.next()
	stop()
	if d := b.deliveries("p1")[0]; d.State != "pending" || d.LastError != "interrupted: the service stopped" {
		t.Errorf("the delivery is %+v", d)
	}
	b.dispatch()
	if e.next().delivery() != lost.delivery() {
		t.Error("another delivery was sent")
	}
	b.settled("p1", map[string]int{"delivered": 1})
}

func TestDispatchersNeverSendOneDeliveryAtTheSameTime(t *testing.T) {
	b := setup(t)
	b.cfg.Timeout, b.cfg.Lease = time.Minute, 2*time.Minute // a slow machine is no reason to send again
	const jobs = 400
	var mu sync.Mutex
	running, sent := map[string]int{}, map[string]int{}
	e := b.endpoint(func(_ http.ResponseWriter, r *http.Request) {
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
		b.project(fmt.Sprint("p", p), e.URL, nil)
	}
	b.dispatch()
	b.dispatchOn(pgtest.NewDB(t, b.cfg.DSN))
	b.dispatchOn(pgtest.NewDB(t, b.cfg.DSN))
	for j := range jobs {
		b.submit(fmt.Sprint("p", j%5), fmt.Sprint(j))
	}
	b.subscribe()
	for p := range 5 {
		b.settled(fmt.Sprint("p", p), map[string]int{"delivered": jobs / 5})
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
	e := b.endpoint(status(http.StatusOK))
	b.project("p1", e.URL, nil)
	b.log.record(domain.ProjectStream("p1"), secretOf("somebody else"))
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()
	b.eventually("the delivery is postponed", func() bool {
		list := b.deliveries("p1")
		return len(list) == 1 && list[0].LastError == "the signing secret cannot be opened"
	})
	d := b.deliveries("p1")[0]
	if d.State != "pending" || time.Until(d.DueAt) < 30*time.Second {
		t.Errorf("the delivery is %+v", d)
	}
	if n := len(b.attempts("p1", d.ID.String())); n != 0 {
		t.Errorf("%d attempts are logged, but nothing was sent", n)
	}
	e.none()
}

// Another Postgres behind the log, and no backup of the data keys: every delivery
// of the project meets the same.
func TestASecretThatCannotBeOpenedIsToldOnceAProjectInLogHealthAndMetrics(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	said := &lines{}
	b.cfg.Log.(*logrus.Logger).SetOutput(said)
	b.project("p1", e.URL, nil)
	b.log.record(domain.ProjectStream("p1"), secretOf("somebody else"))
	const jobs = 40
	for n := range jobs {
		b.submit("p1", fmt.Sprint("j", n))
	}
	b.subscribe()
	b.subscribed()
	d := newDispatcher(b)
	b.run(d.Run)
	b.eventually("all wait", func() bool {
		var due int
		must.NoError(t, b.db.Get(&due, `SELECT count(*) FROM webhooks.deliveries WHERE due_at < now() + interval '30 seconds'`))
		return due == 0
	})
	if n := strings.Count(said.String(), "signing secret cannot be opened"); n != 1 {
		t.Errorf("said %d times:\n%s", n, said)
	}
	health, err := b.record().Health(t.Context(), "acc", "p1")
	if h := health["p1"]; err != nil || h.Status() != webhooks.HealthFailing || h.LastError != "the signing secret cannot be opened" || h.FailingSince == nil {
		t.Errorf("the webhook's health is %+v, %v", h, err)
	}
	if n := sealedEndpoints(t, d); n != 1 {
		t.Errorf("the metrics tell of %v sealed endpoints", n)
	}

	b.log.record(domain.ProjectStream("p1"), secretOf("p1"))
	b.subscribed()
	if _, err := b.db.Exec(`UPDATE webhooks.deliveries SET due_at = now(); UPDATE webhooks.endpoints SET due_at = now()`); err != nil {
		t.Fatal(err)
	}
	b.settled("p1", map[string]int{"delivered": jobs})
	health, err = b.record().Health(t.Context(), "acc", "p1")
	if h := health["p1"]; err != nil || h.Status() != webhooks.HealthOK || h.LastError != "" || sealedEndpoints(t, d) != 0 {
		t.Errorf("with a secret that opens the health is %+v, %v", h, err)
	}
}

func sealedEndpoints(t *testing.T, d *webhooks.Dispatcher) float64 {
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
	b.cfg.DSN, b.cfg.Poll = "", 50*time.Millisecond
	e := b.endpoint(status(http.StatusOK))
	b.project("p1", e.URL, nil)
	b.dispatch()
	b.subscribe()
	b.submit("p1", "j1")
	e.next()
	b.settled("p1", map[string]int{"delivered": 1})
}

func TestAStartWithABrokenCAFileFails(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.cfg.CAFile = t.TempDir() // a directory
	b.project("p1", e.URL, nil)
	if err := newDispatcher(b).Run(context.Background()); err == nil {
		t.Error("the dispatcher started")
	}
}

package webhooks_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	logrustest "github.com/sirupsen/logrus/hooks/test"

	"humanqa/domain"
	"humanqa/internal/must"
	"humanqa/webhooks"
)

// takeOver writes what no handler may and leaves the connection open until the
// endpoint is closed.
func takeOver(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer func() { _ = conn.Close() }() // the other side may have
		if _, err := io.WriteString(conn, answer); err == nil {
			_, _ = io.Copy(io.Discard, conn) // until the sender hangs up
		}
	}
}

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: anything\r\n\r\n"

func TestAnAnswerThatSwitchesProtocolsIsAFailureAtOnce(t *testing.T) {
	b := setup(t)
	b.cfg.Timeout, b.cfg.Lease = 5*time.Minute, 10*time.Minute
	e := b.endpoint(takeOver(switching))
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()
	b.settled("p1", map[string]int{"failed": 1})
	d := b.deliveries("p1")[0]
	attempts := b.attempts("p1", d.ID.String())
	if len(attempts) != 4 {
		t.Fatalf("%d attempts, want 4", len(attempts))
	}
	for _, a := range attempts {
		if a.Status.Int64 != 101 || a.Error != "answered 101" {
			t.Errorf("an attempt is logged as %+v", a)
		}
	}
}

// drip sends a status at once and the rest of its answer, byte by byte, for as
// long as anybody listens.
func drip(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := w.Write([]byte("x")); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush() // a failure shows with the next write
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

func TestADisabledWebhookSaysWhyAtItsProjectAndInTheLog(t *testing.T) {
	b := setup(t)
	log, hook := logrustest.NewNullLogger()
	b.cfg.Log = log
	trusted := b.endpoint(status(http.StatusBadGateway))
	b.cfg.CAFile += ".later" // its certificate is nobody's for a while
	b.cfg.Retries = []time.Duration{1200 * time.Millisecond, time.Millisecond, time.Millisecond}
	b.project("p1", trusted.URL, nil)
	b.submit("p1", "j1")
	b.subscribe()
	dispatcher := webhooks.NewDispatcher(b.db, plainVault{}, b.report(), b.cfg)
	b.run(dispatcher.Run)
	b.eventually("the first attempt failed", func() bool {
		list := b.deliveries("p1")
		return len(list) == 1 && list[0].LastError != ""
	})
	writeCA(t, b.cfg.CAFile, trusted.Certificate())

	id := b.deliveries("p1")[0].ID.String()
	reason := "tls: failed to verify certificate: x509: certificate signed by unknown authority; then answered 502"
	if told, want := <-b.told, "p1 "+id+" "+reason; told != want {
		t.Errorf("the project was told %q, want %q", told, want)
	}
	var warned bool
	for _, entry := range hook.AllEntries() {
		warned = warned || entry.Level == logrus.WarnLevel &&
			entry.Data["project"] == "p1" && entry.Data["delivery"] == id && entry.Data["reason"] == reason
	}
	if !warned {
		t.Error("the log does not say that the webhook is disabled")
	}
	for name, want := range map[string]float64{
		"humanqa_webhook_attempts_total retry":     3,
		"humanqa_webhook_attempts_total exhausted": 1,
		"humanqa_webhook_attempt_seconds":          4,
		"humanqa_webhook_disabled_endpoints":       1,
		"humanqa_webhook_oldest_due_seconds":       0,
		"humanqa_work_busy":                        0,
	} {
		if got := metric(t, dispatcher, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// metric gives the value of a metric of the dispatcher, of a histogram how much
// it has seen; what follows the name is its label.
func metric(t *testing.T, d *webhooks.Dispatcher, name string) float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(d.Collectors()...)
	families, err := reg.Gather()
	must.NoError(t, err)
	name, label, _ := strings.Cut(name, " ")
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	t.Errorf("there is no metric %s %s", name, label)
	return 0
}

func TestABodyThatDripsHoldsItsPlaceForASecondAndLeavesTheEndpointOneAtATime(t *testing.T) {
	b := setup(t)
	b.cfg.Timeout, b.cfg.Lease = 5*time.Minute, 10*time.Minute
	e := b.endpoint(drip)
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()
	b.settled("p1", map[string]int{"delivered": 1}) // the status has decided
	a := b.attempts("p1", b.deliveries("p1")[0].ID.String())
	if len(a) != 1 || a[0].Status.Int64 != 200 || a[0].DurationMS < 900 || a[0].Response == "" {
		t.Errorf("the attempts are logged as %+v", a)
	}
	if n := b.cap("p1"); n != 1 {
		t.Errorf("the endpoint is sent %d at once, want 1", n)
	}
}

// deafVault opens no secret of the project "stuck" and listens to no context.
type deafVault struct {
	plainVault
	release chan struct{}
}

func (v deafVault) Unseal(ctx context.Context, accountID, stream, sealed string) ([]byte, error) {
	if stream == domain.ProjectStream("stuck") {
		<-v.release
	}
	return v.plainVault.Unseal(ctx, accountID, stream, sealed)
}

func TestAPoolWhosePlacesAreStuckSaysSoAndGetsThemBack(t *testing.T) {
	b := setup(t)
	b.cfg.Pool, b.cfg.Timeout, b.cfg.Lease = 2, 100*time.Millisecond, 300*time.Millisecond
	v := deafVault{release: make(chan struct{})}
	e := b.endpoint(status(http.StatusOK))
	b.project("stuck", e.URL, nil)
	b.project("healthy", e.URL, nil)
	b.submit("stuck", "s1")
	b.submit("stuck", "s2")
	b.subscribe()
	dispatcher := webhooks.NewDispatcher(b.db, v, b.report(), b.cfg)
	stop := b.run(dispatcher.Run)
	b.eventually("the pool has a problem", func() bool { return dispatcher.Problem() != "" })
	b.submit("healthy", "h1")
	if r := e.next(); !strings.Contains(r.body, `"jobId":"h1"`) {
		t.Errorf("the first delivery is %s", r.body)
	}
	close(v.release)
	b.eventually("the pool has none any more", func() bool { return dispatcher.Problem() == "" })
	b.settled("stuck", map[string]int{"delivered": 2})
	stop()
}

// An endpoint without work asks for no processor time.
func TestAnEndpointWithNothingToDoIsNotLookedAt(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	for p := range 5 {
		b.project(fmt.Sprint("p", p), e.URL, nil)
		b.submit(fmt.Sprint("p", p), fmt.Sprint("j", p))
	}
	b.subscribe()
	b.dispatch()
	for range 5 {
		e.next()
	}
	b.eventually("no endpoint is due", func() bool {
		var due int
		must.NoError(b, b.db.Get(&due, "SELECT count(*) FROM webhooks.endpoints WHERE due_at IS NOT NULL"))
		return due == 0
	})
}

// However many strangers answer like that, others are served at once.
func TestHostileAnswersAreNotFeltByOthers(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"switching protocols": takeOver(switching),
		"dripping":            drip,
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			// An answer that may use its attempt's whole time holds its place for
			// longer than the test waits.
			b.cfg.Timeout, b.cfg.Lease = 5*time.Minute, 10*time.Minute
			b.cfg.Pool = 24
			hostile, healthy := b.endpoint(answer), b.endpoint(status(http.StatusOK))
			b.project("healthy", healthy.URL, nil)
			for p := range 12 {
				b.project(fmt.Sprint("hostile", p), hostile.URL, nil)
				for j := range 20 {
					b.submit(fmt.Sprint("hostile", p), fmt.Sprintf("h%d-%d", p, j))
				}
			}
			b.subscribe()
			stop := b.dispatch()
			for range 24 {
				hostile.next() // as many as there are places
			}
			for j := range 20 {
				start := time.Now()
				b.submit("healthy", fmt.Sprint(j))
				healthy.next() // fails when it does not come
				t.Logf("event %d reached the healthy endpoint after %s", j, time.Since(start))
			}
			b.settled("healthy", map[string]int{"delivered": 20})
			start := time.Now()
			stop()
			if took := time.Since(start); took > patience {
				t.Errorf("the stop took %s", took)
			}
		})
	}
}

package send_test

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
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/hooktest"
	"humanqa/internal/testing/must"
	"humanqa/webhooks/send"
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
	b.Config.Timeout, b.Config.Lease = 5*time.Minute, 10*time.Minute
	e := b.Endpoint(takeOver(switching))
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	b.Settled("p1", map[string]int{"failed": 1})
	d := b.Deliveries("p1")[0]
	attempts := b.Attempts("p1", d.ID.String())
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
	b.Config.Log = log
	trusted := b.Endpoint(hooktest.Status(http.StatusBadGateway))
	b.Config.CAFile += ".later" // its certificate is nobody's for a while
	b.Config.Retries = []time.Duration{1200 * time.Millisecond, time.Millisecond, time.Millisecond}
	b.Project("p1", trusted.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	dispatcher := send.NewDispatcher(b.DB, hooktest.Vault{}, b.Report(), b.Config)
	b.RunLoop(dispatcher.Run)
	b.Eventually("the first attempt failed", func() bool {
		list := b.Deliveries("p1")
		return len(list) == 1 && list[0].LastError != ""
	})
	hooktest.WriteCA(t, b.Config.CAFile, trusted.Certificate())

	id := b.Deliveries("p1")[0].ID.String()
	reason := "the certificate is not signed by a known authority; then answered 502"
	if told, want := <-b.Told, "p1 "+id+" "+reason; told != want {
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
func metric(t *testing.T, d *send.Dispatcher, name string) float64 {
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
	b.Config.Timeout, b.Config.Lease = 5*time.Minute, 10*time.Minute
	e := b.Endpoint(drip)
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	b.Settled("p1", map[string]int{"delivered": 1}) // the status has decided
	a := b.Attempts("p1", b.Deliveries("p1")[0].ID.String())
	if len(a) != 1 || a[0].Status.Int64 != 200 || a[0].DurationMS < 900 || a[0].Response == "" {
		t.Errorf("the attempts are logged as %+v", a)
	}
	if n := b.cap("p1"); n != 1 {
		t.Errorf("the endpoint is sent %d at once, want 1", n)
	}
}

// deafVault opens no secret of the project "stuck" and listens to no context.
type deafVault struct {
	hooktest.Vault
	release chan struct{}
}

func (v deafVault) Unseal(ctx context.Context, accountID, stream, sealed string) ([]byte, error) {
	if stream == domain.ProjectStream("stuck") {
		<-v.release
	}
	return v.Vault.Unseal(ctx, accountID, stream, sealed)
}

func TestAPoolWhosePlacesAreStuckSaysSoAndGetsThemBack(t *testing.T) {
	b := setup(t)
	b.Config.Pool, b.Config.Lease = 2, 2*time.Second
	v := deafVault{release: make(chan struct{})}
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("stuck", e.URL, nil)
	b.Project("healthy", e.URL, nil)
	b.Submit("stuck", "s1")
	b.Submit("stuck", "s2")
	b.Subscribe()
	dispatcher := send.NewDispatcher(b.DB, v, b.Report(), b.Config)
	stop := b.RunLoop(dispatcher.Run)
	b.Eventually("the pool has a problem", func() bool { return dispatcher.Problem() != "" })
	b.Submit("healthy", "h1")
	if r := e.Next(); !strings.Contains(r.Body, `"jobId":"h1"`) {
		t.Errorf("the first delivery is %s", r.Body)
	}
	close(v.release)
	b.Eventually("the pool has none any more", func() bool { return dispatcher.Problem() == "" })
	b.Settled("stuck", map[string]int{"delivered": 2})
	stop()
}

// An endpoint without work asks for no processor time.
func TestAnEndpointWithNothingToDoIsNotLookedAt(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	for p := range 5 {
		b.Project(fmt.Sprint("p", p), e.URL, nil)
		b.Submit(fmt.Sprint("p", p), fmt.Sprint("j", p))
	}
	b.Subscribe()
	b.Dispatch()
	for range 5 {
		e.Next()
	}
	b.Eventually("no endpoint is due", func() bool {
		var due int
		must.NoError(b, b.DB.Get(&due, "SELECT count(*) FROM webhooks.endpoints WHERE due_at IS NOT NULL"))
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
			b.Config.Timeout, b.Config.Lease = 5*time.Minute, 10*time.Minute
			b.Config.Pool = 24
			hostile, healthy := b.Endpoint(answer), b.Endpoint(hooktest.Status(http.StatusOK))
			b.Project("healthy", healthy.URL, nil)
			for p := range 12 {
				b.Project(fmt.Sprint("hostile", p), hostile.URL, nil)
				for j := range 20 {
					b.Submit(fmt.Sprint("hostile", p), fmt.Sprintf("h%d-%d", p, j))
				}
			}
			b.Subscribe()
			stop := b.Dispatch()
			for range 24 {
				hostile.Next() // as many as there are places
			}
			for j := range 20 {
				b.Submit("healthy", fmt.Sprint(j))
				healthy.Next() // fails when it does not come
			}
			b.Settled("healthy", map[string]int{"delivered": 20})
			stopped := make(chan struct{})
			go func() { stop(); close(stopped) }()
			select {
			case <-stopped:
			case <-time.After(eventually.Patience): // their attempts may take longer
				t.Fatal("the stop waits for the hostile ones")
			}
		})
	}
}

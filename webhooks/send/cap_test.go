package send_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"humanqa/internal/testing/hooktest"
	"humanqa/internal/testing/must"
)

// cap is what the endpoint's row says; 0: where all begin.
func (b *bundle) cap(projectID string) (n int) {
	b.Helper()
	must.NoError(b, b.DB.GetContext(b.Context(), &n, "SELECT cap FROM webhooks.endpoints WHERE project_id = $1", projectID))
	return n
}

func TestAnEndpointIsSentMoreAtOnceWhileItAnswersAndFewAgainWhenItFails(t *testing.T) {
	b := setup(t)
	b.Config.Pool, b.Config.PerEndpoint, b.Config.MostPerEndpoint = 32, 2, 8
	b.Config.Retries = []time.Duration{time.Millisecond, time.Minute}
	var failing atomic.Bool
	var mu sync.Mutex
	running, most := 0, 0
	e := b.Endpoint(func(w http.ResponseWriter, _ *http.Request) {
		if failing.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		<-time.After(5 * time.Millisecond)
		mu.Lock()
		running--
		mu.Unlock()
	})
	b.Project("p1", e.URL, nil)
	for j := range 80 {
		b.Submit("p1", fmt.Sprint(j))
	}
	b.Subscribe()
	b.Dispatch()
	b.Settled("p1", map[string]int{"delivered": 80})
	mu.Lock()
	if most <= 2 || most > 8 {
		t.Errorf("%d requests ran at once at most, want more than the 2 it began with and no more than 8", most)
	}
	mu.Unlock()
	if n := b.cap("p1"); n != 8 {
		t.Errorf("the endpoint is sent %d at once, want 8", n)
	}

	failing.Store(true)
	b.Submit("p1", "late")
	b.Subscribed()
	b.Eventually("a failure leads back to the beginning", func() bool { return b.cap("p1") == 0 })
}

// However much endpoints were trusted with, what hangs leaves room for others.
func TestTrustedEndpointsThatHangLeaveHalfOfThePoolToOthers(t *testing.T) {
	b := setup(t)
	b.Config.Pool, b.Config.PerEndpoint, b.Config.MostPerEndpoint = 16, 2, 16
	b.Config.Timeout, b.Config.Lease = time.Minute, 2*time.Minute
	var hanging atomic.Int64
	for _, id := range []string{"h1", "h2"} {
		e := b.Endpoint(func(w http.ResponseWriter, r *http.Request) {
			hanging.Add(1)
			hooktest.Hang(w, r)
		})
		b.Project(id, e.URL, nil)
		for j := range 20 {
			b.Submit(id, fmt.Sprint(id, j))
		}
	}
	good := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("good", good.URL, nil)
	b.Subscribe()
	b.Subscribed()
	_, err := b.DB.ExecContext(t.Context(), "UPDATE webhooks.endpoints SET cap = 16 WHERE project_id IN ('h1', 'h2')")
	must.NoError(t, err)
	b.Dispatch()
	b.Eventually("they hang", func() bool { return hanging.Load() >= 8 })
	for j := range 5 {
		b.Submit("good", fmt.Sprint("good", j))
	}
	b.Subscribed()
	b.Settled("good", map[string]int{"delivered": 5})
	if n := hanging.Load(); n > 8+2*2 {
		t.Errorf("%d of 16 places hang", n)
	}
}

package send_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/project"
	"humanqa/internal/testing/hooktest"
	"humanqa/webhooks"
)

// Accounts with more hanging projects than the pool has places leave some to the
// others: whose deliveries arrive while all of those still hang.
func TestAnAccountWithManyHangingProjectsLeavesPlacesToOthers(t *testing.T) {
	b := setup(t)
	b.Config.Pool, b.Config.Timeout, b.Config.Lease = 16, time.Minute, 2*time.Minute
	var hanging, most, ended atomic.Int64
	e := b.Endpoint(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/hang") {
			return
		}
		now := hanging.Add(1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		<-r.Context().Done()
		hanging.Add(-1)
		ended.Add(1)
		panic(http.ErrAbortHandler)
	})
	of := func(account, id, path string) {
		b.Events.Add(domain.ProjectStream(id),
			&project.Created{AccountID: account, Name: id, At: hooktest.At},
			&project.SecretSet{SecretID: "s1", Sealed: account + "|" + domain.ProjectStream(id) + "|secret", At: hooktest.At},
			&project.WebhookSet{URL: e.URL + path, At: hooktest.At})
	}
	for i := range 50 {
		id := fmt.Sprint("hang", i)
		of("greedy", id, "/hang")
		for j := range 10 {
			b.Submit(id, fmt.Sprint(id, "-", j))
		}
	}
	b.Subscribe()
	b.Subscribed()
	b.Dispatch()
	b.Eventually("the account has its share", func() bool { return hanging.Load() == 13 })

	of("healthy", "p1", "/fine")
	for i := range 20 {
		b.Submit("p1", fmt.Sprint("fine-", i))
	}
	b.Settled("p1", map[string]int{"delivered": 20})
	for i := range 20 {
		id := fmt.Sprint("also", i)
		of("greedy too", id, "/hang")
		b.Submit(id, "of-"+id)
	}
	b.Eventually("another one has its share", func() bool { return hanging.Load() >= 14 })
	for i := range 20 {
		b.Submit("p1", fmt.Sprint("later-", i))
	}
	b.Settled("p1", map[string]int{"delivered": 40})
	if most.Load() > 15 || ended.Load() != 0 {
		t.Errorf("%d requests hung at once, %d have ended", most.Load(), ended.Load())
	}
	if all, err := b.DeliveryLog().Health(t.Context(), "healthy", "p1"); err != nil || all["p1"].Status() != webhooks.HealthOK {
		t.Errorf("the healthy one is %+v, %v", all, err)
	}
}

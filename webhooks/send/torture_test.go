package send_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/internal/guard"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/hooktest"
	"humanqa/internal/testing/must"
	"humanqa/webhooks/send"
)

// childEnv has this test binary be a dispatcher, with this configuration as JSON.
const childEnv = "HUMANQA_TEST_DISPATCHER"

func beDispatcher() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg := send.Config{Allow: guard.Allow{netip.MustParsePrefix("127.0.0.0/8")}}
	err := json.Unmarshal([]byte(os.Getenv(childEnv)), &cfg)
	if err == nil {
		db, opened := pgpool.Open(ctx, cfg.DSN)
		if err = opened; err == nil {
			err = send.NewDispatcher(db, hooktest.Vault{}, send.Report{}, cfg).Run(ctx)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// child starts a dispatcher in a process of its own, and tells the lease that it will
// take endpoints under.
func (b *bundle) child() (process *os.Process, lease string) {
	b.Helper()
	cfg, err := json.Marshal(map[string]any{
		"DSN": b.Config.DSN, "CAFile": b.Config.CAFile, "Pool": b.Config.Pool, "Timeout": b.Config.Timeout, "Lease": b.Config.Lease, "Retries": b.Config.Retries,
	})
	must.NoError(b, err)
	before := b.listeners()
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(cfg))
	cmd.Stderr = os.Stderr
	must.NoError(b, cmd.Start())
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	b.Eventually("it listens", func() bool {
		for name := range b.listeners() {
			if !before[name] {
				lease = strings.TrimPrefix(name, "webhooks ")
			}
		}
		return lease != ""
	})
	return cmd.Process, lease
}

func (b *bundle) listeners() map[string]bool {
	b.Helper()
	var names []string
	err := b.DB.SelectContext(b.Context(), &names, "SELECT application_name FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'webhooks %'")
	must.NoError(b, err)
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	return all
}

// number asks for one.
func (b *bundle) number(query string, args ...any) (n int) {
	b.Helper()
	must.NoError(b, b.DB.GetContext(b.Context(), &n, query, args...))
	return n
}

// Three processes send; one is killed and one frozen while all wait for answers. The
// third goes on with what the killed one had as soon as its connection is gone, and
// with the rest when the frozen one's leases end. Nothing is lost, jobs stay in order,
// and what the frozen one says when it is back changes nothing.
func TestOfThreeDispatchersOneIsKilledAndOneFreezes(t *testing.T) {
	b := setup(t)
	b.Config.Pool, b.Config.Timeout, b.Config.Lease = 16, 5*time.Minute, 10*time.Minute
	b.Config.Retries = []time.Duration{100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond}
	const projects, jobs, prompt = 60, 3, 100
	var (
		mu      sync.Mutex
		arrived []string // deliveries, each as often as it came
		waiting int
	)
	gate := make(chan struct{})
	e := b.Endpoint(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		arrived = append(arrived, r.Header.Get("X-Service-Delivery"))
		waits := len(arrived) > prompt
		if waits {
			waiting++
		}
		mu.Unlock()
		if !waits {
			return
		}
		select {
		case <-gate:
		case <-r.Context().Done():
		}
		mu.Lock()
		waiting--
		mu.Unlock()
	})
	for p := range projects {
		b.Project(fmt.Sprint("p", p), e.URL, nil)
		for j := range jobs {
			b.Events.Add(domain.JobStream(fmt.Sprint(p, "-", j)), hooktest.Created(fmt.Sprint("p", p)), hooktest.Claimed(), hooktest.Completed())
		}
	}
	killed, killedLease := b.child()
	frozen, frozenLease := b.child()
	b.child()
	b.Subscribe()
	b.Subscribed()

	const underLease = "SELECT coalesce(sum(cardinality(in_flight)), 0) FROM webhooks.endpoints WHERE lease_id = $1 AND leased_until > now()"
	b.Eventually("all three wait for answers", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return b.number("SELECT count(DISTINCT lease_id) FROM webhooks.endpoints") == 3 && waiting == b.number("SELECT sum(cardinality(in_flight)) FROM webhooks.endpoints")
	})
	must.NoError(t, frozen.Signal(syscall.SIGSTOP))
	must.NoError(t, killed.Signal(syscall.SIGSTOP)) // its requests may time out, and it must not settle them, once they are counted
	lost := b.number(underLease, killedLease)
	must.NoError(t, killed.Kill())
	close(gate)
	b.Eventually("the killed one's endpoints are taken over", func() bool { return b.number(underLease, killedLease) == 0 })
	if b.number(underLease, frozenLease) == 0 {
		t.Error("they were taken over when the leases had ended, and no sooner")
	}
	b.Exec("UPDATE webhooks.endpoints SET leased_until = now(), due_at = now() WHERE lease_id = $1", frozenLease) // as after ten minutes
	b.Eventually("everything arrived", func() bool {
		return b.number("SELECT count(*) FROM webhooks.deliveries WHERE state = 'delivered'") == projects*jobs*3
	})
	must.NoError(t, frozen.Signal(syscall.SIGCONT))
	b.Eventually("the frozen one has said what became of its attempts", func() bool {
		return b.number("SELECT count(*) FROM webhooks.attempts WHERE error LIKE 'the outcome is unknown%'") == lost
	})
	if n := b.number("SELECT count(*) FROM webhooks.deliveries WHERE state <> 'delivered'") + b.number("SELECT count(*) FROM webhooks.endpoints WHERE NOT enabled"); n != 0 {
		t.Errorf("%d deliveries and endpoints are not what they were", n)
	}
	var all []struct {
		ID       string `db:"id"`
		Job      string `db:"ordering_key"`
		Revision int    `db:"revision"`
	}
	must.NoError(t, b.DB.SelectContext(t.Context(), &all, "SELECT id, ordering_key, revision FROM webhooks.deliveries ORDER BY ordering_key, revision"))
	mu.Lock()
	defer mu.Unlock()
	for i, d := range all {
		first := slices.Index(arrived, d.ID)
		if first < 0 || i > 0 && all[i-1].Job == d.Job && first < slices.Index(arrived, all[i-1].ID) {
			t.Errorf("event %d of %s came as number %d", d.Revision, d.Job, first)
		}
	}
}

package timers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/policy"
	"humanqa/internal/scheduler"
	"humanqa/internal/testing/logtest"
)

// deeds records what the policies ask for, and answers as the domain would.
type deeds struct {
	policy.Commands
	mu    sync.Mutex
	log   *logtest.Memory
	fails map[string]int             // by job: how often yet
	asked map[string]map[string]bool // by job: the ids of the commands
	fired int
}

func (d *deeds) VoidJob(_ context.Context, cause command.Cause, jobID string) (domain.Position, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fired++
	if d.fails[jobID] > 0 {
		d.fails[jobID]--
		return domain.Position{}, errors.New("no log")
	}
	if d.asked[jobID] == nil {
		d.asked[jobID] = map[string]bool{}
		d.log.Record("job-"+jobID, &job.Voided{AccountID: cause.AccountID})
	}
	d.asked[jobID][cause.CommandID.String()] = true
	return domain.Position{}, nil
}

func (d *deeds) RefundJob(context.Context, command.Cause, string, string) (domain.Position, error) {
	return domain.Position{}, nil
}

func newDeeds(w *world) *deeds {
	return &deeds{log: w.Log, fails: map[string]int{}, asked: map[string]map[string]bool{}}
}

// policiesOf are the policies with timers of the kinds.
func policiesOf(c policy.Commands, kinds ...string) []policy.Policy {
	return slices.DeleteFunc(policy.All(c), func(p policy.Policy) bool { return !slices.Contains(kinds, p.Kind) })
}

// policies runs a node until it is stopped, or the test ends.
func (w *world) policies(timers policy.Timers, d *deeds) (stop func()) {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		scheduler.New(timers, quiet, policiesOf(d, orphans, "missing_refund")...).Run(ctx)
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	w.T.Cleanup(stop)
	return stop
}

func (w *world) settled() int {
	return w.Count("SELECT count(*) FROM policy.leases WHERE kind = $1 AND state = 'settled'", orphans)
}

func TestTwoNodesFireEveryTimerOnceAndLeaveItSettled(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	const timers = 600 // more than a node has places
	for i := range timers {
		w.Log.Record("credits-acc", &credits.Debited{JobID: fmt.Sprint("j", i)})
	}
	w.reachTimers()
	d := newDeeds(w)
	for range 2 {
		w.policies(w.timers(), d)
	}
	w.Eventually("all are settled", func() bool { return w.settled() == timers })
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fired != timers || len(d.asked) != timers {
		t.Errorf("%d firings for %d jobs, want %d each", d.fired, len(d.asked), timers)
	}
}

// cutOff is a node that is killed between firing and settling.
type cutOff struct{ *Timers }

func (cutOff) Settle(context.Context, []policy.Outcome) error { return errors.New("killed") }

func TestANodeThatDiesBeforeItSettlesIsFollowedByTheSameCommand(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	w.Log.Record("credits-acc", &credits.Debited{JobID: "lost"})
	w.reachTimers()
	d := newDeeds(w)
	stop := w.policies(cutOff{w.timers()}, d)
	w.Eventually("it has fired", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.fired == 1 })
	stop()
	if w.settled() != 0 {
		t.Fatal("the timer was settled by a dead node")
	}
	w.endLeases()
	w.policies(w.timers(), d)
	w.Eventually("it is settled", func() bool { return w.settled() == 1 })
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fired != 2 || len(d.asked["lost"]) != 1 {
		t.Errorf("%d firings with the commands %v, want 2 with the same", d.fired, d.asked["lost"])
	}
}

func TestAFailedFiringRestsAndComesBack(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	d := newDeeds(w)
	d.fails["lost"] = 2
	w.policies(w.timers(), d)
	w.Log.Record("credits-acc", &credits.Debited{JobID: "lost"})
	for attempt, rest := range []time.Duration{time.Second, 2 * time.Second} {
		// The rest is cut short so that nobody waits.
		w.Eventually("it rests", func() bool {
			var n int
			err := w.DB.GetContext(w.Ctx(), &n, `SELECT count(*) FROM policy.leases
				WHERE last_error IS NULL AND state = 'failed' AND attempts = $1
				  AND until BETWEEN now() + make_interval(secs => $2) AND now() + make_interval(secs => $3)`,
				attempt+1, rest.Seconds()/2, rest.Seconds())
			return err == nil && n == 1
		})
		w.Exec("UPDATE policy.leases SET until = now()")
	}
	w.Eventually("it is settled", func() bool { return w.settled() == 1 })
	if n := w.Count("SELECT count(*) FROM policy.leases WHERE state = 'settled' AND attempts = 3"); n != 1 {
		t.Error("the lease does not show that the third attempt did it")
	}
}

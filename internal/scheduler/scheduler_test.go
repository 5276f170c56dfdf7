package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"humanqa/domain"
	"humanqa/domain/policy"
	"humanqa/internal/scheduler"
	"humanqa/internal/testing/eventually"
)

// table hands out each timer once and keeps what came of it.
type table struct {
	mu       sync.Mutex
	due      []policy.Timer
	outcomes chan policy.Outcome
	wake     chan struct{}
	renewed  atomic.Int32
	lost     bool // somebody else has taken what is fired
}

func newTable(due ...policy.Timer) *table {
	return &table{due: due, outcomes: make(chan policy.Outcome, 1000), wake: make(chan struct{}, 1)}
}

func (tb *table) add(due ...policy.Timer) {
	tb.mu.Lock()
	tb.due = append(tb.due, due...)
	tb.mu.Unlock()
	tb.wake <- struct{}{}
}

func (tb *table) TakeDue(_ context.Context, kinds []string, limit, _ int, _ time.Duration) (due []policy.Timer, _ error) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.due = slices.DeleteFunc(tb.due, func(t policy.Timer) bool {
		take := slices.Contains(kinds, t.Kind) && len(due) < limit
		if take {
			due = append(due, t)
		}
		return take
	})
	return due, nil
}

func (tb *table) Renew(context.Context, policy.Timer, time.Duration) (held bool, err error) {
	if tb.renewed.Add(1) == 1 {
		return false, errors.New("no database") // it is tried again
	}
	return !tb.lost, nil
}

func (tb *table) Settle(_ context.Context, outcomes []policy.Outcome) error {
	for _, o := range outcomes {
		tb.outcomes <- o
	}
	return nil
}

func (tb *table) Next(context.Context, []string, time.Duration) (time.Duration, bool, error) {
	return 0, false, nil
}
func (tb *table) Wake(context.Context) <-chan struct{} { return tb.wake }
func (tb *table) Forget(context.Context) error         { return nil }

// firing is a policy that does what the test says.
func firing(kind string, fire func(context.Context, policy.Timer) error) policy.Policy {
	return policy.Policy{Kind: kind, Fire: fire}
}

// slowFiring is one that waits for somebody outside.
func slowFiring(fire func(context.Context, policy.Timer) error) policy.Policy {
	return policy.Policy{Kind: "slow", Pool: policy.Pool{Name: "slow", Places: 16, Within: time.Hour, Rest: 5 * time.Minute}, Fire: fire}
}

type silentLog struct{}

func (silentLog) Warnf(string, ...any) {}

func run(t *testing.T, tb *table, policies ...policy.Policy) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); scheduler.New(tb, silentLog{}, policies...).Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

func (tb *table) outcome(t *testing.T) policy.Outcome {
	t.Helper()
	select {
	case o := <-tb.outcomes:
		return o
	case <-time.After(eventually.Patience):
		t.Fatal("no outcome came")
		return policy.Outcome{}
	}
}

func TestWhatAFiringLeadsTo(t *testing.T) {
	t.Parallel()
	broken := errors.New("no log")
	for name, c := range map[string]struct {
		err     error
		attempt int
		final   bool
		retry   time.Duration
		pool    policy.Pool
	}{
		"done":                           {nil, 1, false, 0, policy.Pool{}},
		"a first failure rests a second": {broken, 1, false, time.Second, policy.Pool{}},
		"the fourth rests longer":        {broken, 4, false, 8 * time.Second, policy.Pool{}},
		"and never longer than the log may be away unnoticed": {broken, 60, false, 20 * time.Second, policy.Pool{}},
		"a stranger's server rests longer":                    {broken, 60, false, time.Hour, policy.Pool{Name: "slow", Places: 1, Within: time.Minute, Rest: time.Hour}},
		"unavailable is a failure":                            {domain.Unavailable(broken), 2, false, 2 * time.Second, policy.Pool{}},
		"a refusal is an answer":                              {fmt.Errorf("fire: %w", domain.Conflict("the job is completed")), 1, true, 0, policy.Pool{}},
		"nothing there is an answer":                          {domain.NotFound("job"), 1, true, 0, policy.Pool{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb := newTable(policy.Timer{Kind: "k", Attempt: c.attempt})
			fire := firing("k", func(context.Context, policy.Timer) error { return c.err })
			fire.Pool = c.pool
			run(t, tb, fire)
			o := tb.outcome(t)
			if !errors.Is(o.Err, c.err) || o.Final != c.final || o.Retry != c.retry {
				t.Errorf("outcome: %+v, want final %v, retry %v", o, c.final, c.retry)
			}
		})
	}
}

func TestAPanicIsOneTimersFailure(t *testing.T) {
	t.Parallel()
	tb := newTable(policy.Timer{Kind: "k", Key: "bad", Attempt: 1}, policy.Timer{Kind: "k", Key: "good", Attempt: 1})
	run(t, tb, firing("k", func(_ context.Context, timer policy.Timer) error {
		if timer.Key == "bad" {
			panic("poison")
		}
		return nil
	}))
	for range 2 {
		if o := tb.outcome(t); (o.Err != nil) != (o.Key == "bad") || o.Final {
			t.Errorf("outcome: %+v", o)
		}
	}
}

func TestSlowTimersKeepNobodyWaiting(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	tb := newTable()
	for range 100 {
		tb.due = append(tb.due, policy.Timer{Kind: "slow"})
	}
	tb.due = append(tb.due, policy.Timer{Kind: "fast"})
	var mu sync.Mutex
	most, now := 0, 0
	run(t, tb,
		slowFiring(func(context.Context, policy.Timer) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			<-release
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		}),
		firing("fast", func(context.Context, policy.Timer) error { return nil }),
	)
	if o := tb.outcome(t); o.Kind != "fast" {
		t.Fatalf("the first outcome is %+v", o)
	}
	close(release)
	for range 100 {
		tb.outcome(t)
	}
	mu.Lock()
	defer mu.Unlock()
	if most > 16 {
		t.Errorf("%d slow firings at once, want at most 16", most)
	}
}

func TestAFiringThatIsSlowHoldsUpNoOtherOfItsKind(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	tb := newTable(policy.Timer{Kind: "k", Key: "hangs"})
	run(t, tb, firing("k", func(_ context.Context, timer policy.Timer) error {
		if timer.Key == "hangs" {
			<-release
		}
		return nil
	}))
	defer close(release)
	tb.add(policy.Timer{Kind: "k", Key: "next"})
	if o := tb.outcome(t); o.Key != "next" {
		t.Errorf("the first outcome is %+v", o)
	}
}

func TestAStopGivesBackWhatItCutsOff(t *testing.T) {
	t.Parallel()
	firingNow := make(chan struct{})
	tb := newTable(policy.Timer{Kind: "k", Attempt: 3})
	stop := run(t, tb, firing("k", func(ctx context.Context, _ policy.Timer) error {
		close(firingNow)
		<-ctx.Done()
		return ctx.Err()
	}))
	<-firingNow
	stop()
	if o := tb.outcome(t); !errors.Is(o.Err, context.Canceled) || o.Final || o.Retry != 0 {
		t.Errorf("outcome: %+v, want it to be anybody's at once", o)
	}
}

func TestAFiringThatGoesOnKeepsItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(policy.Timer{Kind: "slow"})
		run(t, tb, slowFiring(func(context.Context, policy.Timer) error {
			time.Sleep(40 * time.Second)
			return nil
		}))
		if o := tb.outcome(t); o.Err != nil || tb.renewed.Load() < 10 {
			t.Errorf("renewed %d times, then %+v", tb.renewed.Load(), o)
		}
		was := tb.renewed.Load()
		time.Sleep(time.Minute)
		if is := tb.renewed.Load(); is != was {
			t.Errorf("renewed %d times after its end", is-was)
		}
	})
}

func TestAFiringEndsWhereAnotherNodeHasTakenItsTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(policy.Timer{Kind: "slow"})
		tb.lost = true
		began := time.Now()
		run(t, tb, slowFiring(func(ctx context.Context, _ policy.Timer) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		if o := tb.outcome(t); o.Err == nil || o.Final || time.Since(began) > 10*time.Second {
			t.Errorf("after %s: %+v", time.Since(began), o)
		}
	})
}

package workloop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/workloop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = eventually.Patience

// desk hands out each item once and keeps what was settled.
type desk struct {
	do func(ctx context.Context, item string) string

	mu      sync.Mutex
	due     []string
	settled []string
	broken  error         // what settling fails with
	changed chan struct{} // something was settled
	wake    chan struct{}
}

func newDesk(do func(context.Context, string) string) *desk {
	return &desk{do: do, changed: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
}

func (d *desk) add(items ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.due = append(d.due, items...)
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *desk) Take(_ context.Context, limit int) ([]string, time.Duration, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(limit, len(d.due))
	batch := slices.Clone(d.due[:n])
	d.due = d.due[n:]
	return batch, -1, nil
}

func (d *desk) Do(ctx context.Context, item string) string { return d.do(ctx, item) }

func (d *desk) Settle(_ context.Context, done []string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return false, d.broken
	}
	d.settled = append(d.settled, done...)
	select {
	case d.changed <- struct{}{}:
	default:
	}
	return false, nil
}

func (d *desk) Urgent(done string) bool { return done == "urgent" }

func (d *desk) repair(broken error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = broken
}

// wait waits until all of these, and nothing else, were settled.
func (d *desk) wait(t *testing.T, want ...string) {
	t.Helper()
	over := time.NewTimer(patience)
	defer over.Stop()
	for {
		d.mu.Lock()
		got := slices.Sorted(slices.Values(d.settled))
		d.mu.Unlock()
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-d.changed:
		case <-over.C:
			t.Fatalf("settled %v, want %v", got, want)
		}
	}
}

// notes keeps what a loop complains about.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) Warnf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

func (n *notes) have(part string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.lines, func(line string) bool { return strings.Contains(line, part) })
}

func start(t *testing.T, d *desk, change func(*workloop.Config)) (loop *workloop.Loop[string, string], log *notes, stop func()) {
	t.Helper()
	log = &notes{}
	cfg := workloop.Config{Name: "test", Places: 4, Lease: time.Hour, Poll: time.Hour, Log: log}
	if change != nil {
		change(&cfg)
	}
	loop = workloop.New(d, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); loop.Run(ctx, d.wake) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return loop, log, stop
}

func TestWhatIsDueIsDoneAndSettled(t *testing.T) {
	t.Parallel()
	d := newDesk(func(_ context.Context, item string) string { return item + "!" })
	d.add("a", "b", "c", "d", "e", "f", "g") // more than there are places
	start(t, d, nil)
	d.wait(t, "a!", "b!", "c!", "d!", "e!", "f!", "g!")
	d.add("h")
	d.wait(t, "a!", "b!", "c!", "d!", "e!", "f!", "g!", "h!")
}

func TestAPlaceComesBackWhenItsLeaseEndsWhateverTheCodeInItDoes(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	d := newDesk(func(_ context.Context, item string) string {
		if item == "stuck" {
			<-release // deaf to its context
		}
		return item
	})
	d.add("stuck", "stuck", "stuck", "stuck", "other")
	loop, log, _ := start(t, d, func(c *workloop.Config) { c.Lease = 50 * time.Millisecond })
	d.wait(t, "other")
	eventually.True(t, "all four are counted", func() bool {
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(loop)
		families, err := reg.Gather()
		must.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "humanqa_work_abandoned_total" {
				return f.GetMetric()[0].GetCounter().GetValue() == 4
			}
		}
		return false
	})
	if !log.have("goes on after its lease") {
		t.Error("nobody is told of code that outlives its lease")
	}
	close(release) // what came late is settled all the same
	d.wait(t, "other", "stuck", "stuck", "stuck", "stuck")
}

// places is how many items are under way.
func places(t *testing.T, loop *workloop.Loop[string, string]) float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(loop)
	families, err := reg.Gather()
	must.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "humanqa_work_busy" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("no such metric")
	return 0
}

func TestWithNothingToTakeWhatEndsWaitsForMore(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	d := newDesk(func(_ context.Context, item string) string {
		<-end
		return item
	})
	d.due = []string{"a", "b", "c"} // nobody is woken: there is one look
	loop, _, _ := start(t, d, func(c *workloop.Config) { c.Gather, c.Places = time.Hour, 8*2 })
	end <- struct{}{} // the last look found something, so this one does not wait
	eventually.True(t, "the first is settled", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.settled) == 1
	})
	close(end)
	eventually.True(t, "all have ended", func() bool { return places(t, loop) == 0 })
	d.mu.Lock()
	if len(d.settled) != 1 {
		t.Errorf("settled %v", d.settled)
	}
	d.mu.Unlock()
	d.add("d") // there is something to take
	d.wait(t, "a", "b", "c", "d")

	hand := func(items ...string) { loop.Hand(items, time.Now().Add(time.Hour)) }
	hand("e", "f")
	eventually.True(t, "both have ended", func() bool { return places(t, loop) == 0 })
	d.mu.Lock()
	if len(d.settled) != 4 {
		t.Errorf("settled %v", d.settled)
	}
	d.mu.Unlock()
	hand("urgent")
	d.wait(t, "a", "b", "c", "d", "e", "f", "urgent")
	hand("g", "h", "i") // more than an eighth of the places
	d.wait(t, "a", "b", "c", "d", "e", "f", "g", "h", "i", "urgent")
}

func TestWhatIsHandedOverBeginsAtOnceWhileTheLoopRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(func(_ context.Context, item string) string { return item })
	if workloop.New(d, workloop.Config{Places: 1}).Hand([]string{"early"}, time.Now().Add(time.Hour)) {
		t.Error("a loop that does not run took something")
	}
	loop, _, stop := start(t, d, nil)
	eventually.True(t, "it runs", func() bool { return loop.Hand(nil, time.Now()) })
	loop.Hand([]string{"a", "b"}, time.Now().Add(time.Hour))
	d.wait(t, "a", "b")
	stop()
	if loop.Hand([]string{"late"}, time.Now().Add(time.Hour)) {
		t.Error("a loop that has ended took something")
	}
}

func TestAPoolWithoutMovementSaysSo(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	d := newDesk(func(_ context.Context, item string) string { <-release; return item })
	loop, _, _ := start(t, d, func(c *workloop.Config) { c.Lease = 20 * time.Millisecond; c.Places = 1 })
	if p := loop.Problem(); p != "" {
		t.Errorf("an idle pool has the problem %q", p)
	}
	deadline := time.Now().Add(patience)
	for loop.Stalled() == 0 {
		d.add("stuck") // each takes the place of the one before, whose lease has ended
		if time.Now().After(deadline) {
			t.Fatal("a pool in which nothing ends has no problem")
		}
		<-time.After(time.Millisecond)
	}
	close(release)
	for loop.Problem() != "" {
		if time.Now().After(deadline) {
			t.Fatalf("a pool that moves again has the problem %q", loop.Problem())
		}
		<-time.After(time.Millisecond)
	}
}

// fullLog is a log whose pipe is full.
type fullLog struct{ emptied chan struct{} }

func (f fullLog) Warnf(string, ...any) { <-f.emptied }

// A reader of the log that stands still holds the loop's own goroutine, too.
func TestAPoolSaysThatItStandsStillWhileItsLogDoes(t *testing.T) {
	t.Parallel()
	emptied := make(chan struct{})
	d := newDesk(func(_ context.Context, item string) string { <-emptied; return item })
	d.add("logs")
	loop, _, _ := start(t, d, func(c *workloop.Config) {
		c.Lease, c.Poll, c.Log = 20*time.Millisecond, 10*time.Millisecond, fullLog{emptied}
	})
	empty := sync.OnceFunc(func() { close(emptied) })
	t.Cleanup(empty)
	eventually.True(t, "it has the problem for longer than three leases", func() bool { return loop.Stalled() > 3*loop.Lease })
	empty()
	d.wait(t, "logs")
	if p := loop.Problem(); p != "" {
		t.Errorf("a pool that moves again has the problem %q", p)
	}
}

// The loop may stand still with nothing under way: then nothing that is due is taken.
func TestALoopThatStandsStillSaysSo(t *testing.T) {
	t.Parallel()
	d := newDesk(func(_ context.Context, item string) string { return item })
	loop, _, _ := start(t, d, func(c *workloop.Config) { c.Lease, c.Poll = 20*time.Millisecond, 10*time.Millisecond })
	d.mu.Lock() // Take waits
	eventually.True(t, "it says so", func() bool { return loop.Problem() != "" })
	d.mu.Unlock()
	eventually.True(t, "it moves again", func() bool { return loop.Problem() == "" })
}

func TestAPanicEndsOneItem(t *testing.T) {
	t.Parallel()
	d := newDesk(func(_ context.Context, item string) string {
		if item == "bad" {
			panic("poison")
		}
		return item
	})
	d.add("bad", "bad", "bad", "bad", "bad", "good")
	_, log, _ := start(t, d, nil)
	d.wait(t, "good")
	if !log.have("panic: poison") {
		t.Error("nobody is told of a panic")
	}
}

func TestOutcomesThatCannotBeWrittenAreKept(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 10)
	d := newDesk(func(_ context.Context, item string) string { began <- struct{}{}; return item })
	d.repair(errors.New("no database"))
	d.add("a")
	_, log, _ := start(t, d, nil)
	<-began
	for deadline := time.Now().Add(patience); !log.have("settle: no database"); {
		if time.Now().After(deadline) {
			t.Fatal("the failure is not told")
		}
		<-time.After(time.Millisecond)
	}
	d.repair(nil)
	d.wait(t, "a")
}

// An outcome that the database refuses again and again must not keep all others
// from being written.
func TestAnOutcomeThatNeverCanBeWrittenIsGivenUpWithItsLease(t *testing.T) {
	t.Parallel()
	var d *desk
	d = newDesk(func(_ context.Context, item string) string {
		if item == "good" {
			d.repair(nil)
		}
		return item
	})
	d.repair(errors.New("no such value"))
	d.add("bad", "bad", "bad", "bad")
	start(t, d, func(c *workloop.Config) { c.Lease = 20 * time.Millisecond })
	// All places are the bad ones' until their leases end.
	d.add("good")
	over := time.Now().Add(patience)
	for {
		d.mu.Lock()
		done := slices.Contains(d.settled, "good")
		d.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(over) {
			t.Fatal("the good one was never done")
		}
		<-time.After(time.Millisecond)
	}
}

func TestAStopGivesWhatIsUnderWayTimeToEnd(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	d := newDesk(func(_ context.Context, item string) string { close(began); <-release; return item })
	d.add("a")
	_, _, stop := start(t, d, func(c *workloop.Config) { c.Drain = time.Hour })
	<-began
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	close(release)
	<-stopped
	d.wait(t, "a")
}

func TestAStopEndsTheContextOfWhatTakesTooLong(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	d := newDesk(func(ctx context.Context, _ string) string {
		close(began)
		<-ctx.Done()
		return context.Cause(ctx).Error()
	})
	d.add("a")
	_, _, stop := start(t, d, nil)
	<-began
	stop()
	d.wait(t, workloop.ErrStopped.Error())
}

// silentDesk gets no answer from its database.
type silentDesk struct{ *desk }

func (silentDesk) Settle(ctx context.Context, _ []string) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

func TestAStopTellsOfOutcomesThatItCouldNotWriteInTime(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	d := newDesk(func(ctx context.Context, item string) string {
		close(began)
		<-ctx.Done()
		return item
	})
	d.add("a")
	var log notes
	loop := workloop.New(silentDesk{d}, workloop.Config{Name: "test", Places: 1, Lease: time.Hour, Poll: time.Hour, Log: &log})
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-began; stop() }()
	loop.Run(ctx, d.wake)
	if !log.have("test: settle: context deadline exceeded") {
		t.Errorf("nobody is told of what was left to its lease: %v", log.lines)
	}
}

func TestAStopIsBoundedWhateverTheCodeInAPlaceDoes(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}, 1), make(chan struct{})
	defer close(release)
	d := newDesk(func(_ context.Context, item string) string {
		if item == "stuck" {
			began <- struct{}{}
			<-release
		}
		return item
	})
	d.add("fine", "stuck")
	_, log, stop := start(t, d, nil)
	<-began
	d.wait(t, "fine")
	stop()
	if !log.have("1 items go on although they were told to stop") {
		t.Errorf("nobody is told of what was left behind: %v", log.lines)
	}
}

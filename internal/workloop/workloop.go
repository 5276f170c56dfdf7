package workloop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrStopped is the cause with which an item's context ends when the loop stops.
var ErrStopped = errors.New("the service stopped")

const (
	// faultWait is how long a failing database is left alone.
	faultWait = 500 * time.Millisecond
	// lookAgain is the least time between two looks that found nothing: items that
	// another node is about to take stay due.
	lookAgain = 10 * time.Millisecond
	// gatherPart is the part of the places that may wait to be settled with more.
	gatherPart = 8
	// grace is how long code may go on after its context has ended at a stop,
	// and lastSettle how long the last outcomes may take to be written.
	grace      = time.Second
	lastSettle = 2 * time.Second
)

// Work is the work of a loop: items T with outcomes R. Take and Settle are called
// by one goroutine, Do by many.
type Work[T, R any] interface {
	// Take leases up to limit due items to the caller. next is when to look
	// again at the latest; negative: nothing is scheduled.
	Take(ctx context.Context, limit int) (due []T, next time.Duration, err error)
	// Do does one item. It keeps to a time of its own, shorter than the lease;
	// its context ends at a stop, with ErrStopped as the cause.
	Do(ctx context.Context, item T) R
	// Settle writes the outcomes of items. It passes over an outcome whose item another
	// process has taken meanwhile. After an error the same outcomes are settled again.
	// more says that others may have got due.
	Settle(ctx context.Context, done []R) (more bool, err error)
}

// Exchanger is Work that settles and takes in one step, for less than both cost. The loop
// uses it while there is something to take, as far as the loop knows.
type Exchanger[T, R any] interface {
	Work[T, R]
	// Exchange is Settle, of at least one outcome, and then Take. After an error
	// nothing was done, and the loop settles and takes by themselves.
	Exchange(ctx context.Context, done []R, limit int) (due []T, next time.Duration, err error)
}

// Urgent is Work with outcomes that are settled at once, whatever Config.Gather says.
type Urgent[R any] interface {
	// Urgent is asked of each outcome.
	Urgent(done R) bool
}

// Log is where a loop reports failures.
type Log interface {
	Warnf(format string, args ...any)
}

// Config holds the settings of a loop.
type Config struct {
	// Name tells the loop from others in logs and metrics.
	Name string
	// Places is how many items are done at once.
	Places int
	// Lease is how long an item belongs to the process that took it.
	Lease time.Duration
	// Drain is how long a stop waits before it ends the items' context.
	Drain time.Duration
	// Poll is the longest time between two looks for due items.
	Poll time.Duration
	// Gather is how long ended items wait for more, so that they settle together, while
	// there is nothing to take.
	Gather time.Duration
	Log    Log
}

// Loop does work until it is stopped. Its goroutine owns all fields but those of
// stats, and those under the lock.
type Loop[T, R any] struct {
	Config
	work    Work[T, R]
	results chan result[R]
	ended   chan struct{} // closed when results are no longer taken
	done    []outcome[R]  // ended, not settled
	urgent  bool          // one of done is urgent
	taking  bool          // the last look found something
	stats   stats

	mu      sync.Mutex      // guards the rest
	doing   context.Context // of the items; nil while the loop does not run
	lastID  uint64
	running map[uint64]*time.Timer // items in their places; the timers end their leases
	overdue time.Time              // when last a lease ended before its item
}

// result is the report of a place: an outcome, a panic, or the end of the lease.
type result[R any] struct {
	outcome[R]
	id   uint64
	what report
}

type report int

const (
	finished report = iota
	panicked
	overdue
)

type outcome[R any] struct {
	value R
	until time.Time // when its lease ends
}

// New makes a loop; Run starts it, once.
func New[T, R any](work Work[T, R], cfg Config) *Loop[T, R] {
	l := &Loop[T, R]{
		Config: cfg, work: work,
		results: make(chan result[R], cfg.Places), ended: make(chan struct{}),
		running: make(map[uint64]*time.Timer),
	}
	l.stats.moved.Store(time.Now().UnixNano())
	return l
}

// Run works until ctx ends, and then drains. wake, which may be nil, says that
// something may be due.
func (l *Loop[T, R]) Run(ctx context.Context, wake <-chan struct{}) {
	defer close(l.ended)
	doing, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(ErrStopped)
	l.mu.Lock()
	l.doing = doing
	l.mu.Unlock()
	look := time.NewTimer(0)
	defer look.Stop()
	full := false                 // the last look may have left something for want of places
	var gathered <-chan time.Time // set while ended items wait to be settled with more
	for {
		l.stats.looked.Store(time.Now().UnixNano())
		due := full
		select {
		case <-ctx.Done():
			l.stats.looked.Store(0)
			l.drainItems(ctx, abort)
			return
		case r := <-l.results:
			l.collectResults(r)
			if !full && !l.taking && l.Gather > 0 && len(l.done) > 0 && len(l.done) <= l.Places/gatherPart && !l.urgent {
				if gathered == nil {
					gathered = time.After(l.Gather)
				}
				continue
			}
		case <-gathered:
		case <-wake:
			due = true
		case <-look.C:
			due = true
		}
		gathered = nil
		if due || l.taking {
			if again, exchanged := l.settleAndTake(ctx); exchanged {
				full = l.freePlaces() == 0
				look.Reset(again)
				continue
			}
		}
		more, settleErr := l.settleDone(ctx, l.Lease)
		if !due && !more && settleErr == nil {
			l.taking = false
			continue
		}
		again, takeErr := l.takeItems(ctx)
		full = l.freePlaces() == 0
		if settleErr != nil {
			again = min(again, faultWait)
			if takeErr == nil && !full {
				l.dropExpired() // the database works, so it is not the cause
			}
		}
		look.Reset(again)
	}
}

// freePlaces is the number of free places. An item that waits to be settled keeps its
// place until its lease ends.
func (l *Loop[T, R]) freePlaces() int {
	free, now := l.Places-l.busyPlaces(), time.Now()
	for _, o := range l.done {
		if o.until.After(now) {
			free--
		}
	}
	return max(free, 0)
}

// takeItems starts due items, as far as there are places, and says when to look again.
func (l *Loop[T, R]) takeItems(ctx context.Context) (again time.Duration, err error) {
	free := l.freePlaces()
	if free == 0 {
		return l.Poll, nil // a result, or the end of a lease, comes first
	}
	within, cancel := context.WithTimeout(ctx, l.Lease) // later it would be worth nothing
	defer cancel()
	until := time.Now().Add(l.Lease)
	due, next, err := l.work.Take(within, free)
	if err != nil {
		l.warn(ctx, "take", err)
		return faultWait, err
	}
	return l.startItems(due, until, next), nil
}

// startItems starts the items that were taken, and says when to look again.
func (l *Loop[T, R]) startItems(due []T, until time.Time, next time.Duration) (again time.Duration) {
	l.Hand(due, until)
	l.taking = len(due) > 0
	switch {
	case next < 0 || next > l.Poll:
		return l.Poll
	case len(due) == 0:
		return max(next, lookAgain)
	}
	return next
}

// Hand starts items that are leased to this loop until then, by Take or by a
// caller that bounds their number. Any goroutine may call it while the loop runs; false
// says that the loop does not run.
func (l *Loop[T, R]) Hand(items []T, until time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.doing == nil {
		return false
	}
	// An item that is taken again after the end of its lease is no beginning.
	if len(items) > 0 && len(l.running) == 0 && time.Since(l.overdue) > l.Lease {
		l.stats.moved.Store(time.Now().UnixNano())
	}
	for _, item := range items {
		l.startItem(l.doing, item, until)
	}
	l.stats.busy.Store(int64(len(l.running)))
	return true
}

// startItem wants the lock held.
func (l *Loop[T, R]) startItem(doing context.Context, item T, until time.Time) {
	l.lastID++
	id := l.lastID
	l.running[id] = time.AfterFunc(time.Until(until), func() { l.reportResult(result[R]{id: id, what: overdue}) })
	go func() {
		r := result[R]{id: id, what: panicked, outcome: outcome[R]{until: until}}
		defer func() {
			if p := recover(); p != nil {
				l.Log.Warnf("%s: panic: %v\n%s", l.Name, p, debug.Stack())
			}
			l.reportResult(r)
		}()
		r.value = l.work.Do(doing, item)
		r.what = finished
	}()
}

// busyPlaces is the number of places that are taken.
func (l *Loop[T, R]) busyPlaces() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.running)
}

// freePlace gives a place back, once.
func (l *Loop[T, R]) freePlace(id uint64, what report) (held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lease, held := l.running[id]
	if held {
		if what == overdue {
			l.overdue = time.Now()
		}
		lease.Stop()
		delete(l.running, id)
		l.stats.busy.Store(int64(len(l.running)))
	}
	return held
}

func (l *Loop[T, R]) reportResult(r result[R]) {
	select {
	case l.results <- r:
	case <-l.ended:
	}
}

// collectResults takes everything that is reported by now.
func (l *Loop[T, R]) collectResults(r result[R]) {
	for {
		held := l.freePlace(r.id, r.what)
		switch {
		case r.what == finished:
			l.done = append(l.done, r.outcome)
			if work, able := l.work.(Urgent[R]); able && work.Urgent(r.value) {
				l.urgent = true
			}
			l.stats.moved.Store(time.Now().UnixNano())
		case r.what == overdue && held:
			l.stats.abandoned.Add(1)
			l.Log.Warnf("%s: something goes on after its lease of %s; its place is given to others", l.Name, l.Lease)
		}
		select {
		case r = <-l.results:
		default:
			return
		}
	}
}

// settleDone settles the items that have ended. It keeps outcomes that cannot be written within
// the limit.
func (l *Loop[T, R]) settleDone(ctx context.Context, limit time.Duration) (more bool, err error) {
	if len(l.done) == 0 {
		return false, nil
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if more, err = l.work.Settle(within, l.doneValues()); err != nil {
		l.warn(ctx, "settle", err)
		return false, err
	}
	l.done, l.urgent = l.done[:0], false
	return more, nil
}

// settleAndTake does both where the work can, and there is something to settle. If that
// fails the loop tries each by itself: the fault of one may not be a fault of the other.
func (l *Loop[T, R]) settleAndTake(ctx context.Context) (again time.Duration, exchanged bool) {
	work, able := l.work.(Exchanger[T, R])
	free := l.Places - l.busyPlaces()
	if !able || len(l.done) == 0 || free <= 0 {
		return 0, false
	}
	within, cancel := context.WithTimeout(ctx, l.Lease)
	defer cancel()
	until := time.Now().Add(l.Lease)
	due, next, err := work.Exchange(within, l.doneValues(), free)
	if err != nil {
		l.warn(ctx, "exchange", err)
		return 0, false
	}
	l.done, l.urgent = l.done[:0], false
	return l.startItems(due, until, next), true
}

func (l *Loop[T, R]) doneValues() []R {
	values := make([]R, len(l.done))
	for i, o := range l.done {
		values[i] = o.value
	}
	return values
}

// dropExpired drops outcomes that could not be written before their leases ended:
// any process may take their items.
func (l *Loop[T, R]) dropExpired() {
	now := time.Now()
	l.done = slices.DeleteFunc(l.done, func(o outcome[R]) bool { return o.until.Before(now) })
}

func (l *Loop[T, R]) warn(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		l.Log.Warnf("%s: %s: %v", l.Name, what, err)
	}
}

// drainItems waits for items in progress, ends those that take too long, and settles all.
// An item that cannot be settled keeps its lease, which runs out.
func (l *Loop[T, R]) drainItems(ctx context.Context, abort context.CancelCauseFunc) {
	patience := time.AfterFunc(l.Drain, func() { abort(ErrStopped) })
	defer patience.Stop()
	over := time.NewTimer(l.Drain + grace)
	defer over.Stop()
	for waiting := true; waiting && l.busyPlaces() > 0; {
		select {
		case r := <-l.results:
			l.collectResults(r)
		case <-over.C:
			l.Log.Warnf("%s: %d items go on although they were told to stop; they are left to their leases", l.Name, l.busyPlaces())
			waiting = false
		}
	}
	l.mu.Lock()
	l.doing = nil
	for _, lease := range l.running {
		lease.Stop()
	}
	l.mu.Unlock()
	_, _ = l.settleDone(context.WithoutCancel(ctx), lastSettle) // it has complained
}

// stats is read by others while the loop runs.
type stats struct {
	busy, abandoned atomic.Int64
	moved           atomic.Int64 // Unix nanoseconds: when last something ended by itself, or began in an empty pool
	looked          atomic.Int64 // Unix nanoseconds: when the loop last came round; 0 while it does not run
}

// Stalled is how long no item has ended by itself while one is in progress, or how long
// the loop itself has stood still. It is zero within the time of a lease.
func (l *Loop[T, R]) Stalled() time.Duration {
	if still := time.Since(time.Unix(0, l.stats.moved.Load())); l.stats.busy.Load() > 0 && still >= l.Lease {
		return still
	}
	looked := l.stats.looked.Load()
	// It rests for Poll at most, and settles and takes within a lease each.
	if still := time.Since(time.Unix(0, looked)); looked != 0 && still > l.Poll+2*l.Lease {
		return still
	}
	return 0
}

// Problem says what is wrong with the pool; empty: nothing.
func (l *Loop[T, R]) Problem() string {
	if still := l.Stalled(); still > 0 {
		return fmt.Sprintf("nothing has moved in the pool %s for %s: %d of %d places are taken",
			l.Name, still.Round(time.Second), l.stats.busy.Load(), l.Places)
	}
	return ""
}

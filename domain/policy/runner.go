package policy

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"humanqa/domain"
)

// Outcome is what came of a firing. Err nil settles the timer; otherwise it
// comes back after Retry. Final settles it although Err says why nothing was
// done.
type Outcome struct {
	Timer
	Err   error
	Final bool
	Retry time.Duration
}

// Timers are the rows that the projector keeps, and the leases on them.
type Timers interface {
	// TakeDue leases up to limit due timers of the kinds to the caller; no
	// other node gets them until the lease ends.
	TakeDue(ctx context.Context, kinds []string, limit int, lease time.Duration) ([]Timer, error)
	// Settle ends the leases of what was fired. An outcome whose lease has ended
	// meanwhile is passed over.
	Settle(ctx context.Context, outcomes []Outcome) error
	// Next says how long it is until a timer of the kinds gets due, as things
	// stand; false: none will.
	Next(ctx context.Context, kinds []string) (time.Duration, bool, error)
	// Wake gives a channel that says when timers were set.
	Wake(ctx context.Context) <-chan struct{}
	// Forget drops what is kept of leases whose timers are long gone.
	Forget(ctx context.Context) error
}

// Log is where the runner says what went wrong.
type Log interface {
	Warnf(format string, args ...any)
}

const (
	fastPlaces   = 256 // commands at once; they gather in the log's group commit
	fastWithin   = 15 * time.Second
	slowPlaces   = 16
	lookAgain    = 5 * time.Second // the safety look: nothing waits for it
	troublePause = time.Second     // after Postgres refused
	settleTime   = 5 * time.Second
	maxBackoff   = 5 * time.Minute
	forgetEvery  = 10 * time.Minute
)

// Run fires due timers until the context ends. It may run on any number of
// nodes. Slow policies have lanes of their own.
func Run(ctx context.Context, timers Timers, log Log, policies ...Policy) {
	lanes := make(map[time.Duration]*lane)
	for _, p := range policies {
		within, places := fastWithin, fastPlaces
		if s, ok := p.(Slow); ok {
			within, places = s.FiresWithin(), slowPlaces
		}
		l := lanes[within]
		if l == nil {
			l = &lane{
				timers: timers, log: log, within: within, free: places, policies: map[string]Policy{},
				wake: make(chan struct{}, 1), results: make(chan Outcome, places),
			}
			lanes[within] = l
		}
		l.policies[p.Kind()] = p
		l.kinds = append(l.kinds, p.Kind())
	}
	var running sync.WaitGroup
	for _, l := range lanes {
		running.Go(func() { l.run(ctx) })
	}
	defer running.Wait()

	wake, upkeep := timers.Wake(ctx), time.NewTicker(forgetEvery)
	defer upkeep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
			for _, l := range lanes {
				select {
				case l.wake <- struct{}{}:
				default: // it will look anyway
				}
			}
		case <-upkeep.C:
			if err := timers.Forget(ctx); err != nil && ctx.Err() == nil {
				log.Warnf("policy: %v", err)
			}
		}
	}
}

// lane fires the timers of policies that take about as long. Its goroutine
// alternates between settling what was fired and taking what is due: while one
// round talks to the database more firings end, so batches grow with the load.
type lane struct {
	timers   Timers
	log      Log
	policies map[string]Policy
	kinds    []string
	within   time.Duration // how long a lease lasts, and a Fire may take
	wake     chan struct{}
	results  chan Outcome // as large as there are places: a firing never waits for it

	free     int // places
	fired    []Outcome
	inFlight int
}

func (l *lane) run(ctx context.Context) {
	look := time.NewTimer(0)
	defer look.Stop()
	full := false // the last look found more than there were places
	for {
		due := full
		select {
		case <-ctx.Done():
			l.drain(ctx)
			return
		case o := <-l.results:
			l.gather(o)
		case <-l.wake:
			due = true
		case <-look.C:
			due = true
		}
		l.settle(ctx)
		if !due {
			continue
		}
		var again time.Duration
		full, again = l.take(ctx)
		look.Reset(again)
	}
}

// take starts what is due, as far as there are places, and says when to look
// again.
func (l *lane) take(ctx context.Context) (full bool, again time.Duration) {
	if l.free == 0 {
		return true, lookAgain
	}
	// Asked first: what gets due in between is taken, what gets due later is
	// known of.
	next, any, err := l.timers.Next(ctx, l.kinds)
	if err != nil {
		return false, l.trouble(ctx, err)
	}
	due, err := l.timers.TakeDue(ctx, l.kinds, l.free, l.within)
	if err != nil {
		return false, l.trouble(ctx, err)
	}
	for _, t := range due {
		l.free--
		l.inFlight++
		go func() { l.results <- l.fire(ctx, t) }()
	}
	again = lookAgain
	if any {
		again = min(again, next)
	}
	return l.free == 0, again
}

func (l *lane) trouble(ctx context.Context, err error) time.Duration {
	if ctx.Err() == nil {
		l.log.Warnf("policy: %v", err)
	}
	return troublePause
}

func (l *lane) fire(ctx context.Context, t Timer) (o Outcome) {
	o.Timer = t
	firing, cancel := context.WithTimeout(ctx, l.within)
	defer cancel()
	defer func() {
		// One poisoned timer must not end the service, and the next, and the next.
		if p := recover(); p != nil {
			o.Err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		switch {
		case o.Err == nil:
			return
		case ctx.Err() != nil:
			return // this node stops; another takes it over at once
		case answered(o.Err):
			o.Final = true
		default:
			o.Retry = backoff(t.Attempt)
		}
		l.log.Warnf("policy: fire %s %s: %v", t.Kind, t.Key, o.Err)
	}()
	o.Err = l.policies[t.Kind].Fire(firing, t)
	return o
}

// answered says that the domain refused: the same question would get the same
// answer.
func answered(err error) bool {
	var refusal *domain.Error
	return errors.As(err, &refusal) && refusal.Kind != domain.KindUnavailable && refusal.Kind != domain.KindRateLimited
}

// backoff is how long a timer rests after its n-th failed firing.
func backoff(attempt int) time.Duration {
	return min(time.Second<<min(max(attempt, 1)-1, 16), maxBackoff)
}

// gather collects what has been fired by now.
func (l *lane) gather(o Outcome) {
	for {
		l.free++
		l.inFlight--
		l.fired = append(l.fired, o)
		select {
		case o = <-l.results:
		default:
			return
		}
	}
}

// settle writes down what was fired. A failure leaves the leases to end by
// themselves: the timers come back, and firing them again changes nothing.
func (l *lane) settle(ctx context.Context) {
	if len(l.fired) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err := l.timers.Settle(ctx, l.fired); err != nil {
		l.log.Warnf("policy: %v", err)
	}
	l.fired = l.fired[:0]
}

// drain waits for the firings under way, whose context has ended.
func (l *lane) drain(ctx context.Context) {
	for l.inFlight > 0 {
		l.gather(<-l.results)
	}
	l.settle(ctx)
}

// Package scheduler fires the policies' timers when they are due. It is the second half
// of domain/policy.
//
// It has several pools of work. Timers that wait for a model have their own places.
// Timers that wait for a page under test have other places, of which an account gets a
// few. So a slow model or page delays no other timer.
package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"humanqa/domain"
	"humanqa/domain/policy"
	"humanqa/internal/backoff"
	"humanqa/internal/workloop"
)

// commands is the pool of policies that name none: their commands gather in the
// log's group commit.
var commands = policy.Pool{Name: "policies", Places: 256, Within: 15 * time.Second, Rest: 20 * time.Second}

const (
	lookAgain  = 5 * time.Second // the safety look: nothing waits for it
	settleTime = 5 * time.Second // the time that a place leaves for settling a firing
	// leaseTime is how long a timer belongs to a node, and renewEvery how often a firing
	// that goes on prolongs that. Another node takes over a dead node's timers after
	// leaseTime, however long their firings may take.
	leaseTime   = 10 * time.Second
	renewEvery  = 3 * time.Second
	firstRetry  = time.Second
	forgetEvery = 10 * time.Minute
)

// errTaken ends a firing whose node stood still for longer than its lease.
var errTaken = errors.New("another node has taken the timer over")

// Scheduler fires due timers. It may run on any number of nodes.
type Scheduler struct {
	timers policy.Timers
	log    workloop.Log
	pools  []*pool
}

// New prepares a scheduler; Run starts it, once.
func New(timers policy.Timers, log workloop.Log, policies ...policy.Policy) *Scheduler {
	s := &Scheduler{timers: timers, log: log}
	for _, p := range policies {
		shared := cmp.Or(p.Pool, commands)
		i := slices.IndexFunc(s.pools, func(o *pool) bool { return o.Pool == shared })
		if i < 0 {
			i = len(s.pools)
			s.pools = append(s.pools, newPool(shared, timers, log))
		}
		s.pools[i].fire[p.Kind] = p.Fire
		s.pools[i].kinds = append(s.pools[i].kinds, p.Kind)
	}
	return s
}

// Run fires due timers until the context ends.
func (s *Scheduler) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, p := range s.pools {
		running.Go(func() { p.loop.Run(ctx, p.wake) })
	}
	defer running.Wait()
	wake, upkeep := s.timers.Wake(ctx), time.NewTicker(forgetEvery)
	defer upkeep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
			for _, p := range s.pools {
				select {
				case p.wake <- struct{}{}:
				default: // it will look anyway
				}
			}
		case <-upkeep.C:
			if err := s.timers.Forget(ctx); err != nil && ctx.Err() == nil {
				s.log.Warnf("policies: %v", err)
			}
		}
	}
}

// Problems says which pools stand still, and how.
func (s *Scheduler) Problems() (found []string) {
	for _, p := range s.pools {
		if problem := p.loop.Problem(); problem != "" {
			found = append(found, problem)
		}
	}
	return found
}

// Collectors give the metrics of the pools.
func (s *Scheduler) Collectors() (all []prometheus.Collector) {
	for _, p := range s.pools {
		all = append(all, p.loop)
	}
	return all
}

// pool fires the timers of policies that share places.
type pool struct {
	policy.Pool
	timers policy.Timers
	log    workloop.Log
	fire   map[string]func(context.Context, policy.Timer) error // by kind
	kinds  []string
	wake   chan struct{}
	loop   *workloop.Loop[policy.Timer, policy.Outcome]
}

func newPool(shared policy.Pool, timers policy.Timers, log workloop.Log) *pool {
	p := &pool{
		Pool: shared, timers: timers, log: log, fire: map[string]func(context.Context, policy.Timer) error{}, wake: make(chan struct{}, 1),
	}
	p.loop = workloop.New(p, workloop.Config{
		Name: shared.Name, Places: shared.Places, Lease: p.Within + settleTime, Poll: lookAgain, Log: log,
	})
	return p
}

// Take implements workloop.Work. It asks for the next due time first: a timer that gets
// due in between is taken, and a later one is known.
func (p *pool) Take(ctx context.Context, limit int) (due []policy.Timer, next time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, leaseTime) // later it would be worth nothing
	defer cancel()
	next, found, err := p.timers.Next(ctx, p.kinds, lookAgain)
	if err != nil {
		return nil, 0, err
	}
	if !found {
		next = -1
	}
	due, err = p.timers.TakeDue(ctx, p.kinds, limit, p.PerAccount, leaseTime)
	return due, next, err
}

// Settle implements workloop.Work. A failure makes its timer due again before
// the next look.
func (p *pool) Settle(ctx context.Context, fired []policy.Outcome) (more bool, err error) {
	more = slices.ContainsFunc(fired, func(o policy.Outcome) bool { return o.Err != nil && !o.Final }) || p.PerAccount > 0
	return more, p.timers.Settle(ctx, fired)
}

// Do implements workloop.Work: it fires a timer.
func (p *pool) Do(ctx context.Context, t policy.Timer) (o policy.Outcome) {
	o.Timer = t
	within, cancel := context.WithTimeout(ctx, p.Within)
	defer cancel()
	firing, end := context.WithCancelCause(within)
	var renewing sync.WaitGroup
	renewing.Go(func() { p.renew(firing, end, t) })
	defer renewing.Wait()
	defer end(nil)
	defer func() {
		// A poison timer must not end one process of the service after the other.
		if p := recover(); p != nil {
			o.Err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		switch {
		case o.Err == nil:
			return
		case errors.Is(context.Cause(ctx), workloop.ErrStopped):
			return // this node stops; another takes it over at once
		case answered(o.Err):
			o.Final = true
		default:
			o.Retry = backoff.Delay(t.Attempt, firstRetry, p.Rest)
		}
		p.log.Warnf("policies: fire %s %s: %v", t.Kind, t.Key, o.Err)
	}()
	o.Err = p.fire[t.Kind](firing, t)
	return o
}

// renew prolongs the timer's lease until its firing ends. A renewal that fails is
// tried again: the lease may end meanwhile, and the fence decides then.
func (p *pool) renew(firing context.Context, end context.CancelCauseFunc, t policy.Timer) {
	for backoff.Wait(firing, renewEvery) == nil {
		held, err := p.timers.Renew(firing, t, leaseTime)
		switch {
		case firing.Err() != nil:
			return
		case err != nil:
			p.log.Warnf("policies: renew %s %s: %v", t.Kind, t.Key, err)
		case !held:
			end(errTaken)
			return
		}
	}
}

// answered says that the domain refused: the same question would get the same
// answer.
func answered(err error) bool {
	var refusal *domain.Error
	return errors.As(err, &refusal) && refusal.Kind != domain.KindUnavailable && refusal.Kind != domain.KindRateLimited
}

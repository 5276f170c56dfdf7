// Package policy is what happens by itself: reactions to events that issue
// commands nobody asked for.
//
// A policy is two halves. React is pure: it says which timers an event sets or
// clears; a projector keeps those timers as rows, in the transaction of its
// checkpoint. Fire is what a due timer does: a command whose id derives from
// the timer, so that firing twice (a restart, two nodes, a lease that ran out)
// has one effect. The event that the command leads to clears the timer; until
// it does, the timer comes back after its lease.
package policy

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
)

// Timer is a thing to do at a time. Kind and Key identify it.
type Timer struct {
	Kind      string
	Key       string
	AccountID string
	DueAt     time.Time
}

// Change sets a timer (again), or clears it. First promises that the timer was
// never set before.
type Change struct {
	Timer
	First bool
	Clear bool
}

// Rule is the pure half of a policy: which timers an event sets or clears.
type Rule interface {
	// Handles lists the types of the events that React reacts to.
	Handles() []string
	React(domain.Recorded) []Change
}

// Policy is both halves. Kind names its timers; the names are stored.
type Policy interface {
	Rule
	Kind() string
	Fire(context.Context, Timer) error
}

// Rules lists the pure halves of every policy, for the projector.
func Rules() []Rule { return []Rule{Orphans{}, Refunds{}} }

// All lists every policy.
func All(commands Money) []Policy {
	return []Policy{Orphans{Money: commands}, Refunds{Money: commands}}
}

// Timers are the rows that the projector keeps.
type Timers interface {
	// TakeDue leases up to limit due timers of the kinds to the caller; no
	// other node gets them until the lease ends.
	TakeDue(ctx context.Context, kinds []string, limit int, lease time.Duration) ([]Timer, error)
	// Failed notes why a firing failed; the timer comes back after its lease.
	Failed(ctx context.Context, t Timer, cause error) error
	// Forget drops what is kept of leases whose timers are long gone.
	Forget(ctx context.Context) error
}

// Log is where the runner says what went wrong.
type Log interface {
	Warnf(format string, args ...any)
}

const (
	takeAtOnce   = 256
	fireAtOnce   = 16
	leaseFor     = 15 * time.Second
	lookInterval = 500 * time.Millisecond
	forgetEvery  = 10 * time.Minute
)

// Run fires due timers until the context ends. It may run on any number of
// nodes.
func Run(ctx context.Context, timers Timers, log Log, policies ...Policy) {
	byKind := make(map[string]Policy, len(policies))
	kinds := make([]string, 0, len(policies))
	for _, p := range policies {
		byKind[p.Kind()] = p
		kinds = append(kinds, p.Kind())
	}
	tick, upkeep := time.NewTicker(lookInterval), time.NewTicker(forgetEvery)
	defer tick.Stop()
	defer upkeep.Stop()
	for {
		due, err := timers.TakeDue(ctx, kinds, takeAtOnce, leaseFor)
		if err != nil && ctx.Err() == nil {
			log.Warnf("policy: %v", err)
		}
		fireAll(ctx, timers, log, byKind, due)
		if len(due) == takeAtOnce && ctx.Err() == nil {
			continue // there is more
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-upkeep.C:
			if err := timers.Forget(ctx); err != nil {
				log.Warnf("policy: %v", err)
			}
		}
	}
}

func fireAll(ctx context.Context, timers Timers, log Log, byKind map[string]Policy, due []Timer) {
	var fires sync.WaitGroup
	places := make(chan struct{}, fireAtOnce)
	for _, t := range due {
		places <- struct{}{}
		fires.Go(func() {
			defer func() { <-places }()
			err := byKind[t.Kind].Fire(ctx, t)
			if err == nil || ctx.Err() != nil {
				return
			}
			log.Warnf("policy: fire %s %s: %v", t.Kind, t.Key, err)
			if err := timers.Failed(ctx, t, err); err != nil {
				log.Warnf("policy: %v", err)
			}
		})
	}
	fires.Wait()
}

// commandID is the id of the command that a timer issues: the same timer, the
// same id.
func commandID(t Timer) uuid.UUID { return domain.CommandIDFor("policy", t.Kind, t.Key) }

func actor(kind string) string { return fmt.Sprintf("policy:%s", kind) }

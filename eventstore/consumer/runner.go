package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
	"humanqa/internal/backoff"
)

// Limits are the sizes and times of the runners; tests shorten them.
type Limits struct {
	Live, Rebuild int           // events in a page
	Lease         time.Duration // how long a silent owner keeps a projection
	Take          time.Duration // how long the taking of a lease may last, and its return
	StandBy       time.Duration // how often a lease that another has is asked for, and orders are looked for
	Store         time.Duration // how long a checkpoint may be ahead in memory once the log is quiet
	Gather        time.Duration // the least time between two batches of a live projection
	Hold          time.Duration // how long the shared batch waits for the event after a domain.MoreFollows
	Shared        time.Duration // how long a transaction of several consumers may take
	Together      time.Duration // how long the fastest reader of a shared scan waits for the others; 0: as usual
	Reads         time.Duration // how long an Announcer waits for the read models: less than two thirds of Lease
	CoolDown      time.Duration // how long a consumer that failed one writes by itself
	Aside         int           // how many streams a generation goes on without
	Again         time.Duration // the first pause before one of them is tried again
	Yield         time.Duration // how long a newer binary has to take a line that is left to it
	Backoff       time.Duration // the first pause after a transient failure
	MaxBackoff    time.Duration
	Retired       time.Duration // how long a replaced generation is kept
	Report        time.Duration // how often a build logs its progress
}

func defaultLimits() Limits {
	return Limits{
		Live: 500, Rebuild: 2000,
		Lease: 15 * time.Second, Take: 2 * time.Second, StandBy: 500 * time.Millisecond, Store: 100 * time.Millisecond,
		Gather: 5 * time.Millisecond, Hold: 50 * time.Millisecond, Shared: time.Second, Reads: 8 * time.Second,
		CoolDown: time.Minute, Aside: 100, Again: time.Minute, Yield: 5 * time.Second,
		Backoff: 50 * time.Millisecond, MaxBackoff: 5 * time.Second,
		Retired: time.Minute, Report: 5 * time.Second,
	}
}

// errStopped says that the line stopped at a poison event, and that the stop is
// recorded.
var errStopped = errors.New("the line stopped")

// runner advances one generation while it has the lease, and stands by while
// it does not have it.
type runner struct {
	*Supervisor
	log         logrus.FieldLogger // names the consumer
	consumer    Consumer
	handles     map[string]bool
	families    map[string]bool // unknown types of these families are not passed over (see tenure.mustNotPass)
	raw         bool            // it sees every event
	owner       string
	batch       *sharedBatch          // nil: it always goes by itself
	target      generation.Generation // which generation; its state is read anew with every lease
	came        func()                // tells the scan that the runner has joined, or does not join for now
	setAsideDue chan struct{}         // holds one token: an event that was set aside is to be tried again
}

// remindSetAside makes the runner try the events again that were set aside.
func (r *runner) remindSetAside() {
	select {
	case r.setAsideDue <- struct{}{}:
		if r.batch != nil {
			r.batch.wake()
		}
	default: // it has been told
	}
}

// run ends with ctx, or when the generation was replaced or removed.
func (r *runner) run(ctx context.Context) {
	defer r.came()
	wait := r.limits.Backoff
	for ctx.Err() == nil {
		progressed, err := r.holdLease(ctx)
		pause := r.limits.StandBy
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errGone):
			return
		case errors.Is(err, errYield):
			pause, wait = r.limits.Yield, r.limits.Backoff
		case err == nil, errors.Is(err, generation.ErrNotOwner), errors.Is(err, errStopped):
			wait = r.limits.Backoff
		default:
			if progressed {
				wait = r.limits.Backoff
			}
			pause = wait
			wait = min(2*wait, r.limits.MaxBackoff)
			r.log.WithError(err).WithField("again_in", pause.String()).Warn("the consumer ran into trouble, trying again")
		}
		_ = backoff.Wait(ctx, pause) // the loop finds out that ctx has ended
	}
}

// errGone says that the generation was replaced or removed.
var errGone = errors.New("the generation is gone")

// holdLease takes the lease, if it can be had, and follows the log until it loses it.
func (r *runner) holdLease(ctx context.Context) (progressed bool, err error) {
	// A stop does not cut this off, so that a lease that was taken is always given back.
	taking, done := context.WithTimeout(context.WithoutCancel(ctx), r.limits.Take)
	l, err := generation.Acquire(taking, r.db, r.target, r.owner, r.limits.Lease)
	done()
	if l == nil { // after an error, too
		r.came()
	}
	if err != nil {
		return false, err
	}
	if l == nil {
		g, exists, err := generation.Get(ctx, r.db, r.target.Name, r.target.Number)
		if err == nil && (!exists || g.State == generation.Retired) {
			err = errGone
		}
		return false, err
	}
	f := &tenure{runner: r, lease: l}
	if l.Gen.Serving {
		f.beginReporting()
	}
	defer f.endReporting()
	if l.Gen.State == generation.Building || f.isBehind() {
		f.scanReader = r.scan.Add(l.Seen, r.handles)
		defer f.leaveScan()
	}
	r.came()
	before := l.Stored
	err = f.followLog(ctx)
	if errors.Is(err, generation.ErrNotOwner) {
		r.log.Info("another runner has taken the consumer over, standing by")
	}
	// This also runs when ctx has ended, so that the next service can start.
	farewell, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.limits.Take)
	defer cancel()
	if ctx.Err() != nil && l.Seen != l.Stored {
		_ = f.storeCheckpoint(farewell) // else those events are read again, which is harmless
	}
	if releaseErr := l.Release(farewell, r.db); releaseErr != nil {
		r.log.WithError(releaseErr).Debug("the lease was not released and will end by itself")
	}
	return l.Stored != before, err
}

// headOf is the log's end as far as the source knows it.
func headOf(s Source) eventstore.Checkpoint {
	head := s.Head()
	return eventstore.Checkpoint{Position: head, Start: head == domain.Position{}}
}

package consumer

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore"
)

const (
	// sharedTime bounds a shared transaction: so long may one member hold up the
	// others, once in apartTime.
	sharedTime = time.Second
	// apartTime is how long who was to blame for a failed transaction goes by itself.
	apartTime = time.Minute
	// fewer is by how much the group's pages are smaller than a runner's own: of
	// larger batches what they share costs little, and each by itself writes them at
	// the same time as the others.
	fewer = 4
)

// group does the work of some runners of one process that have caught up, and so
// stand at the same place: it reads a page once for all, and writes their rows and
// checkpoints in one transaction (package documentation, "Group commit").
//
// A member's lease and all that its runner knows belong to the group's goroutine
// until the member is released.
type group struct {
	db       *sqlx.DB
	source   Source
	limits   Limits
	gather   time.Duration // of its members (gatherOf)
	arrivals *arrivals
	notifies *atomic.Bool
	log      logrus.FieldLogger

	members []*member
	at      time.Time // of the last batch
	took    time.Duration
	slow    time.Time // until when each statement is waited for, which tells who is to blame

	joining chan struct{} // somebody waits to be admitted, or let go
	mu      sync.Mutex
	ended   bool
	waiting []*member
}

// member is a runner whose work the group does.
type member struct {
	*following
	left chan error // gets why it was released, once
	part part
}

// part is a member's share of a transaction.
type part struct {
	write  Write // nil: its checkpoint only
	events int
	before lease // the counts to go back to
	took   time.Duration
}

func newGroup(s *Supervisor, gather time.Duration) *group {
	return &group{
		db: s.db, source: s.source, limits: s.limits, gather: gather, arrivals: s.arrivals, notifies: &s.notifies, log: s.log,
		joining: make(chan struct{}, 1),
	}
}

// join does the runner's work until it has to go on by itself, which gives nil,
// or the group ends.
func (g *group) join(f *following) error {
	r := &member{following: f, left: make(chan error, 1)}
	g.mu.Lock()
	if g.ended {
		g.mu.Unlock()
		return context.Canceled
	}
	g.waiting = append(g.waiting, r)
	g.mu.Unlock()
	g.wake()
	return <-r.left
}

// wake has the group look who waits to be admitted, and who has something else to do.
func (g *group) wake() {
	select {
	case g.joining <- struct{}{}:
	default: // it has been told
	}
}

// run ends with ctx, and so with the runners.
func (g *group) run(ctx context.Context) {
	defer g.end()
	timer := time.NewTimer(g.limits.Lease)
	defer timer.Stop()
	var ahead *pending
	defer func() {
		if ahead != nil {
			ahead.stop()
		}
	}()
	for {
		if ahead == nil && len(g.members) > 0 {
			ahead = g.readAhead(ctx, g.rest())
		}
		select {
		case next := <-ahead.found():
			from := ahead.from
			ahead.cancel()
			ahead = nil
			g.take(ctx, from, next)
		case <-g.joining:
			if ahead != nil { // who comes may stand behind what is waited for
				ahead.stop()
				ahead = nil
			}
			g.admit()
		case <-timer.C:
			g.store(ctx)
		case <-ctx.Done():
			return
		}
		timer.Reset(g.pause())
	}
}

// admit takes in who waits, and lets go of those who are to try again what they have set
// aside.
func (g *group) admit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = append(g.members, g.waiting...)
	g.waiting = nil
	var reminded []*member
	for _, r := range g.members {
		if len(r.due) > 0 {
			reminded = append(reminded, r)
		}
	}
	g.release(reminded)
}

// end sets everybody down, also who comes later.
func (g *group) end() {
	g.admit()
	g.mu.Lock()
	g.ended = true
	late := g.waiting
	g.waiting = nil
	g.mu.Unlock()
	for _, r := range append(g.members, late...) {
		r.left <- context.Canceled
	}
	g.members = nil
}

// pending is a page that is being read for the group.
type pending struct {
	from    eventstore.Checkpoint
	members []string        // their names
	prompt  map[string]bool // event types that nobody is seen to wait for, and that are not held back
	pages   chan read
	cancel  context.CancelFunc
}

// readAhead begins to read from where the last of the members stands.
func (g *group) readAhead(ctx context.Context, rest time.Duration) *pending {
	ctx, cancel := context.WithCancel(ctx)
	l := &pending{from: g.members[0].seen, prompt: map[string]bool{}, pages: make(chan read, 1), cancel: cancel}
	for _, r := range g.members {
		if !atLeast(r.seen, l.from) {
			l.from = r.seen
		}
		l.members = append(l.members, r.Name)
		if _, prepares := r.consumer.(Preparer); prepares {
			maps.Copy(l.prompt, r.handles)
		}
	}
	go func() { l.pages <- g.read(ctx, l, rest) }()
	return l
}

// read gives what lies behind a place. What arrives while nobody waits for it is not
// applied at once: a command's next event may come right behind it.
func (g *group) read(ctx context.Context, l *pending, rest time.Duration) read {
	if err := g.arrivals.rest(ctx, rest, l.members); err != nil {
		return read{err: err}
	}
	page, err := g.source.Next(ctx, l.from, g.size())
	came := time.Now()
	for err == nil && page.Live {
		wanted, asked := g.arrivals.wanted(page.Next, l.members)
		until := came.Add(g.patience(page.Events, l.prompt))
		if wanted || !time.Now().Before(until) || !g.more(ctx, page.Next, until, asked) {
			break
		}
		page, err = g.source.Next(ctx, l.from, g.size())
	}
	return read{page, err}
}

// patience is how long a page that nobody of this process waits for is held back. In
// another process somebody may wait, and so may the world outside for what a Preparer
// makes of it, but not for the beginning of a command.
func (g *group) patience(events []domain.Recorded, prompt map[string]bool) time.Duration {
	switch {
	case len(events) > 0 && !slices.ContainsFunc(events, ends):
		return g.limits.Hold
	case g.gather > 0, g.notifies.Load(), slices.ContainsFunc(events, func(r domain.Recorded) bool { return prompt[r.Type] }):
		return 0
	}
	return g.limits.Gather
}

// ends says that the event may be the last one of its command.
func ends(r domain.Recorded) bool {
	_, prelude := r.Event.(domain.Prelude)
	return !prelude
}

// size is how many events the group writes at once.
func (g *group) size() int { return max(g.limits.Live/fewer, 1) }

// more waits until something lies behind the position, or somebody asks for something;
// it gives up at a time.
func (g *group) more(ctx context.Context, behind domain.Position, until time.Time, asked <-chan struct{}) bool {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	go func() {
		select {
		case <-asked:
			cancel()
		case <-ctx.Done():
		}
	}()
	_, _ = g.source.Next(ctx, eventstore.At(behind), 1) // whoever reads the page meets the error
	return time.Now().Before(until)
}

// found gives nothing while nothing is being read.
func (l *pending) found() <-chan read {
	if l == nil {
		return nil
	}
	return l.pages
}

// stop ends it; what it has found is read again.
func (l *pending) stop() {
	l.cancel()
	<-l.pages
}

// rest lets a busy log gather: see following.rest. The longer a batch takes, the more
// there is to share; one of few events costs less than the wait for more.
func (g *group) rest() time.Duration {
	gather := g.gather
	if gather == 0 {
		gather = min(g.took/2, g.limits.Gather)
	}
	return gather - time.Since(g.at)
}

// take deals with what was read from a place on.
func (g *group) take(ctx context.Context, from eventstore.Checkpoint, next read) {
	if ctx.Err() != nil {
		return
	}
	if next.err != nil || !next.page.Live {
		// What cannot be read each deals with by itself. So it does while the log grows
		// faster: not only for a page, or they would come and go.
		for _, r := range g.members {
			r.apart = time.Now().Add(storeBusy * g.limits.Store)
		}
		g.release(g.members)
		return
	}
	to := eventstore.At(next.page.Next)
	var writing, passing, failing []*member
	for _, r := range g.members {
		if !atLeast(r.seen, from) || atLeast(r.seen, to) {
			continue // it came while this was read, or has been there
		}
		r.part = part{before: *r.lease}
		batch := r.choose(eventsAfter(next.page.Events, r.seen))
		write, err := g.prepare(ctx, r, batch)
		switch {
		case err != nil:
			*r.lease = r.part.before
			r.apart = time.Now().Add(apartTime)
			failing = append(failing, r)
		case write != nil:
			r.part.write, r.part.events = write, len(batch)
			writing = append(writing, r)
		default:
			r.handled += int64(len(batch))
			passing = append(passing, r)
		}
	}
	g.release(failing)
	for _, r := range passing {
		r.seen = to
		g.arrivals.advance(r.Name, to)
	}
	began := time.Now()
	g.commit(ctx, to, slices.Concat(writing, g.overdue(passing, storeBusy*g.limits.Store)))
	if len(writing) > 0 {
		g.at = time.Now()
		g.took = g.at.Sub(began)
	}
}

// prepare says what a member writes. One may wait for the log meanwhile, as long as for
// a transaction.
func (g *group) prepare(ctx context.Context, r *member, batch []domain.Recorded) (Write, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, sharedTime)
	defer cancel()
	write, _, err := r.prepare(ctx, batch)
	return write, err
}

// eventsAfter are those that lie behind a place.
func eventsAfter(events []domain.Recorded, at eventstore.Checkpoint) []domain.Recorded {
	first := slices.IndexFunc(events, func(e domain.Recorded) bool { return !reached(at, e.Position) })
	if first < 0 {
		return nil
	}
	return events[first:]
}

// overdue are the members whose checkpoint was not stored for some time.
func (g *group) overdue(members []*member, since time.Duration) (late []*member) {
	for _, r := range members {
		if time.Since(r.kept) >= since {
			late = append(late, r)
		}
	}
	return late
}

// pause is how long the checkpoints, and the leases with them, may stay as they are.
func (g *group) pause() time.Duration {
	if slices.ContainsFunc(g.members, func(r *member) bool { return r.seen != r.stored }) {
		return g.limits.Store
	}
	return g.limits.Lease / 3
}

// store writes down where everybody stands, which renews the leases. Members at
// different places, which are rare, take a statement each.
func (g *group) store(ctx context.Context) {
	left := slices.Clone(g.members)
	for len(left) > 0 && ctx.Err() == nil {
		to := left[0].seen
		var here, others []*member
		for _, r := range left {
			if r.seen == to {
				r.part = part{before: *r.lease}
				here = append(here, r)
			} else {
				others = append(others, r)
			}
		}
		g.commit(ctx, to, here)
		left = others
	}
}

// release has members go on by themselves, until each has caught up again.
func (g *group) release(members []*member) {
	leaving := slices.Clone(members)
	g.members = slices.DeleteFunc(g.members, func(r *member) bool { return slices.Contains(leaving, r) })
	for _, r := range leaving {
		r.left <- nil
	}
}

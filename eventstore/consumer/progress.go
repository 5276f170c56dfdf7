package consumer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
)

const (
	// pollWaiting is how often the checkpoints are read while a request waits for
	// a projection that runs elsewhere, and no notification tells when they move.
	pollWaiting = 5 * time.Millisecond
	// pollListening is the same where NOTIFY tells: one can be missed.
	pollListening = 50 * time.Millisecond
)

// lookForBuilds is how often WaitForBuilds looks.
const lookForBuilds = 50 * time.Millisecond

// WaitForBuilds blocks until no registered projection shows rows of an older
// version than this binary's. After an upgrade, every projection with a new version
// shows such rows. The builds need a service that runs them.
func (s *Supervisor) WaitForBuilds(ctx context.Context) error {
	tick := time.NewTicker(lookForBuilds)
	defer tick.Stop()
	for older := ""; ; {
		list, err := s.Status(ctx)
		if err != nil && ctx.Err() == nil && !transient(err) {
			return err
		}
		if err == nil {
			older = ""
			for _, status := range list {
				if status.older() {
					older += " " + status.Name
				}
			}
			if older == "" {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for new versions, still to build:%s: %w", older, ctx.Err())
		case <-tick.C:
		}
	}
}

// progressTracker knows how far each serving generation is, and wakes the waiters.
// Local runners report as they commit; the others are polled, by one of the waiters
// for all of them. A runner elsewhere stores its checkpoint at once only when it
// has written rows. So the log is followed here, too, to know which of the projections
// have anything to write.
type progressTracker struct {
	db     *sqlx.DB
	poller chan struct{}   // holds one token: the right to poll
	woken  <-chan struct{} // the poller's; nil until a request has waited for a runner elsewhere

	mu       sync.Mutex
	listen   func() <-chan struct{} // nil: no notification tells when checkpoints move
	each     map[string]*progress
	handlers map[string][]*progress // by event type
	follows  bool
	followed eventstore.Checkpoint // how far the log was followed
	asked    chan struct{}         // closed and replaced when a request begins to wait
}

type progress struct {
	at eventstore.Checkpoint
	// last is the newest event that the projection handles, as far as the log
	// was followed: a projection that has seen it shows everything up to followed.
	last    eventstore.Checkpoint
	lazy    bool // no write waits for it
	local   int  // runners in this process that own the serving generation
	waiters map[*waiter]struct{}
	// missed is the position of the last announcements that did not wait for it. Until it
	// shows them, no announcement does. Zero: there were none.
	missed domain.Position
}

// waiter waits for one position in all projections. Guarded by progressTracker.mu.
type waiter struct {
	position domain.Position
	missing  int
	done     chan error // gets the outcome, once
}

func newProgressTracker(db *sqlx.DB, consumers []Consumer) *progressTracker {
	a := &progressTracker{db: db, poller: make(chan struct{}, 1), each: map[string]*progress{}, handlers: map[string][]*progress{},
		asked: make(chan struct{})}
	a.poller <- struct{}{}
	for _, p := range consumers {
		_, lazy := p.(Lazy)
		one := &progress{at: eventstore.Checkpoint{Start: true}, lazy: lazy, waiters: map[*waiter]struct{}{}}
		a.each[p.Name()] = one
		for _, eventType := range p.Handles() {
			a.handlers[eventType] = append(a.handlers[eventType], one)
		}
	}
	return a
}

// shows says that the projection's rows are those of the position: it has reached
// the position, or handles none of the events before it that it has not seen. The
// caller holds the lock.
func (t *progressTracker) shows(one *progress, position domain.Position) bool {
	return generation.Reached(one.at, position) ||
		t.follows && generation.Reached(t.followed, position) && generation.AtLeast(one.at, one.last)
}

// startFollowing begins to note which events each consumer handles; an earlier event may be
// for any of them. listen is called once a request waits for a runner elsewhere (see
// generation.Channel).
func (t *progressTracker) startFollowing(from eventstore.Checkpoint, listen func() <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.follows, t.followed, t.listen = true, from, listen
	for _, one := range t.each {
		one.last = from
	}
}

// notePage notes a page of the log.
func (t *progressTracker) notePage(events []domain.Recorded, next domain.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range events {
		for _, one := range t.handlers[e.Type] {
			one.last = eventstore.At(e.Position)
		}
	}
	t.followed = eventstore.At(next)
	for _, one := range t.each {
		t.notifyWaiters(one)
	}
}

// noteUnreadable notes an event that any consumer may handle.
func (t *progressTracker) noteUnreadable(at domain.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.followed = eventstore.At(at)
	for _, one := range t.each {
		one.last = t.followed
	}
}

// notifyWaiters ends the waits for positions that are reached. The caller holds the lock.
func (t *progressTracker) notifyWaiters(one *progress) {
	for w := range one.waiters {
		if !t.shows(one, w.position) {
			continue
		}
		delete(one.waiters, w)
		if w.missing--; w.missing == 0 {
			w.done <- nil
		}
	}
}

// waitFor blocks until every projection that is not lazy has seen the position.
func (t *progressTracker) waitFor(ctx context.Context, position domain.Position) error {
	return t.await(ctx, position, isPrompt)
}

// isPrompt says that every write waits for the projection.
func isPrompt(_ string, one *progress) bool { return !one.lazy }

// waitForShown blocks until a lazy projection has seen all events that the others show
// by now, and so every event behind an earlier answer.
func (t *progressTracker) waitForShown(ctx context.Context, name string) error {
	if t.runsElsewhere(name) {
		if err := t.pollCheckpoints(ctx); err != nil {
			return err
		}
	}
	return t.await(ctx, t.furthestShown(), func(other string, _ *progress) bool { return other == name })
}

// shown is the least position of the projections that are not lazy. One that has nothing to
// write is as far as the log was followed.
func (t *progressTracker) shown(ctx context.Context) (least domain.Position, err error) {
	if t.runsElsewhere("") {
		if err := t.pollCheckpoints(ctx); err != nil {
			return least, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	first := true
	for _, one := range t.each {
		at := one.at.Position
		if t.follows && generation.AtLeast(one.at, one.last) {
			at = at.Max(t.followed.Position)
		}
		if !one.lazy && (first || at.Compare(least) < 0) {
			least, first = at, false
		}
	}
	return least, nil
}

// furthestShown is the newest position of the projections that are not lazy.
func (t *progressTracker) furthestShown() (furthest domain.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.each {
		if !one.lazy && !one.at.Start {
			furthest = furthest.Max(one.at.Position)
		}
	}
	return furthest
}

// runsElsewhere says that the named projection, or one that is not lazy, runs in
// another process, or in none.
func (t *progressTracker) runsElsewhere(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other, one := range t.each {
		if one.local == 0 && (other == name || !one.lazy) {
			return true
		}
	}
	return false
}

// await blocks until the projections that are meant show the position.
func (t *progressTracker) await(ctx context.Context, position domain.Position, isMeant func(string, *progress) bool) error {
	w := t.registerWaiter(position, isMeant)
	if w == nil {
		return nil
	}
	defer t.removeWaiter(w)
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return t.timeoutError(ctx, w)
	case <-t.poller:
	}
	defer func() { t.poller <- struct{}{} }()
	tick := time.NewTicker(pollWaiting)
	defer tick.Stop()
	for look := false; ; {
		if remote, listen := t.hasRemoteWaiter(); remote {
			if listen != nil && t.woken == nil {
				t.woken = listen()
			}
			if t.woken != nil {
				tick.Reset(pollListening)
			}
			if look || t.woken == nil { // what moved before has left its notification
				if err := t.pollCheckpoints(ctx); err != nil && ctx.Err() == nil {
					return err
				}
			}
		}
		look = true
		select {
		case err := <-w.done:
			return err
		case <-ctx.Done():
			return t.timeoutError(ctx, w)
		case <-t.woken:
		case <-tick.C:
		}
	}
}

// registerWaiter gives nil when there is nothing to wait for. A zero position stands
// for a command that wrote nothing. isMeant says which projections the waiter waits for; it
// is called under the lock.
func (t *progressTracker) registerWaiter(position domain.Position, isMeant func(string, *progress) bool) *waiter {
	if position == (domain.Position{}) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &waiter{position: position, done: make(chan error, 1)}
	for name, one := range t.each {
		if isMeant(name, one) && !t.shows(one, position) {
			one.waiters[w] = struct{}{}
			w.missing++
		}
	}
	if w.missing == 0 {
		return nil
	}
	close(t.asked)
	t.asked = make(chan struct{})
	return w
}

// hasWaiter says that a request waits for the named projections at the position or before
// it; asked is closed when the next request begins to wait.
func (t *progressTracker) hasWaiter(upTo domain.Position, names []string) (wanted bool, asked <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		for w := range t.each[name].waiters {
			if w.position.Compare(upTo) <= 0 {
				return true, t.asked
			}
		}
	}
	return false, t.asked
}

// restUnlessAsked waits while events gather for a batch. The rest of lazy projections ends
// when a request waits for one of them; requests wait for all others behind each write.
func (t *progressTracker) restUnlessAsked(ctx context.Context, d time.Duration, names []string) error {
	over := time.NewTimer(max(d, 0))
	defer over.Stop()
	for {
		wanted, asked := t.hasLazyWaiter(names)
		if wanted {
			return ctx.Err()
		}
		select {
		case <-over.C:
			return ctx.Err()
		case <-asked:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hasLazyWaiter says that a request waits for a lazy one of the projections, at any position;
// asked is nil if none of them is lazy.
func (t *progressTracker) hasLazyWaiter(names []string) (wanted bool, asked <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		if one := t.each[name]; one.lazy {
			asked, wanted = t.asked, wanted || len(one.waiters) > 0
		}
	}
	return wanted, asked
}

func (t *progressTracker) removeWaiter(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.each {
		delete(one.waiters, w)
	}
}

// timeoutError says which projections are behind.
func (t *progressTracker) timeoutError(ctx context.Context, w *waiter) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	behind := &lateError{position: w.position, err: ctx.Err()}
	for name, one := range t.each {
		if _, waits := one.waiters[w]; waits {
			behind.names = append(behind.names, name)
		}
	}
	return behind
}

// update gives the projection's progress to f, under the lock; nothing where it is not known.
func (t *progressTracker) update(name string, f func(*progress)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.each[name]; one != nil {
		f(one)
	}
}

// noteProgress reports how far a projection is; it never goes back.
func (t *progressTracker) noteProgress(name string, at eventstore.Checkpoint) {
	t.update(name, func(one *progress) {
		if !generation.AtLeast(one.at, at) {
			one.at = at
			t.notifyWaiters(one)
		}
	})
}

// failWaiters fails every wait for the projection: it will not reach the position
// before an operator has acted.
func (t *progressTracker) failWaiters(name string, f generation.Failure) {
	t.update(name, func(one *progress) {
		for w := range one.waiters {
			delete(one.waiters, w)
			select {
			case w.done <- &StoppedError{Name: name, Failure: f}:
			default: // another projection stopped too
			}
		}
	})
}

// addLocalRunner says that a runner of this process has taken the serving generation
// over, at a checkpoint. It may lie before the known one: a crash of Postgres takes
// back rows and checkpoints that were not on disk.
func (t *progressTracker) addLocalRunner(name string, at eventstore.Checkpoint) {
	t.update(name, func(one *progress) {
		one.local++
		one.at = at
		t.notifyWaiters(one)
	})
}

// removeLocalRunner says that a runner of this process has let go of the generation.
func (t *progressTracker) removeLocalRunner(name string) {
	t.update(name, func(one *progress) { one.local-- })
}

// positionOf is the checkpoint of the projection, as far as this process knows.
func (t *progressTracker) positionOf(name string) eventstore.Checkpoint {
	at := eventstore.Checkpoint{Start: true}
	t.update(name, func(one *progress) { at = one.at })
	return at
}

// hasRemoteWaiter says that a request waits for a projection that no runner of this
// process owns. listen subscribes to the news of such projections.
func (t *progressTracker) hasRemoteWaiter() (remote bool, listen func() <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.each {
		if one.local == 0 && len(one.waiters) > 0 {
			return true, t.listen
		}
	}
	return false, nil
}

func (t *progressTracker) pollCheckpoints(ctx context.Context) error {
	serving, err := generation.ListServing(ctx, t.db)
	if err != nil {
		return err
	}
	for _, g := range serving {
		t.noteProgress(g.Name, g.Checkpoint())
		if f := g.Failure(); f != nil {
			t.failWaiters(g.Name, *f)
		}
	}
	return nil
}

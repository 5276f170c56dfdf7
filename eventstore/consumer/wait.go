package consumer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/eventstore"
)

const (
	// pollWaiting is how often the checkpoints are read while somebody waits for
	// a projection that runs elsewhere, and nothing tells when they move.
	pollWaiting = 5 * time.Millisecond
	// pollListening is the same where NOTIFY tells: one can be missed.
	pollListening = 50 * time.Millisecond
)

// lookForBuilds is how often WaitForBuilds looks.
const lookForBuilds = 50 * time.Millisecond

// WaitForBuilds blocks until no registered projection shows rows of an older
// version than this binary's any more, as all that have changed do after an
// upgrade. The builds need a service that runs them.
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

const listServingSQL = `
SELECT ` + generationColumns + `
FROM projection_checkpoints
WHERE serving`

// arrivals knows how far each serving generation is, and wakes who waits.
// Local runners report as they commit; what runs elsewhere is polled, by one of
// the waiters for all of them. Who runs elsewhere stores its checkpoint at once
// only when it has written rows: so the log is followed here, too, to know which
// of the projections have anything to write.
type arrivals struct {
	db     *sqlx.DB
	poller chan struct{}   // holds one token: the right to poll
	woken  <-chan struct{} // the poller's; nil until somebody has waited for what runs elsewhere
	hears  atomic.Bool     // what moves elsewhere is told as it moves

	mu       sync.Mutex
	listen   func() <-chan struct{} // nil: nothing tells of checkpoints that move
	each     map[string]*arrival
	handlers map[string][]*arrival // by event type
	follows  bool
	followed eventstore.Checkpoint // how far the log was followed
	asked    chan struct{}         // closed and replaced when somebody begins to wait
	serves   chan struct{}         // closed and replaced when a runner of this process begins to serve
}

type arrival struct {
	at eventstore.Checkpoint
	// last is the newest event that the projection handles, as far as the log
	// was followed: who has seen it shows all that the log held then.
	last    eventstore.Checkpoint
	lazy    bool // nobody waits for it behind a write
	local   int  // runners in this process that own the serving generation
	waiters map[*waiter]struct{}
	owner   string // of its lease, as it was last read
}

// waiter waits for one position in all projections. Guarded by arrivals.mu.
type waiter struct {
	position domain.Position
	missing  int
	done     chan error // gets the outcome, once
}

func newArrivals(db *sqlx.DB, consumers []Consumer) *arrivals {
	a := &arrivals{db: db, poller: make(chan struct{}, 1), each: map[string]*arrival{}, handlers: map[string][]*arrival{}, asked: make(chan struct{}), serves: make(chan struct{})}
	a.poller <- struct{}{}
	for _, p := range consumers {
		_, lazy := p.(Lazy)
		one := &arrival{at: eventstore.Checkpoint{Start: true}, lazy: lazy, waiters: map[*waiter]struct{}{}}
		a.each[p.Name()] = one
		for _, eventType := range p.Handles() {
			a.handlers[eventType] = append(a.handlers[eventType], one)
		}
	}
	return a
}

// shows says that the projection's rows are those of the position: it has been
// there, or none of the events that it has not seen yet is for it. The caller
// holds the lock.
func (a *arrivals) shows(one *arrival, position domain.Position) bool {
	return reached(one.at, position) ||
		a.follows && reached(a.followed, position) && atLeast(one.at, one.last)
}

// follow begins to know which events are for whom; what lies before may be for
// anybody. listen is called once somebody waits for what runs elsewhere (see
// checkpointsChannel).
func (a *arrivals) follow(from eventstore.Checkpoint, listen func() <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.follows, a.followed, a.listen = true, from, listen
	for _, one := range a.each {
		one.last = from
	}
}

// saw notes a page of the log.
func (a *arrivals) saw(events []domain.Recorded, next domain.Position) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range events {
		for _, one := range a.handlers[e.Type] {
			one.last = eventstore.At(e.Position)
		}
	}
	a.followed = eventstore.At(next)
	for _, one := range a.each {
		a.settle(one)
	}
}

// sawUnreadable notes an event that may be for anybody.
func (a *arrivals) sawUnreadable(at domain.Position) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.followed = eventstore.At(at)
	for _, one := range a.each {
		one.last = a.followed
	}
}

// settle lets go of those who have waited for long enough. The caller holds the
// lock.
func (a *arrivals) settle(one *arrival) {
	for w := range one.waiters {
		if !a.shows(one, w.position) {
			continue
		}
		delete(one.waiters, w)
		if w.missing--; w.missing == 0 {
			w.done <- nil
		}
	}
}

// wait blocks until every projection that is not lazy has seen the position.
func (a *arrivals) wait(ctx context.Context, position domain.Position) error {
	return a.await(ctx, a.register(position), position)
}

// catchUp blocks until a lazy projection has seen what the others show by
// now: whatever anybody was answered.
func (a *arrivals) catchUp(ctx context.Context, name string) error {
	if a.elsewhere(name) {
		if err := a.poll(ctx); err != nil {
			return err
		}
	}
	shown := a.shown()
	return a.await(ctx, a.register(shown, name), shown)
}

// shown is the furthest that a projection which is waited for behind each write
// has got to.
func (a *arrivals) shown() (furthest domain.Position) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.each {
		if !one.lazy && !one.at.Start {
			furthest = furthest.Max(one.at.Position)
		}
	}
	return furthest
}

// elsewhere says that the named projection, or one that is waited for behind
// each write, runs in another process, or in none.
func (a *arrivals) elsewhere(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for other, one := range a.each {
		if one.local == 0 && (other == name || !one.lazy) {
			return true
		}
	}
	return false
}

// await blocks until the waiter, if there is one, is done.
func (a *arrivals) await(ctx context.Context, w *waiter, position domain.Position) error {
	if w == nil {
		return nil
	}
	defer a.forget(w)
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return a.tooLate(ctx, w, position)
	case <-a.poller:
	}
	defer func() { a.poller <- struct{}{} }()
	tick := time.NewTicker(pollWaiting)
	defer tick.Stop()
	for look := false; ; {
		if remote, listen := a.anyRemote(); remote {
			if listen != nil && a.woken == nil {
				a.woken = listen()
			}
			if a.woken != nil {
				tick.Reset(pollListening)
			}
			if look || !a.hears.Load() {
				if err := a.poll(ctx); err != nil && ctx.Err() == nil {
					return err
				}
			}
		}
		look = true
		select {
		case err := <-w.done:
			return err
		case <-ctx.Done():
			return a.tooLate(ctx, w, position)
		case <-a.woken:
		case <-tick.C:
		}
	}
}

// register gives nil when there is nothing to wait for. A zero position stands
// for a command that wrote nothing. It waits for the named ones, without names
// for all that are not lazy.
func (a *arrivals) register(position domain.Position, names ...string) *waiter {
	if position == (domain.Position{}) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w := &waiter{position: position, done: make(chan error, 1)}
	for name, one := range a.each {
		meant := slices.Contains(names, name) || len(names) == 0 && !one.lazy
		if meant && !a.shows(one, position) {
			one.waiters[w] = struct{}{}
			w.missing++
		}
	}
	if w.missing == 0 {
		return nil
	}
	close(a.asked)
	a.asked = make(chan struct{})
	return w
}

// wanted says that somebody waits for what the named projections make of the log up to
// the position; asked is closed when the next one begins to wait.
func (a *arrivals) wanted(upTo domain.Position, names []string) (wanted bool, asked <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range names {
		for w := range a.each[name].waiters {
			if w.position.Compare(upTo) <= 0 {
				return true, a.asked
			}
		}
	}
	return false, a.asked
}

// rest lets batches gather for a while. That of lazy projections ends when somebody waits
// for one of them; all others are waited for behind each write.
func (a *arrivals) rest(ctx context.Context, d time.Duration, names []string) error {
	over := time.NewTimer(max(d, 0))
	defer over.Stop()
	for {
		wanted, asked := a.wantedLazy(names)
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

// wantedLazy is wanted for lazy projections, however far they are; asked is nil without one.
func (a *arrivals) wantedLazy(names []string) (wanted bool, asked <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range names {
		if one := a.each[name]; one.lazy {
			asked, wanted = a.asked, wanted || len(one.waiters) > 0
		}
	}
	return wanted, asked
}

func (a *arrivals) forget(w *waiter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.each {
		delete(one.waiters, w)
	}
}

// tooLate says which projections are behind.
func (a *arrivals) tooLate(ctx context.Context, w *waiter, position domain.Position) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	behind := ""
	for name, one := range a.each {
		if _, waits := one.waiters[w]; waits {
			behind += " " + name
		}
	}
	return fmt.Errorf("wait for position %s, behind:%s: %w", position, behind, ctx.Err())
}

// advance reports how far a projection is; it never goes back.
func (a *arrivals) advance(name string, at eventstore.Checkpoint) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.each[name]
	if one == nil || atLeast(one.at, at) {
		return
	}
	one.at = at
	a.settle(one)
}

// stopped fails everyone who waits for the projection: it will not get there
// before an operator has looked at it.
func (a *arrivals) stopped(name string, f Failure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.each[name]
	if one == nil {
		return
	}
	for w := range one.waiters {
		delete(one.waiters, w)
		select {
		case w.done <- &StoppedError{Name: name, Failure: f}:
		default: // another projection stopped too
		}
	}
}

// runsHere says that a runner of this process has taken the serving generation
// over, at a checkpoint. That may lie behind what was known: a crash of
// Postgres takes back what it had not written to disk, rows and checkpoint
// alike.
func (a *arrivals) runsHere(name string, at eventstore.Checkpoint) {
	a.mu.Lock()
	if one := a.each[name]; one != nil {
		one.local++
		if !atLeast(at, one.at) {
			one.at = at
		}
	}
	close(a.serves)
	a.serves = make(chan struct{})
	a.mu.Unlock()
	a.advance(name, at)
}

// nextToServe is closed when the next runner of this process begins to serve.
func (a *arrivals) nextToServe() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.serves
}

// leftHere says that it has let go of it.
func (a *arrivals) leftHere(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one := a.each[name]; one != nil {
		one.local--
	}
}

// at is how far the projection is, as far as this process knows.
func (a *arrivals) at(name string) eventstore.Checkpoint {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one := a.each[name]; one != nil {
		return one.at
	}
	return eventstore.Checkpoint{Start: true}
}

// anyRemote says that somebody waits for a projection that no runner of this
// process owns, and how to be told of those.
func (a *arrivals) anyRemote() (remote bool, listen func() <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.each {
		if one.local == 0 && len(one.waiters) > 0 {
			return true, a.listen
		}
	}
	return false, nil
}

func (a *arrivals) poll(ctx context.Context) error {
	var serving []generation
	if err := a.db.SelectContext(ctx, &serving, listServingSQL); err != nil {
		return fmt.Errorf("read the checkpoints: %w", err)
	}
	for _, g := range serving {
		a.advance(g.Name, g.checkpoint())
		a.ownedBy(g.Name, g.Owner)
		if f := g.failure(); f != nil {
			a.stopped(g.Name, *f)
		}
	}
	return nil
}

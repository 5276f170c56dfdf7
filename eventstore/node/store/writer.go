package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

const (
	// A group is cut off here; the writes left in the queue are for the next one.
	groupLength = 8192
	groupBytes  = 8 << 20

	queueLength = 4096

	connectTimeout = 5 * time.Second
	lookupTimeout  = 5 * time.Second
	retryFirst     = 20 * time.Millisecond
	retryLast      = time.Second
	// An idle session is looked at that often, and lost if it does not answer in that time.
	watchEvery   = 500 * time.Millisecond
	watchTimeout = 10 * time.Second
)

// writer is the one place that writes. For the life of a session two
// goroutines work in it. The decider takes writes off the queue and forms the
// next group. The committer writes one group after the other. A group is
// handed over when the committer is free, and grows until then. The rest of
// the node talks to the writer through queue and reads the tail.
type writer struct {
	db      *sql.DB
	lookups *lookups
	queue   chan *Write
	stop    chan struct{} // closed when no more writes come
	done    chan struct{} // closed when the writer has ended
	tail    *tail
	term    *term
	metrics *metrics
	log     logrus.FieldLogger

	states    *states  // the decider's
	session   *session // the committer's
	candidate *candidate
	// refusal answers writes once a commit has failed. The committer sets it before it
	// closes broken.
	refusal error

	// stale gets a group that was not written, since a client has given up meanwhile; over
	// is closed when nothing is decided any more. Both are the session's.
	stale chan *group
	over  chan struct{}
}

// runSessions serves until stop, and then the writes that are left in the queue. Its first
// session is the one with which Open took the lock.
func (w *writer) runSessions() {
	defer close(w.done)
	for w.session != nil || w.reconnect() {
		stopped := w.serve()
		// After any failure, no state from this session is kept. Where Postgres only refuses
		// to write, the lock is taken again before another node would want it.
		if !stopped && w.refusal == ErrUnavailable { //nolint:errorlint // the very one
			w.term.lose(ErrLost)
		}
		w.session.close()
		w.session = nil
		w.states.held.Purge()
		if stopped {
			return
		}
	}
}

// serve works on one session until it fails or the writer is stopped.
func (w *writer) serve() (stopped bool) {
	ids, err := w.lookups.loadIDs(context.Background(), w.session.head)
	if err != nil {
		w.log.WithError(err).Error("the event log's writer can't begin, reconnecting")
		return !w.refuseFor(retryLast)
	}
	groups := make(chan *group)
	broken := make(chan struct{})
	w.stale, w.over = make(chan *group), make(chan struct{})
	var committer sync.WaitGroup
	committer.Go(func() { w.commitAll(groups, broken) })
	stopped = w.decideAll(ids, groups, broken)
	close(w.over)
	close(groups)
	committer.Wait()
	return stopped
}

// decideAll forms groups and hands them over. A batch that needs states from
// Postgres is decided when they have come. Until then no other batch is taken, since
// writes keep their order, but the group may go. A batch that needs states only to
// begin streams is decided at once, as if the streams were absent. Then no other is
// decided until the commit has proved it; if it was wrong, the states are looked up and
// the batch is decided anew. So is a group that waited for longer than one of its clients,
// without that one's write. On an error, its own or the committer's, decideAll refuses
// the writes that it has and ends.
func (w *writer) decideAll(ids *ids, groups chan<- *group, broken <-chan struct{}) (stopped bool) {
	d := &decider{
		states: w.states, ids: ids, lookups: w.lookups, group: &group{},
		head: w.session.head, created: w.session.lastCreated,
	}
	var (
		loading  chan loaded
		believed *group // with the committer
		refusal  = ErrUnavailable
	)
	defer func() {
		if loading != nil {
			refuse((<-loading).batch, unsent(refusal))
		}
		refuse(d.group.members, unsent(refusal))
	}()
	for {
		// A nil channel takes no part in the select.
		out, in, stop := groups, w.queue, w.stop
		if len(d.group.members) == 0 {
			out = nil
		} else {
			stop = nil
		}
		var proved <-chan bool
		if believed != nil {
			proved = believed.proved
		}
		if d.group.full() || loading != nil || d.group.proved != nil || proved != nil {
			in, stop = nil, nil
		}
		var ready loaded
		wrong := false
		select {
		case <-broken:
			refusal = w.refusal
			return false
		case out <- d.group:
			if d.group.proved != nil {
				believed = d.group
			}
			d.group = &group{}
			continue
		case right := <-proved:
			g := believed
			if believed = nil; right {
				continue
			}
			wrong, ready.batch = true, d.undoGroup(g)
		case g := <-w.stale: // no other group is with the committer
			later := d.undoGroup(d.group)
			ready.batch = liveOf(append(d.undoGroup(g), later...))
			d.group, believed, wrong = &group{final: len(ready.batch) > 0}, nil, true
			if loading != nil {
				waiting := <-loading
				loading, ready.err, ready.batch = nil, waiting.err, append(ready.batch, waiting.batch...)
			}
		case ready = <-loading:
			loading = nil
		case first := <-in:
			ready.batch = w.collectBatch(first, groupLength-d.group.length())
		case <-stop:
			select {
			case first := <-in:
				ready.batch = w.collectBatch(first, groupLength)
			default:
				return true
			}
		}
		if ready.err == nil && ready.states == nil {
			if missing := w.states.missingFor(ready.batch); len(missing) > 0 {
				if wrong || len(d.group.members) > 0 || !w.states.canAssumeAbsent(ready.batch, missing) {
					loading = w.loadStates(ready.batch, missing)
					continue
				}
				d.assumeAbsent(missing)
			}
		}
		if !w.decide(d, ready) {
			return false
		}
	}
}

// loaded is a batch and the states it was waiting for.
type loaded struct {
	batch  []*Write
	states map[string]*state
	err    error
}

// loadStates fetches states in the background. The result always comes.
func (w *writer) loadStates(batch []*Write, names []string) chan loaded {
	result := make(chan loaded, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
		defer cancel()
		states, err := w.lookups.loadStates(ctx, names)
		result <- loaded{batch: batch, states: states, err: err}
	}()
	return result
}

func (w *writer) decide(d *decider, ready loaded) bool {
	err := ready.err
	if err == nil && len(ready.batch) > 0 {
		for name, st := range ready.states {
			w.states.held.Add(name, st)
		}
		// The decision must not end with a single client's context.
		err = d.decideBatch(context.Background(), ready.batch, w.tail.Head())
	} else {
		refuse(ready.batch, errUnsent)
	}
	if err != nil {
		w.log.WithError(err).Error("the event log's writer can't look up streams, reconnecting")
	}
	return err == nil
}

// collectBatch takes the writes that have arrived and for which the group has room, without
// waiting for more.
func (w *writer) collectBatch(first *Write, room int) []*Write {
	batch := []*Write{first}
	for length, bytes := 1+len(first.events), first.size; length < room && bytes < groupBytes; {
		select {
		case next := <-w.queue:
			batch = append(batch, next)
			length += 1 + len(next.events)
			bytes += next.size
		default:
			return liveOf(batch)
		}
	}
	return liveOf(batch)
}

// liveOf leaves out the writes whose clients have already given up. Such a write is
// certainly not written.
func liveOf(batch []*Write) []*Write {
	return slices.DeleteFunc(batch, func(w *Write) bool {
		if !w.expired() {
			return false
		}
		w.done <- Outcome{Kind: failed, err: w.ctx.Err()}
		return true
	})
}

// commitAll writes groups until one fails. From then on all are refused, also
// those that would write nothing: they were decided on states that may be wrong. While
// no group comes it looks whether the session is still there.
func (w *writer) commitAll(groups <-chan *group, broken chan<- struct{}) {
	watch := time.NewTicker(watchEvery)
	defer watch.Stop()
	failed := false
	for {
		var g *group
		var err error
		select {
		case next, more := <-groups:
			if !more {
				return
			}
			if g = next; failed {
				refuse(g.members, unsent(w.refusal))
				continue
			}
			err = w.commit(g)
		case <-watch.C:
			if failed {
				continue
			}
			err = w.session.answers()
		}
		if err == nil {
			continue
		}
		w.log.WithError(err).Error("the event log lost its writer, reconnecting")
		if w.refusal = refusalOf(err); w.refusal == nil {
			w.refusal = ErrUnavailable
		}
		if g != nil && notWritten(err) {
			refuse(g.members, unsent(w.refusal))
		} else if g != nil {
			refuse(g.members, w.refusal)
		}
		failed = true
		close(broken)
	}
}

// commit writes, publishes and answers, in this order: a client that has its
// answer can read the event.
func (w *writer) commit(g *group) error {
	if !g.final && slices.ContainsFunc(g.members, (*Write).expired) {
		select {
		case w.stale <- g:
			return nil
		case <-w.over: // it is written whole
		}
	}
	if len(g.records) > 0 {
		start := time.Now()
		written, err := w.session.writeGroup(g.created, g.records, g.absent)
		if err == nil && g.proved != nil {
			g.proved <- written
			if !written {
				return nil
			}
		}
		w.metrics.committed(len(g.records), time.Since(start), err)
		if err != nil {
			return err
		}
		w.tail.publish(g.records)
	}
	for i, member := range g.members {
		member.done <- g.outcomes[i]
	}
	return nil
}

// reconnect tries until it has the lock again, and answers writes that arrive in the
// meantime. False means that the node is closing.
func (w *writer) reconnect() bool {
	wait := retryFirst
	for {
		attempt, cancel := context.WithTimeout(context.Background(), connectTimeout)
		s, err := w.resume(attempt)
		cancel()
		if err == nil {
			w.session, w.refusal = s, ErrUnavailable
			// There may be events that were not published: the group whose outcome
			// was unknown, or those of a node that held the lock in between.
			w.tail.reset(s.head)
			w.term.begin()
			w.log.WithField("position", s.head).Info("the event log has its writer again")
			return true
		}
		w.log.WithError(err).Warn("the event log's writer can't connect")
		if refusalOf(err) == nil && !errors.Is(err, errFormer) { // else no other node has the lock
			w.term.lose(lossBy(err))
		}
		if !w.refuseFor(wait) {
			return false
		}
		wait = min(2*wait, retryLast)
	}
}

// resume opens a session. If Postgres refused to write before, a trial write must succeed
// first, so that no caller's append is the trial.
func (w *writer) resume(ctx context.Context) (*session, error) {
	s, err := openSession(ctx, w.db, w.candidate)
	if err != nil || w.refusal == ErrUnavailable { //nolint:errorlint // the very one
		return s, err
	}
	if err := s.tryWrite(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// refuseFor answers writes for a while; false once the node closes.
func (w *writer) refuseFor(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-w.stop:
			return false
		case member := <-w.queue:
			member.done <- Outcome{Kind: failed, err: unsent(w.refusal)}
		}
	}
}

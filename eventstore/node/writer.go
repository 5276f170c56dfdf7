package node

import (
	"context"
	"database/sql"
	"time"

	"github.com/sirupsen/logrus"
)

const (
	// A group is cut off here; what is left in the channel is the next group.
	groupEvents = 4096
	groupBytes  = 8 << 20

	queueLength = 4096

	connectTimeout = 5 * time.Second
	retryFirst     = 20 * time.Millisecond
	retryLast      = time.Second
)

// writer is the one goroutine that writes. It owns the session and the states;
// the rest of the node talks to it through queue and reads the tail.
type writer struct {
	db      *sql.DB
	queue   chan *write
	stop    chan struct{} // closed when nothing more is coming
	done    chan struct{} // closed when the goroutine has ended
	tail    *tail
	metrics *metrics
	log     logrus.FieldLogger

	states  *states
	session *session
}

// run serves until stop, and then what is left in the queue. The session it
// starts with is the one Start took the lock with.
func (w *writer) run() {
	defer close(w.done)
	for w.session != nil || w.reconnect() {
		first := w.next()
		if first == nil {
			w.session.close()
			return
		}
		if err := w.writeGroup(w.gather(first)); err != nil {
			w.log.WithError(err).Error("the event log lost its writer, reconnecting")
			w.abandon()
		}
	}
}

// next waits for a write; nil after stop once the queue is empty.
func (w *writer) next() *write {
	select {
	case first := <-w.queue:
		return first
	case <-w.stop:
	}
	select {
	case first := <-w.queue:
		return first
	default:
		return nil
	}
}

// gather takes what has arrived, without waiting for more.
func (w *writer) gather(first *write) []*write {
	group := []*write{first}
	events, bytes := max(1, len(first.events)), first.size
	for events < groupEvents && bytes < groupBytes {
		select {
		case next := <-w.queue:
			group = append(group, next)
			events += max(1, len(next.events))
			bytes += next.size
		default:
			return group
		}
	}
	return group
}

// writeGroup decides, commits, publishes and answers, in this order. On an
// error every member is answered UNAVAILABLE: members that were only refused
// were judged by a state that may never have become true.
func (w *writer) writeGroup(group []*write) error {
	// The commit must not end with any one client's patience.
	ctx := context.Background()
	group = dropExpired(group)
	if len(group) == 0 {
		return nil
	}
	outcomes, d, err := w.decideGroup(ctx, group)
	if err == nil && len(d.group) > 0 {
		start := time.Now()
		err = w.session.write(ctx, d.group)
		w.metrics.committed(len(d.group), time.Since(start), err)
	}
	if err != nil {
		for _, member := range group {
			member.done <- outcome{verdict: failed, err: errUnavailable}
		}
		return err
	}
	w.session.head, w.session.lastCreated = d.head, d.created
	if len(d.group) > 0 {
		w.tail.publish(d.group)
	}
	for i, member := range group {
		member.done <- outcomes[i]
	}
	for _, member := range group {
		w.states.get(member.stream).trim()
		w.states.get(companion(member.stream)).trim()
	}
	return nil
}

func (w *writer) decideGroup(ctx context.Context, group []*write) ([]outcome, *decider, error) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	if err := w.states.ensure(ctx, w.session, group); err != nil {
		return nil, nil, err
	}
	d := newDecider(w.states, w.session, time.Now())
	outcomes := make([]outcome, len(group))
	for i, member := range group {
		var err error
		if outcomes[i], err = d.decide(ctx, member); err != nil {
			return nil, nil, err
		}
	}
	return outcomes, d, nil
}

// dropExpired answers the members whose client has already given up. They were
// certainly not written.
func dropExpired(group []*write) []*write {
	kept := group[:0]
	for _, member := range group {
		if member.ctx.Err() != nil {
			member.done <- outcome{verdict: failed, err: errExpired}
			continue
		}
		kept = append(kept, member)
	}
	return kept
}

// abandon forgets everything that was learnt through a session that failed.
func (w *writer) abandon() {
	w.session.close()
	w.session = nil
	w.states.drop()
}

// reconnect tries until it has the lock again, and answers what arrives in the
// meantime. False means the node is closing.
func (w *writer) reconnect() bool {
	wait := retryFirst
	for {
		attempt, cancel := context.WithTimeout(context.Background(), connectTimeout)
		s, err := openSession(attempt, w.db)
		cancel()
		if err == nil {
			w.session = s
			// There may be events nobody has published: the group whose outcome
			// was unknown, or those of a node that held the lock in between.
			w.tail.reset(s.head)
			w.log.WithField("position", s.head).Info("the event log has its writer again")
			return true
		}
		w.log.WithError(err).Warn("the event log's writer can't connect")
		if !w.refuseFor(wait) {
			return false
		}
		wait = min(2*wait, retryLast)
	}
}

// refuseFor answers writes UNAVAILABLE for a while; false once the node closes.
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
			member.done <- outcome{verdict: failed, err: errUnavailable}
		}
	}
}

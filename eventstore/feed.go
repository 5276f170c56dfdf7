package eventstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
)

const (
	// feedBatch is how many arrivals are put into the ring under one lock.
	feedBatch = 256
	// pollEvery is how often a consumer at the end of the log looks again while
	// no subscription runs.
	pollEvery = time.Second
)

// Page holds the events that a consumer reads next.
type Page struct {
	// Events are in the log's order, and shared with every other consumer in
	// the process: they must not be changed. May be empty while Next advanced
	// (system events).
	Events []domain.Recorded
	// Next is the position the consumer has read up to after this page.
	Next domain.Position
	// Live says that the page reached the newest position known here.
	Live bool
}

// Feed is the tail of the log, decoded once and shared by every consumer in the
// process. Run owns the one subscription; consumers call Next with their own
// checkpoints, and those that are far behind read pages until they join.
//
// There is no hole where a consumer joins: the ring knows the position before
// its first event, and serves only checkpoints at or behind that one.
type Feed struct {
	client *Client
	log    logrus.FieldLogger

	maxEvents, maxBytes int

	// verify, unless nil, is asked before each subscription: a node that comes
	// back may hold another log.
	verify func(context.Context) error

	unknown unknowns

	mu   sync.Mutex
	ring *ring         // nil until Run knows where the log ends
	wake chan struct{} // closed and replaced when the ring moved
}

// NewFeed prepares a feed; Run makes it move.
func NewFeed(c *Client, log logrus.FieldLogger) *Feed {
	return &Feed{
		client: c, log: log.WithField("component", "feed"), wake: make(chan struct{}),
		maxEvents: ringEvents, maxBytes: ringBytes,
	}
}

// Verify has the feed follow the log only where it passes the check; before Run.
func (f *Feed) Verify(check func(context.Context) error) { f.verify = check }

// Load calls each for the events of a stream, from a revision on (Client.Load).
func (f *Feed) Load(ctx context.Context, stream string, from uint64, each func(domain.Recorded) error) error {
	return f.client.Load(ctx, stream, from, each)
}

// Head gives the newest position seen, zero before the first.
func (f *Feed) Head() domain.Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ring == nil {
		return domain.Position{}
	}
	return f.ring.head.Position
}

// Sums, among the types of Next, asks for the sums of the bytes that the log stores of each
// event (domain.Stored).
const Sums = "$sums"

// Next gives the events behind the checkpoint that have arrived, up to maxEvents. It
// blocks until there is one, through outages of the node, and ends with ctx. A known
// event that cannot be decoded is a *DecodeError once it comes first.
//
// A consumer of some types names them. Then events of other types may have no Event and no
// Meta, which costs a fraction. Unless the types hold Sums, events may have no sums. Without
// types (nil) all are read whole.
func (f *Feed) Next(ctx context.Context, after Checkpoint, maxEvents int, types map[string]bool) (Page, error) {
	maxEvents = max(maxEvents, 1)
	wait := minBackoff
	for {
		if err := ctx.Err(); err != nil {
			return Page{}, err
		}
		f.mu.Lock()
		wake, covered := f.wake, false
		if f.ring != nil && f.ring.covers(after) {
			if after.isBefore(f.ring.head) {
				page, err := f.ring.pageAfter(after, maxEvents)
				f.mu.Unlock()
				return page, err
			}
			covered = true
		}
		f.mu.Unlock()

		if !covered {
			page, found, err := f.readBehind(ctx, after, maxEvents, types)
			switch {
			case err != nil && ctx.Err() != nil:
				return Page{}, ctx.Err()
			case domain.IsKind(err, domain.KindUnavailable):
				f.log.WithError(err).Warn("the log cannot be read, trying again")
				wait = pause(ctx, wait)
				continue
			case err != nil || found:
				return page, err
			}
			wait = minBackoff
		}
		if err := await(ctx, wake, covered); err != nil {
			return Page{}, err
		}
	}
}

// readBehind gives a page from the log itself; found is false at its end.
func (f *Feed) readBehind(ctx context.Context, after Checkpoint, maxEvents int, types map[string]bool) (page Page, found bool, err error) {
	events, next, end, err := f.client.ReadAll(ctx, after.Position, after.Start, maxEvents, types)
	if err != nil {
		return Page{}, false, err
	}
	found = len(events) > 0 || next != after.Position
	return Page{Events: events, Next: next, Live: end}, found, nil
}

// await blocks until the ring moved. A consumer that the ring does not cover is
// at the end of a log without a subscription: it also looks again after a
// while.
func await(ctx context.Context, wake <-chan struct{}, covered bool) error {
	var poll <-chan time.Time
	if !covered {
		timer := time.NewTimer(pollEvery)
		defer timer.Stop()
		poll = timer.C
	}
	select {
	case <-wake:
	case <-poll:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Run keeps the feed subscribed until ctx ends, which gives nil. It starts at
// the end of the log as it finds it. Call it once.
func (f *Feed) Run(ctx context.Context) error {
	at, err := f.findEnd(ctx)
	if err != nil || ctx.Err() != nil {
		return f.stopped(ctx, err)
	}
	f.mu.Lock()
	f.ring = newRing(at, f.maxEvents, f.maxBytes)
	f.notify()
	f.mu.Unlock()

	for wait := minBackoff; ; {
		moved, err := f.followTail(ctx)
		if ctx.Err() != nil || errors.Is(err, ErrClosed) {
			return f.stopped(ctx, err)
		}
		if moved {
			wait = minBackoff
		}
		f.log.WithError(err).WithField("position", f.Head()).Warn("the subscription dropped, subscribing again")
		wait = pause(ctx, wait)
	}
}

// stopped gives nil if ctx has ended.
func (f *Feed) stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return fmt.Errorf("feed: %w", err)
	}
	return nil
}

// findEnd finds the end of the log, however long the node is away.
func (f *Feed) findEnd(ctx context.Context) (Checkpoint, error) {
	for wait := minBackoff; ; wait = pause(ctx, wait) {
		position, exists, err := f.client.head(ctx)
		switch {
		case err == nil:
			return Checkpoint{Position: position, Start: !exists}, nil
		case ctx.Err() != nil || !domain.IsKind(err, domain.KindUnavailable):
			return Checkpoint{}, err
		}
		f.log.WithError(err).Warn("the log does not answer, trying again")
	}
}

// followTail subscribes behind the newest position and fills the ring until the
// subscription ends. moved says that the ring moved.
func (f *Feed) followTail(ctx context.Context) (moved bool, err error) {
	f.mu.Lock()
	from := f.ring.head
	f.mu.Unlock()
	if f.verify != nil {
		if err := f.verify(ctx); err != nil {
			return false, err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	arriving := f.client.subscribe(ctx, from)

	// Silence before the subscription is confirmed means that it failed. Silence
	// afterwards means that the log has to be asked for newer events.
	silence := time.NewTimer(f.client.call + leaveAfter)
	defer silence.Stop()
	opened, behind := false, false
	batch := make([]arrival, 0, feedBatch)
	for {
		select {
		case a := <-arriving:
			batch, err = collectArrived(append(batch[:0], a), arriving)
			took, takeErr := f.addBatch(ctx, batch)
			moved = took || moved
			if err := errors.Join(err, takeErr); err != nil {
				return moved, err
			}
			opened, behind = true, false
			silence.Reset(f.client.quiet)
		case <-silence.C:
			if !opened || behind {
				cancel(errNoAnswer)
				return moved, errNoAnswer
			}
			behind = f.behind(ctx)
			silence.Reset(f.client.quiet)
		case <-ctx.Done():
			return moved, ctx.Err()
		}
	}
}

// errEnded stands in for the end of a subscription without a reason.
var errEnded = errors.New("the node ended the subscription")

// collectArrived adds the arrivals that wait already. If one of them is the end, the batch
// holds the arrivals before it.
func collectArrived(batch []arrival, arriving <-chan arrival) ([]arrival, error) {
	for {
		if last := batch[len(batch)-1]; last.isEnd() {
			if last.err == nil {
				last.err = errEnded
			}
			return batch[:len(batch)-1], last.err
		}
		if len(batch) == cap(batch) {
			return batch, nil
		}
		select {
		case a := <-arriving:
			batch = append(batch, a)
		default:
			return batch, nil
		}
	}
}

// addBatch decodes a batch and puts it into the ring. Positions only grow: an event
// that is not behind head was in the ring before. An error ends the batch before an
// event whose parts cannot be read now.
func (f *Feed) addBatch(ctx context.Context, batch []arrival) (moved bool, err error) {
	slots := make([]slot, 0, len(batch))
	var page []*esdb.RecordedEvent
	for _, a := range batch {
		if a.event != nil {
			page = append(page, a.event)
		}
	}
	if err := f.client.expect(ctx, page); err != nil {
		return false, err
	}
	for _, a := range batch {
		if a.reached != nil {
			slots = append(slots, slot{position: *a.reached})
		}
		if a.event == nil {
			continue
		}
		s := slot{position: positionOf(a.event)}
		if !isSystem(a.event.EventType) {
			s.size = slotOverhead + len(a.event.Data) + len(a.event.UserMetadata)
			var r RawEvent
			if r, err = f.client.whole(ctx, a.event); err != nil {
				break
			}
			s.size += len(r.data)
			if s.event, err = f.client.recorded(ctx, r, true); errors.As(err, &s.failed) {
				err = nil
			}
			if err != nil {
				break
			}
		}
		slots = append(slots, s)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range slots {
		switch {
		case !f.ring.head.isBefore(At(s.position)):
			continue
		case s.size == 0:
			f.ring.moveHead(s.position)
		default:
			f.ring.pushSlot(s)
			f.unknown.note(s)
		}
		moved = true
	}
	if moved {
		f.notify()
	}
	return moved, err
}

// slotOverhead is about the memory that an event takes beside its bytes.
const slotOverhead = 512

// behind asks whether the log holds an event that the subscription did not bring: a
// connection can look alive while nothing comes through it. An event that was written
// just now may still be under way.
func (f *Feed) behind(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, f.client.call)
	defer cancel()
	position, exists, err := f.client.head(ctx)
	if err != nil {
		return false // the node is away, which ends the subscription by itself
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ring.head.isBefore(Checkpoint{Position: position, Start: !exists})
}

// notify wakes every waiting consumer. The caller holds the lock.
func (f *Feed) notify() {
	close(f.wake)
	f.wake = make(chan struct{})
}

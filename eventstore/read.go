package eventstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/domain"
	"humanqa/internal/tracing"
)

// The first page of a load is short, since most readers of a long stream's middle stop soon.
// The node would have sent many more events by then.
const firstLoaded, moreLoaded = 64, 4

// Load calls each for every event of the stream from the given revision on, in
// order. A stream that does not exist has no events. After an error, the stream may
// have events that each has not seen. A read that breaks goes on behind the last event
// seen.
func (c *Client) Load(ctx context.Context, stream string, from uint64, each func(domain.Recorded) error) error {
	for count := uint64(firstLoaded); ; count *= moreLoaded {
		end := from + count
		err := c.readStream(ctx, stream, from, count, func(e *esdb.RecordedEvent) error {
			recorded, err := c.decode(ctx, e)
			if err != nil {
				return err
			}
			from++
			return each(recorded)
		})
		if err != nil || from < end {
			return err
		}
	}
}

func (c *Client) decode(ctx context.Context, e *esdb.RecordedEvent) (domain.Recorded, error) {
	r, err := c.whole(ctx, e)
	if err != nil {
		return domain.Recorded{}, err
	}
	return c.recorded(ctx, r, true)
}

// errTail ends a read that goes backwards at the event that it looked for.
var errTail = errors.New("the tail is read")

// LoadTail gives the events of a stream from the last one of a type on, in order, or all
// if it has none of the type. It reads backwards, in pages as Load does. Not ok: there are more
// than most.
func (c *Client) LoadTail(ctx context.Context, stream, eventType string, most int) (events []domain.Recorded, ok bool, err error) {
	opts := esdb.ReadStreamOptions{From: esdb.End{}, Direction: esdb.Backwards}
	for page, whole := firstLoaded, true; whole && err == nil; page *= moreLoaded {
		before := len(events)
		count := min(page, max(most, 1)-before)
		err = c.retry(ctx, stream, func() (bool, error) {
			events = events[:before]
			return false, c.runRead(ctx, func(ctx context.Context, client *esdb.Client) (*esdb.ReadStream, error) {
				return client.ReadStream(ctx, stream, opts, uint64(count))
			}, func(e *esdb.RecordedEvent) error {
				if n := len(events); n > 0 && e.EventNumber != events[n-1].Revision-1 {
					return fmt.Errorf("read %s: %w: revision %d before %d", stream, ErrTruncated, e.EventNumber, events[n-1].Revision)
				}
				recorded, err := c.decode(ctx, e)
				if err != nil {
					return err
				}
				if events = append(events, recorded); e.EventType == eventType && !recorded.Disowned {
					return errTail
				}
				return nil
			})
		})
		if whole = len(events) == before+count && len(events) < most && events[len(events)-1].Revision > 0; whole {
			opts.From = esdb.Revision(events[len(events)-1].Revision - 1)
		}
	}
	if err != nil && !errors.Is(err, errTail) {
		return nil, false, err
	}
	slices.Reverse(events)
	if err == nil && len(events) > 0 && events[0].Revision > 0 {
		return nil, false, nil
	}
	return events, true, nil
}

// ReadRaw calls each for every event of the stream, as it is stored.
func (c *Client) ReadRaw(ctx context.Context, stream string, each func(RawEvent) error) error {
	return c.ReadRawPage(ctx, stream, 0, math.MaxInt64, each)
}

// ReadRawPage is ReadRaw of up to count events from a revision on.
func (c *Client) ReadRawPage(ctx context.Context, stream string, from, count uint64, each func(RawEvent) error) error {
	return c.readStream(ctx, stream, from, count, func(e *esdb.RecordedEvent) error {
		r, err := c.whole(ctx, e)
		if err != nil {
			return err
		}
		return each(r)
	})
}

// ReadAll gives a page of the log, up to max events behind after (from the
// start of the log when fromStart). System events are left out, but next moves
// past them; end says that the page reached the end of the log. A decode error
// ends the page before the event that caused it, and is given once it comes
// first.
//
// Events of other types than the given ones have no Event and no Meta, only the log's own
// facts. Events have sums only if the types hold Sums. Without types (nil) all are read
// whole.
func (c *Client) ReadAll(
	ctx context.Context, after domain.Position, fromStart bool, maxEvents int, types map[string]bool,
) (events []domain.Recorded, next domain.Position, end bool, err error) {
	sums := types == nil || types[Sums]
	next, end, err = c.readStored(ctx, after, fromStart, maxEvents, func() { events = nil },
		func(ctx context.Context, e *esdb.RecordedEvent) error {
			switch {
			case isSystem(e.EventType):
				return nil
			case types != nil && !types[e.EventType]:
				events = append(events, raw(e).recorded(sums))
				return nil
			}
			whole, err := c.whole(ctx, e)
			if err != nil {
				return err
			}
			recorded, err := c.recorded(ctx, whole, sums)
			if err == nil {
				events = append(events, recorded)
			}
			return err
		})
	if err != nil {
		return nil, after, false, err
	}
	return events, next, end, nil
}

// ReadAllRaw is ReadAll for undecoded events.
func (c *Client) ReadAllRaw(
	ctx context.Context, after domain.Position, fromStart bool, maxEvents int,
) (events []RawEvent, next domain.Position, end bool, err error) {
	next, end, err = c.readStored(ctx, after, fromStart, maxEvents, func() { events = nil },
		func(ctx context.Context, e *esdb.RecordedEvent) error {
			if isSystem(e.EventType) {
				return nil
			}
			r, err := c.whole(ctx, e)
			if err == nil {
				events = append(events, r)
			}
			return err
		})
	if err != nil {
		return nil, after, false, err
	}
	return events, next, end, nil
}

// Late is the age of the first event behind a position; 0: there is none. Positions are bytes
// on an original server, and do not tell how late a reader is.
func (c *Client) Late(ctx context.Context, at domain.Position, fromStart bool, now time.Time) (time.Duration, error) {
	for {
		events, next, end, err := c.ReadAllRaw(ctx, at, fromStart, 1)
		switch {
		case err != nil:
			return 0, err
		case len(events) > 0:
			return max(now.Sub(events[0].Created), 0), nil
		case end: // only the server's own events are left
			return 0, nil
		}
		at, fromStart = next, false
	}
}

// readBlock is the number of events of a page that are handled together: one query gets
// their keys.
const readBlock = 256

// readStored reads a page of every event, as the log holds it; begin is called before each
// attempt at it.
func (c *Client) readStored(ctx context.Context, after domain.Position, fromStart bool, maxEvents int, begin func(),
	each func(context.Context, *esdb.RecordedEvent) error,
) (next domain.Position, end bool, err error) {
	next = after
	opts := esdb.ReadAllOptions{From: esdb.Start{}, Direction: esdb.Forwards}
	count := uint64(max(maxEvents, 1))
	if !fromStart {
		opts.From = esdb.Position{Commit: after.Commit, Prepare: after.Prepare}
		count++ // the protocol includes the event at the position
	}
	var (
		seen   uint64
		broken bool // the read ended early, but the events it gave are whole
	)
	err = c.retry(ctx, "$all", func() (bool, error) {
		begin()
		next, seen = after, 0
		moved := false
		var block []*esdb.RecordedEvent
		flush := func() error {
			if err := c.expect(ctx, block); err != nil {
				return err
			}
			for _, e := range block {
				if err := each(ctx, e); err != nil {
					return err
				}
				next, moved = positionOf(e), true
			}
			block = block[:0]
			return nil
		}
		err := c.runRead(ctx, func(ctx context.Context, client *esdb.Client) (*esdb.ReadStream, error) {
			return client.ReadAll(ctx, opts, count)
		}, func(e *esdb.RecordedEvent) error {
			seen++
			if !fromStart && positionOf(e).Compare(after) <= 0 {
				return nil
			}
			if block = append(block, e); len(block) < readBlock {
				return nil
			}
			return flush()
		})
		if err == nil {
			if err = flush(); err != nil {
				err = &consumerError{err}
			}
		}
		if broken = err != nil && moved; broken {
			return true, nil // the next page meets the error
		}
		return false, err
	})
	return next, !broken && seen < count, err
}

// Head gives the position of the log's last event, of any kind; zero if the log
// is empty.
func (c *Client) Head(ctx context.Context) (domain.Position, error) {
	position, _, err := c.head(ctx)
	return position, err
}

// head also says whether there is any event: the first position may be zero.
func (c *Client) head(ctx context.Context) (position domain.Position, exists bool, err error) {
	err = c.retry(ctx, "$all", func() (bool, error) {
		position, exists = domain.Position{}, false
		return false, c.runRead(ctx, func(ctx context.Context, client *esdb.Client) (*esdb.ReadStream, error) {
			return client.ReadAll(ctx, esdb.ReadAllOptions{From: esdb.End{}, Direction: esdb.Backwards}, 1)
		}, func(e *esdb.RecordedEvent) error {
			position, exists = positionOf(e), true
			return nil
		})
	})
	return position, exists, err
}

// Last gives those of the log's last events that have one of the types, in its order.
func (c *Client) Last(ctx context.Context, count uint64, types []string) (events []domain.Recorded, err error) {
	err = c.retry(ctx, "$all", func() (bool, error) {
		events = nil
		return false, c.runRead(ctx, func(ctx context.Context, client *esdb.Client) (*esdb.ReadStream, error) {
			return client.ReadAll(ctx, esdb.ReadAllOptions{From: esdb.End{}, Direction: esdb.Backwards}, count)
		}, func(e *esdb.RecordedEvent) error {
			if !slices.Contains(types, e.EventType) {
				return nil
			}
			recorded, err := c.decode(ctx, e)
			events = append(events, recorded)
			return err
		})
	})
	slices.Reverse(events)
	return events, err
}

// readStream reads count events of a stream from a revision on. The revisions
// must follow on each other without a hole.
func (c *Client) readStream(ctx context.Context, stream string, from, count uint64, each func(*esdb.RecordedEvent) error) error {
	next := from
	return c.retry(ctx, stream, func() (bool, error) {
		begin := next
		left := count - (next - from)
		if left == 0 {
			return false, nil
		}
		err := c.runRead(ctx, func(ctx context.Context, client *esdb.Client) (*esdb.ReadStream, error) {
			opts := esdb.ReadStreamOptions{From: esdb.Revision(next), Direction: esdb.Forwards}
			return client.ReadStream(ctx, stream, opts, left)
		}, func(e *esdb.RecordedEvent) error {
			if e.EventNumber != next {
				return fmt.Errorf("read %s: %w: revision %d where %d should be", stream, ErrTruncated, e.EventNumber, next)
			}
			if err := each(e); err != nil {
				return err
			}
			next++
			return nil
		})
		return next > begin, err
	})
}

// retry repeats a read whose error may pass, until ctx ends or the read has not moved
// for the time of patience. read says whether it moved. retry returns an error of the
// consumer as it is.
func (c *Client) retry(ctx context.Context, what string, read func() (moved bool, err error)) error {
	limit := time.Now().Add(c.patience)
	for wait := minBackoff; ; wait = pause(ctx, wait) {
		moved, err := read()
		if err == nil {
			return nil
		}
		if own, ok := errors.AsType[*consumerError](err); ok {
			return own.err
		}
		if moved {
			limit, wait = time.Now().Add(c.patience), minBackoff
		}
		switch classify(err) {
		case classNoStream:
			return nil
		case classDeleted:
			return fmt.Errorf("read %s: %w: %w", what, ErrStreamDeleted, err)
		case classRetry, classReconnect, classTimeout, classIncomplete:
			if ctx.Err() == nil && time.Now().Before(limit) {
				tracing.Log(ctx, c.log).WithError(err).WithField("stream", what).Debug("a read broke, reading on")
				continue
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("read %s: %w", what, ctx.Err())
		}
		return readError(what, err)
	}
}

// consumerError is an error of the consumer of a read, not of the read. It
// stays between read and retry.
type consumerError struct{ err error }

func (e *consumerError) Error() string { return e.err.Error() }

// runRead runs one read to its end. It gives nil only when the node ended it.
func (c *Client) runRead(
	ctx context.Context, open func(context.Context, *esdb.Client) (*esdb.ReadStream, error), each func(*esdb.RecordedEvent) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k := c.connector()
	arriving, suspect := start(ctx, k, func(ctx context.Context, client *esdb.Client, hand func(arrival) bool) error {
		stream, err := open(ctx, client)
		if err != nil {
			return err
		}
		defer stream.Close()
		for {
			e, err := stream.Recv()
			if err != nil {
				if isEnd(err) && ctx.Err() == nil {
					return nil
				}
				return err
			}
			if e.Event == nil {
				continue // a link whose event is gone; we write no links
			}
			if !hand(arrival{event: e.OriginalEvent()}) {
				return ctx.Err()
			}
		}
	})
	idle := time.NewTimer(c.call)
	defer idle.Stop()
	suspicion, stop := k.suspicion()
	defer stop()
	heard := false // an event came since the last suspicion
	for {
		select {
		case a := <-arriving:
			if a.event == nil {
				return a.err
			}
			if err := each(a.event); err != nil {
				return &consumerError{err}
			}
			idle.Reset(c.call)
			heard = true
		case <-suspicion:
			if !heard {
				suspect()
			}
			heard = false
		case <-idle.C:
			cancel(errNoAnswer)
			return errNoAnswer
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// raw gives an event as the log stores it; a copied event as it was in its first log.
func raw(e *esdb.RecordedEvent) RawEvent {
	r := RawEvent{
		ID: e.EventID, Stream: e.StreamID, Revision: e.EventNumber, Position: positionOf(e),
		Type: e.EventType, Created: e.CreatedDate, Data: e.Data, Meta: e.UserMetadata,
		Binary: e.ContentType != "application/json",
	}
	if meta, created, copied := uncarried(e.UserMetadata); copied {
		r.Meta, r.Created, r.Copied = meta, created, e.CreatedDate
	}
	return r
}

func positionOf(e *esdb.RecordedEvent) domain.Position {
	return domain.Position{Commit: e.Position.Commit, Prepare: e.Position.Prepare}
}

// isSystem says that an event belongs to the node: stream metadata, links,
// deletions.
func isSystem(eventType string) bool { return strings.HasPrefix(eventType, "$") }

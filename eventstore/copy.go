package eventstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/domain"
)

const (
	// copyPage is how many events are read at a time. Each may be a part of half
	// a megabyte.
	copyPage = 128
	// copyAppend is how many events one append of a copy carries at most.
	copyAppend = 500

	typeMetadata      = "$metadata"
	typeStreamDeleted = "$streamDeleted"
)

// ErrCannotCopy: the target holds other events, or the source an event that no copy
// could keep. No event was written behind the first difference.
var ErrCannotCopy = errors.New("cannot be copied")

// Copied is the result of a copy.
type Copied struct {
	Events int64  `json:"events"` // that both logs hold
	Added  int64  `json:"added"`  // of them by this run
	Hash   string `json:"sha256"` // of the events that both hold, hex
	// SamePlaces says that every event has the same position in both.
	SamePlaces bool `json:"samePlaces"`
	// Grown says that the source has become longer in the meantime.
	Grown bool `json:"grown"`
	// Unreadable names the events of which the source shows only the place. The copy has
	// them as the source shows them.
	Unreadable []string `json:"unreadable,omitempty"`
}

// Copy copies the events of from to to, up to the end of from at the beginning. It
// keeps the log's order, stream, revision, id, type, data, metadata and, by its
// metadata, time. Streams of the server's own ($…) are left out, but for the metadata
// of other streams. Nothing is written to from.
//
// One append follows the other, so that any failure keeps the order. A later copy
// continues one that was cut off: it compares the events that to holds already, one by
// one, and refuses a different one. After a run that added events, to is read once
// more and its hash compared. told gets the number of events so far, many times a second.
func Copy(ctx context.Context, from, to *Client, told func(events int64)) (Copied, error) {
	head, exists, err := from.head(ctx)
	if err != nil || !exists {
		return Copied{}, err
	}
	c := copying{target: to, deleted: map[string]bool{}, told: told}
	var stopFrom, stopTo func()
	c.from, stopFrom = pull(from.stored(ctx, &head))
	defer stopFrom()
	c.to, stopTo = pull(to.stored(ctx, nil))
	defer stopTo()
	sum, added, err := c.copyMissing(ctx)
	if err != nil {
		return Copied{Events: sum.events, Added: added}, err
	}
	if added > 0 {
		if err := c.verify(ctx, sum); err != nil {
			return Copied{Events: sum.events, Added: added}, err
		}
	}
	now, _, err := from.head(ctx)
	if err != nil {
		return Copied{Events: sum.events, Added: added}, err
	}
	return Copied{
		Events: sum.events, Added: added, Hash: sum.content(), SamePlaces: c.samePlaces, Grown: now != head, Unreadable: c.unreadable,
	}, nil
}

// Walk calls each for every event that a copy keeps, in the log's order.
func (c *Client) Walk(ctx context.Context, each func(RawEvent) error) error {
	for e, err := range c.stored(ctx, nil) {
		if err != nil {
			return err
		}
		if err := each(e.RawEvent); err != nil {
			return err
		}
	}
	return nil
}

type copying struct {
	from, to   func() (*storedEvent, error) // the next event, nil behind the last one
	target     *Client
	deleted    map[string]bool // streams that are deleted softly
	told       func(int64)
	samePlaces bool
	unreadable []string
}

// copyMissing compares the events that to holds, and appends the rest.
func (c *copying) copyMissing(ctx context.Context) (sum *summary, added int64, err error) {
	sum = newSummary()
	c.samePlaces = true
	for {
		was, err := c.to()
		if err != nil {
			return sum, 0, fmt.Errorf("the log to copy to: %w", err)
		}
		if was == nil {
			break
		}
		is, err := c.from()
		if err != nil {
			return sum, 0, fmt.Errorf("the log to copy from: %w", err)
		}
		if is == nil || !bytes.Equal(is.text(), was.text()) {
			return sum, 0, fmt.Errorf("%w: the log to copy to holds something else: its event %d is %s, and %s in the log to copy from; "+
				"copy to an empty log, on which no service has run", ErrCannotCopy, sum.events+1, was, is)
		}
		if err := c.see(is); err != nil {
			return sum, 0, err
		}
		c.samePlaces = c.samePlaces && is.Position == was.Position
		sum.add(is)
		if sum.events%copyPage == 0 {
			c.told(sum.events)
		}
	}
	var batch []*storedEvent
	size := 0
	for {
		e, err := c.from()
		if err != nil {
			return sum, added, fmt.Errorf("the log to copy from: %w", err)
		}
		if len(batch) > 0 && (e == nil || e.Stream != batch[0].Stream || e.Type == typeStreamDeleted ||
			len(batch) == copyAppend || size+e.size() > maxWhole) {
			if err := c.appendBatch(ctx, batch); err != nil {
				return sum, added, err
			}
			for _, e := range batch {
				sum.add(e)
			}
			added += int64(len(batch))
			c.told(sum.events)
			batch, size = batch[:0], 0
		}
		if e == nil {
			return sum, added, nil
		}
		if err := c.see(e); err != nil {
			return sum, added, err
		}
		batch, size = append(batch, e), size+e.size()
	}
}

// see refuses an event that the target could not hold unchanged: one of a stream that
// was deleted and written again, where a server adds an event of its own.
func (c *copying) see(e *storedEvent) error {
	if e.Unreadable() != nil {
		c.unreadable = append(c.unreadable, e.String())
	}
	described, ofMetadata := strings.CutPrefix(e.Stream, "$$")
	if !ofMetadata {
		described = e.Stream
	}
	if c.deleted[described] && e.Type != typeStreamDeleted {
		return fmt.Errorf("%w: %s stands in a stream that was deleted before: the target would add an event", ErrCannotCopy, e)
	}
	if ofMetadata && e.Type == typeMetadata {
		var limits struct {
			TruncateBefore int64 `json:"$tb"`
		}
		if json.Unmarshal(e.Data, &limits) == nil && limits.TruncateBefore == math.MaxInt64 {
			c.deleted[described] = true
		}
	}
	return nil
}

// appendBatch writes events that follow each other in one stream.
func (c *copying) appendBatch(ctx context.Context, batch []*storedEvent) error {
	first := batch[0]
	if first.Type == typeStreamDeleted {
		return c.tombstone(ctx, first)
	}
	expected := domain.NoStream
	if first.Revision > 0 {
		expected = domain.ExpectedRevision(first.Revision - 1)
	}
	data := make([]esdb.EventData, len(batch))
	for i, e := range batch {
		data[i] = esdb.EventData{
			EventID: e.ID, EventType: e.Type, ContentType: esdb.ContentTypeBinary,
			Data: e.Data, Metadata: carrying(e.Meta, e.Created),
		}
		if !e.Binary {
			data[i].ContentType = esdb.ContentTypeJson
		}
		if want := first.Revision + uint64(i); e.Revision != want {
			return fmt.Errorf("%w: %s: the events before it in its stream are gone", ErrCannotCopy, e)
		}
	}
	_, err := c.target.appendWhole(ctx, first.Stream, expected, data)
	if errors.Is(err, domain.ErrWrongRevision) {
		return fmt.Errorf("%w: %s: the events before it in its stream are gone, or another program writes to the target log: %w",
			ErrCannotCopy, first, err)
	}
	return err
}

// tombstone is like an append, but its id and time are the target's.
func (c *copying) tombstone(ctx context.Context, e *storedEvent) error {
	wait := minBackoff
	for limit := time.Now().Add(c.target.patience); ; wait = pause(ctx, wait) {
		_, _, err := call(ctx, c.target.connector(), func(ctx context.Context, client *esdb.Client) (*esdb.DeleteResult, error) {
			return client.TombstoneStream(ctx, e.Stream, esdb.TombstoneStreamOptions{ExpectedRevision: esdb.Any{}})
		})
		switch class := classify(err); {
		case err == nil, class == classDeleted: // by an earlier attempt
			return nil
		case class == classFinal, class == classDenied, class == classRevision, ctx.Err() != nil, time.Now().After(limit):
			return fmt.Errorf("delete %s: %w", e.Stream, err)
		}
	}
}

// verify reads all that was copied from the target.
func (c *copying) verify(ctx context.Context, want *summary) error {
	got := newSummary()
	err := c.target.Walk(ctx, func(e RawEvent) error {
		got.add(&storedEvent{e})
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the copy: %w", err)
	}
	if got.events != want.events || got.content() != want.content() {
		return fmt.Errorf(
			"the copy is not the same: %d events with hash %s, not %d with %s: another program wrote to the log; copy to an empty one",
			got.events, got.content(), want.events, want.content())
	}
	c.samePlaces = got.placesSum() == want.placesSum()
	return nil
}

// storedEvent is an event as a copy keeps it.
type storedEvent struct{ RawEvent }

func (e *storedEvent) String() string {
	if e == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s (%s, revision %d of %s)", e.ID, e.Type, e.Revision, e.Stream)
}

// size is about what the event takes of an append, with its time in the metadata.
func (e *storedEvent) size() int { return len(e.Stream) + len(e.Type) + len(e.Data) + len(e.Meta) }

// text holds the fields that have to be equal, each behind its length.
func (e *storedEvent) text() []byte {
	fields := []string{e.Stream, e.Type}
	if e.Type != typeStreamDeleted {
		data, meta := sha256.Sum256(e.Data), sha256.Sum256(e.Meta)
		fields = append(fields, strconv.FormatUint(e.Revision, 10), e.ID.String(), strconv.FormatBool(!e.Binary),
			strconv.FormatInt(e.Created.UnixNano()/int64(tick), 10), string(data[:]), string(meta[:]))
	}
	var out []byte
	for _, field := range fields {
		out = strconv.AppendInt(out, int64(len(field)), 10)
		out = append(append(out, ':'), field...)
	}
	return append(out, '\n')
}

// summary is the count and the hash of a run of events.
type summary struct {
	events    int64
	of, where hash.Hash
}

func newSummary() *summary { return &summary{of: sha256.New(), where: sha256.New()} }

func (s *summary) add(e *storedEvent) {
	s.events++
	s.of.Write(e.text())
	_, _ = fmt.Fprintln(s.where, e.Position) // a hash takes everything
}

func (s *summary) content() string   { return hex.EncodeToString(s.of.Sum(nil)) }
func (s *summary) placesSum() string { return hex.EncodeToString(s.where.Sum(nil)) }

// stored gives the log's events from its start, without those of the server's own streams, up
// to and including a place; nil: to the end of the log. It reads page by page.
func (c *Client) stored(ctx context.Context, until *domain.Position) iter.Seq2[*storedEvent, error] {
	return func(yield func(*storedEvent, error) bool) {
		at := Checkpoint{Start: true}
		for end := false; !end; {
			var page []*storedEvent
			next, last, err := c.readStored(ctx, at.Position, at.Start, copyPage, func() { page = nil },
				func(_ context.Context, e *esdb.RecordedEvent) error {
					if !serversOwn(e.StreamID) {
						page = append(page, &storedEvent{raw(e)})
					}
					return nil
				})
			if err != nil {
				yield(nil, err)
				return
			}
			for _, e := range page {
				if until != nil && e.Position.Compare(*until) > 0 || !yield(e, nil) {
					return
				}
			}
			if end = last; next != at.Position || len(page) > 0 {
				at = At(next)
			}
		}
	}
}

// pull gives the events one by one: nil behind the last one.
func pull(events iter.Seq2[*storedEvent, error]) (next func() (*storedEvent, error), stop func()) {
	one, stop := iter.Pull2(events)
	return func() (*storedEvent, error) {
		e, err, _ := one()
		return e, err
	}, stop
}

// serversOwn is a stream that a server keeps for itself, or the metadata of one.
func serversOwn(stream string) bool {
	described, _ := strings.CutPrefix(stream, "$$")
	return strings.HasPrefix(described, "$")
}

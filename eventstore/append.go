package eventstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/origin"
	"humanqa/internal/tracing"
)

// maxIncomplete bounds how often the node may end one append half-way.
const maxIncomplete = 3

// Append writes all events or none, at the expected revision. The bytes are
// made once: a resend after an unknown outcome sends exactly the same.
//
// It fails with domain.ErrWrongRevision (another writer was first) or
// domain.ErrUnknownOutcome (the outcome is unknown after the resends, too). With
// ErrStreamDeleted or domain.ErrRefused nothing was written. With a refusal of kind
// unavailable nothing was sent, or the log takes no events.
func (c *Client) Append(
	ctx context.Context, stream string, expected domain.ExpectedRevision, events []domain.NewEvent,
) (domain.AppendResult, error) {
	data, err := c.proposals(ctx, stream, events)
	if err != nil {
		return domain.AppendResult{}, fmt.Errorf("append to %s: %w", stream, err)
	}
	if err := c.split(ctx, data); err != nil {
		return domain.AppendResult{}, fmt.Errorf("append to %s: %w", stream, err)
	}
	c.authenticated(stream, uint64(expected+1), data)
	ctx, span := c.tracer.StartCaused(ctx, "append", func(yield func(string) bool) {
		for i := range events {
			if !yield(events[i].Meta.Trace) {
				return
			}
		}
	})
	defer span.End()
	span.Note("humanqa.stream", stream)
	span.Count("humanqa.events", len(events))
	written, err := c.appendWhole(ctx, stream, expected, data)
	if err != nil {
		span.Failed(err.Error())
	}
	return written, err
}

// appendWhole is Append for events that are encoded and fit.
func (c *Client) appendWhole(
	ctx context.Context, stream string, expected domain.ExpectedRevision, data []esdb.EventData,
) (domain.AppendResult, error) {
	opts := esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}
	switch {
	case expected >= 0:
		opts.ExpectedRevision = esdb.Revision(uint64(expected))
	case expected != domain.NoStream:
		return domain.AppendResult{}, fmt.Errorf("append to %s: %d is no revision", stream, expected)
	}

	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	written := domain.AppendResult{Revision: uint64(int64(expected) + int64(len(data)))}
	unknown := false // an earlier attempt may have been written
	incomplete := 0
	for wait := minBackoff; ; wait = pause(ctx, wait) {
		result, sent, err := call(ctx, c.connector(), func(ctx context.Context, client *esdb.Client) (*esdb.WriteResult, error) {
			return client.AppendToStream(ctx, stream, opts, data...)
		})
		if err == nil {
			written.Position = domain.Position{Commit: result.CommitPosition, Prepare: result.PreparePosition}
			if written.Position != (domain.Position{}) {
				return written, nil
			}
			return c.locate(ctx, stream, written)
		}
		switch classify(err) {
		case classRevision:
			return domain.AppendResult{}, fmt.Errorf("append to %s: %w: %w", stream, domain.ErrWrongRevision, err)
		case classDeleted:
			err = fmt.Errorf("%w: %w", ErrStreamDeleted, err)
		case classIncomplete:
			// A broken connection looks the same, but not several times in a row.
			if incomplete++; incomplete < maxIncomplete && ctx.Err() == nil {
				continue
			}
			err = fmt.Errorf("%w: the node does not take it whole: %w", domain.ErrRefused, err)
		case classLater:
			if ctx.Err() == nil {
				continue
			}
			err = fullError(err)
		case classFull:
			c.full.Store(true)
			err = fullError(err)
		case classDenied: // no other events would be taken
			err = domain.Unavailable(err)
		case classNoStream, classFinal:
			if !errors.Is(err, ErrClosed) {
				err = fmt.Errorf("%w: %w", domain.ErrRefused, err)
			}
		default:
			unknown = unknown || sent
			if ctx.Err() == nil {
				tracing.Log(ctx, c.log).WithError(err).WithField("stream", stream).Warn("outcome of an append unknown, sending it again")
				continue
			}
		}
		switch {
		case unknown || sent && errors.Is(err, ErrClosed):
			return domain.AppendResult{}, fmt.Errorf("append to %s: %w: %w", stream, domain.ErrUnknownOutcome, err)
		case !sent:
			return domain.AppendResult{}, domain.Unavailable(fmt.Errorf("append to %s: %w", stream, err))
		}
		return domain.AppendResult{}, fmt.Errorf("append to %s: %w", stream, err)
	}
}

// Writable fails, by a refusal that says why, while the log takes no events. It asks by an
// append without events, for which other logs may write something. So it asks only a log
// that has refused an append.
func (c *Client) Writable(ctx context.Context) error {
	if !c.full.Load() {
		return nil
	}
	_, _, err := call(ctx, c.connector(), func(ctx context.Context, client *esdb.Client) (*esdb.WriteResult, error) {
		return client.AppendToStream(ctx, origin.Stream, esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}})
	})
	switch {
	case err == nil:
		c.full.Store(false)
		return nil
	case classify(err) == classFull:
		return fullError(err)
	}
	return fmt.Errorf("ask whether the log takes events: %w", err)
}

// proposals encodes events for the library. The id must be there: the library
// would make up another one for each attempt.
func (c *Client) proposals(ctx context.Context, stream string, events []domain.NewEvent) ([]esdb.EventData, error) {
	if len(events) == 0 {
		return nil, errEmptyAppend
	}
	out := make([]esdb.EventData, len(events))
	for i, e := range events {
		if e.ID == uuid.Nil {
			return nil, fmt.Errorf("event %d has no id", i)
		}
		data, meta, err := Encode(e)
		if err == nil {
			data, err = c.seal(ctx, stream, e.Event.EventType(), data)
		}
		if err == nil {
			data, err = c.sealTexts(ctx, stream, e, data)
		}
		if err != nil {
			return nil, err
		}
		out[i] = esdb.EventData{
			EventID: e.ID, EventType: e.Event.EventType(), ContentType: esdb.ContentTypeJson,
			Data: data, Metadata: meta,
		}
	}
	return out, nil
}

// locate finds the position of events that are written for sure. A node may leave it
// out when it recognises a resend. For the very first event of a log it may be zero.
func (c *Client) locate(ctx context.Context, stream string, written domain.AppendResult) (domain.AppendResult, error) {
	err := c.readStream(ctx, stream, written.Revision, 1, func(e *esdb.RecordedEvent) error {
		written.Position = positionOf(e)
		return nil
	})
	if err != nil {
		return domain.AppendResult{}, fmt.Errorf("append to %s: written, but not found again: %w: %w", stream, domain.ErrUnknownOutcome,
			err)
	}
	return written, nil
}

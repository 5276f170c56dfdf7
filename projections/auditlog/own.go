package auditlog

import (
	"context"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/projections/events"
)

// Own gives an account its own events in the log: the streams of the account, and of its
// ledger, projects, jobs, sessions and loops. It never names the tester.
type Own struct {
	log    rawLog
	tree   Tree
	signer *Signer
	feed   *events.Reads
}

// rawLog is the part of *eventstore.Client that Own needs.
type rawLog interface {
	ReadRawPage(ctx context.Context, stream string, from, count uint64, each func(eventstore.RawEvent) error) error
	ReadAllRaw(ctx context.Context, after domain.Position, fromStart bool, maxEvents int) (
		events []eventstore.RawEvent, next domain.Position, end bool, err error)
}

// NewOwn reads a log and its tree; the feed of events knows the account of each stream.
func NewOwn(log rawLog, db *sqlx.DB, signer *Signer) *Own {
	return &Own{log: log, tree: NewTree(db), signer: signer, feed: events.NewReads(db)}
}

// Span is a part of the log: behind a position, from one time on and before another, and up
// to a place. Zero fields don't bound it.
type Span struct {
	After        domain.Position
	Since, Until *time.Time
	Then         *events.Until
}

// Holds says that the span has an event of that position and time. ended says that it has
// no later event, either: times grow with positions, but for delay.
func (s Span) Holds(position domain.Position, at time.Time) (holds, ended bool) {
	switch {
	case s.Then != nil && s.Then.PassedAt(position, at):
		return false, s.Then.PassedAt(position, at.Add(-delay))
	case s.Until != nil && !at.Before(*s.Until):
		return false, at.After(s.Until.Add(delay))
	}
	return position.Compare(s.After) > 0 && (s.Since == nil || !at.Before(*s.Since)), false
}

const (
	// delay bounds the time from the decision of an event until the log has it, and skew
	// how far a clock of the service may be ahead of the log's.
	delay, skew = time.Minute, 10 * time.Second
	// A read of the log begins with a few events, and goes on in pages that grow.
	firstEvents, moreEvents, mostEvents = 16, 4, 1000
)

// Events passes the account's events of a span as rows of EventColumns, in the log's order.
// The tree knows the stream of every event. So behind a page without events of the account
// the read passes over all others without any. Behind the end of the tree it reads all.
func (o *Own) Events(ctx context.Context, accountID string, span Span, each func(row []any) error) error {
	var first domain.Position // an account begins with its own stream
	err := o.log.ReadRawPage(ctx, domain.AccountStream(accountID), 0, 1, func(e eventstore.RawEvent) error {
		first = e.Position
		return nil
	})
	if err != nil {
		return err
	}
	from, err := o.tree.search(ctx, func(l Leaf) bool {
		return l.Position.Compare(first.Max(span.After)) >= 0 && (span.Since == nil || !l.Created.Before(span.Since.Add(-skew)))
	})
	if err != nil {
		return err
	}
	at, index := eventstore.Checkpoint{Start: true}, int64(0) // of the next event
	var mine []eventstore.RawEvent                            // of the last page
	for size := firstEvents; ; size = min(size*moreEvents, mostEvents) {
		if len(mine) == 0 {
			next, err := o.tree.next(ctx, accountID, max(index, from))
			if err != nil {
				return err
			}
			before, err := o.tree.leaves(ctx, next-1, next)
			if err != nil {
				return err
			}
			if next > index && len(before) > 0 && (at.Start || at.Position.Compare(before[0].Position) < 0) {
				at, index, size = eventstore.At(before[0].Position), next, firstEvents
			}
		}
		page, behind, end, err := o.log.ReadAllRaw(ctx, at.Position, at.Start, size)
		if err != nil {
			return err
		}
		at, index = eventstore.At(behind), index+int64(len(page))
		if mine, err = o.mine(ctx, accountID, page); err != nil {
			return err
		}
		for _, e := range mine {
			var meta domain.Metadata
			_ = json.Unmarshal(e.Meta, &meta) // metadata that cannot be read has no time and no actor
			holds, ended := span.Holds(e.Position, meta.Time)
			if ended {
				return nil
			}
			if !holds {
				continue
			}
			data := eventstore.RedactBy(e.Type, e.Whole(), domain.HiddenText, withheld)
			if err := each(eventRow(e, meta, actorOf(meta.Actor), data)); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

// mine leaves those events of a page that are the account's.
func (o *Own) mine(ctx context.Context, accountID string, page []eventstore.RawEvent) ([]eventstore.RawEvent, error) {
	streams := make([]string, len(page))
	for i, e := range page {
		streams[i] = e.Stream
	}
	own, err := o.feed.Own(ctx, accountID, streams...)
	return slices.DeleteFunc(page, func(e eventstore.RawEvent) bool {
		return !own[e.Stream] && e.Stream != domain.AccountStream(accountID)
	}), err
}

// Proof proves that an event of the account is in the log, in the newest checkpoint.
// Another account's event is not found; neither is an event that is newer than the
// checkpoint. Its data and metadata are shown if no part of them is sealed or withheld.
func (o *Own) Proof(ctx context.Context, accountID string, id uuid.UUID) (Proof, error) {
	leaf, found, err := o.tree.Find(ctx, id)
	if err != nil {
		return Proof{}, err
	}
	if found && leaf.Stream != domain.AccountStream(accountID) {
		own, ownErr := o.feed.Own(ctx, accountID, leaf.Stream)
		found, err = own[leaf.Stream], ownErr
	}
	switch {
	case err != nil:
		return Proof{}, err
	case !found:
		return Proof{}, domain.NotFound("event " + id.String()).WithHint(
			"it is the id of an event of yours; one that was written just now is in the tree within a second")
	}
	in, signed, err := o.signer.Latest(ctx)
	if err != nil {
		return Proof{}, err
	}
	if !signed || leaf.Index >= in.Size {
		return Proof{}, domain.NotFound("proof of event " + id.String()).WithHint("a checkpoint is signed every minute: ask again then")
	}
	proof, err := Prove(ctx, o.tree, id, in)
	if err != nil {
		return Proof{}, err
	}
	err = o.log.ReadRawPage(ctx, leaf.Stream, leaf.Revision, 1, func(e eventstore.RawEvent) error {
		var meta domain.Metadata
		told := json.Unmarshal(e.Meta, &meta) == nil && actorOf(meta.Actor) == meta.Actor && utf8.Valid(e.Meta)
		if told {
			text := string(e.Meta)
			proof.Event.Meta = &text
		}
		if data, texts, told := eventstore.Proved(e, withheld); told && utf8.Valid(data) {
			text := string(data)
			proof.Event.Data = &text
			if texts != nil {
				salted := string(texts)
				proof.Event.Texts = &salted
			}
		}
		return nil
	})
	return proof, err
}

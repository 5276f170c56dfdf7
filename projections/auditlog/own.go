package auditlog

import (
	"context"
	"encoding/json"
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
	log    *eventstore.Client
	tree   Tree
	signer *Signer
	feed   *events.Reads
}

// NewOwn reads a log and its tree; the feed of events knows the account of each stream.
func NewOwn(log *eventstore.Client, db *sqlx.DB, signer *Signer) *Own {
	return &Own{log: log, tree: NewTree(db), signer: signer, feed: events.NewReads(db)}
}

// streamsPage is how many streams' names are in memory at a time.
const streamsPage = 500

// Events passes the account's events as rows of EventColumns, stream by stream in the
// order in which the streams began. since is inclusive; until, if given, ends them.
func (o *Own) Events(ctx context.Context, accountID string, since *time.Time, until *events.Until, each func(row []any) error) error {
	tell := func(e eventstore.RawEvent) error {
		var meta domain.Metadata
		_ = json.Unmarshal(e.Meta, &meta) // metadata that cannot be read has no time and no actor
		if since != nil && meta.Time.Before(*since) || until != nil && until.PassedAt(e.Position, meta.Time) {
			return nil
		}
		data := eventstore.RedactBy(e.Type, e.Whole(), domain.HiddenText, withheld)
		return each(eventRow(e, meta, actorOf(meta.Actor), data))
	}
	if err := o.log.ReadRaw(ctx, domain.AccountStream(accountID), tell); err != nil {
		return err
	}
	for after := int64(-1); ; {
		streams, last, err := o.feed.Streams(ctx, accountID, after, streamsPage)
		if err != nil {
			return err
		}
		for _, stream := range streams {
			if err := o.log.ReadRaw(ctx, stream, tell); err != nil {
				return err
			}
		}
		if len(streams) < streamsPage {
			return nil
		}
		after = last
	}
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
		found, err = o.feed.Owns(ctx, accountID, leaf.Stream)
	}
	if err != nil || !found {
		return Proof{}, notFoundOr(err, id)
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

func notFoundOr(err error, id uuid.UUID) error {
	if err != nil {
		return err
	}
	return domain.NotFound("event " + id.String()).WithHint(
		"it is the id of an event of yours; one that was written just now is in the tree within a second")
}

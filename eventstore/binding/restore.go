package binding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/origin"
)

// placeSQL names the server, its timeline and the database. A dump that was loaded
// elsewhere, a server that was restored to a point in time, and a stand-by that took over
// each have another place. A copy of the server's files has the same one.
const placeSQL = `
SELECT (SELECT system_identifier FROM pg_control_system()) || '/' ||
    substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) || '/' ||
    (SELECT oid FROM pg_database WHERE datname = current_database())`

const setPlaceSQL = `
UPDATE projection_log
SET place = $1`

// place identifies where the database stands (placeSQL). It is empty if the server does
// not tell: then an operator has to report restores (NoteRestored).
func (b *Binding) place(ctx context.Context) (place string, err error) {
	err = b.db.GetContext(ctx, &place, placeSQL)
	if refused, ok := errors.AsType[*pq.Error](err); ok && (refused.Code == "42501" || refused.Code == "42883") {
		return "", nil // no right, no such function
	}
	if err != nil {
		return "", fmt.Errorf("read where the database stands: %w", err)
	}
	return place, nil
}

// noteRestore begins a new generation of the log if the database has another place than
// before. Without a loss of events that does no harm: readers go on, since both generations
// have all that they saw. A crash between the event and the row leaves an event with its
// place, and the next check only writes the row.
func (b *Binding) noteRestore(ctx context.Context) error {
	bound, err := b.boundIdentity(ctx)
	if err != nil || bound.Name == "" {
		return err
	}
	now, err := b.place(ctx)
	if err != nil || now == "" || now == bound.Place {
		return err
	}
	if bound.Place != "" { // else an older binary wrote the row
		is, err := identityOf(ctx, b.log)
		if err != nil {
			return err
		}
		if is.Place != now {
			err := b.append(ctx, is.revision, "service", &origin.Restored{Place: now})
			if errors.Is(err, domain.ErrWrongRevision) {
				return nil // another process was first; the next check finds its event
			}
			if err != nil {
				return err
			}
		}
	}
	if _, err := b.db.ExecContext(ctx, setPlaceSQL, now); err != nil {
		return fmt.Errorf("remember where the database stands: %w", err)
	}
	return b.Check(ctx) // the lineage has changed
}

// NoteRestored begins a new generation of the log by an operator's word. It is for a
// restore that leaves no trace, such as one from a copy of a server's files.
func (b *Binding) NoteRestored(ctx context.Context, reason string) (origin.Lineage, error) {
	return b.note(ctx, &origin.Restored{Reason: reason})
}

// NoteTrimmed records by an operator's word that the events up to and including a place
// are not kept any more: readers from before it are told.
func (b *Binding) NoteTrimmed(ctx context.Context, upTo domain.Position, reason string) (origin.Lineage, error) {
	head, err := b.log.Head(ctx)
	if err != nil {
		return origin.Lineage{}, fmt.Errorf("read the log's end: %w", err)
	}
	if upTo.Compare(head) > 0 {
		return origin.Lineage{}, fmt.Errorf("the log ends at %s, before %s: a trim cannot reach beyond the end", head, upTo)
	}
	commit, prepare := int64(upTo.Commit), int64(upTo.Prepare)
	return b.note(ctx, &origin.Trimmed{Commit: commit, Prepare: prepare, Reason: reason})
}

// note appends an operator's statement, and gives the lineage that follows from it.
func (b *Binding) note(ctx context.Context, e domain.Event) (origin.Lineage, error) {
	is, err := identityOf(ctx, b.log)
	if err != nil {
		return origin.Lineage{}, err
	}
	if err := b.append(ctx, is.revision, "operator", e); err != nil {
		return origin.Lineage{}, err
	}
	err = b.Check(ctx)
	return b.Lineage(), err
}

// append writes a statement of the log about itself.
func (b *Binding) append(ctx context.Context, expected domain.ExpectedRevision, actor string, e domain.Event) error {
	id, now := uuid.New(), b.now().UTC().Truncate(time.Millisecond)
	_, err := b.log.Append(ctx, origin.Stream, expected, []domain.NewEvent{{
		ID: id, Event: e,
		Meta: domain.Metadata{CommandID: id, CorrelationID: id.String(), Actor: actor, Time: now},
	}})
	if err != nil {
		return fmt.Errorf("write %s into the log: %w", e.EventType(), err)
	}
	return nil
}

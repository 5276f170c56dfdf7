// Package binding ties a database to the log that everything in it was projected from.
package binding

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/origin"
	"humanqa/internal/backoff"
	"humanqa/internal/pgpool"
)

const (
	// watchLog is how often a running service checks whether its log is still
	// the database's.
	watchLog = 2 * time.Second
	// lateHead is the time in which a node of a cluster may not know the newest
	// events yet. A log that still ends too early afterwards is a shorter one.
	lateHead = time.Second
)

// BoundLog is the log that a Binding needs.
type BoundLog interface {
	domain.Log
	Head(ctx context.Context) (domain.Position, error)
}

// Binding ties a database to the log that everything projected in it comes
// from. A log has a name (domain/origin); the database remembers it, and the
// newest position that it has seen. Behind another log, or an older copy of the
// same, the database would show balances and jobs that the log does not have, and
// skip some that it has. Such a log is refused by a *domain.Error with a hint.
type Binding struct {
	db    *sqlx.DB
	log   BoundLog
	now   func() time.Time
	key   func(context.Context) (string, error) // nil: the log is not bound to one
	found atomic.Pointer[domain.Error]
	// lineage is the log's, as it was last read.
	lineage atomic.Pointer[origin.Lineage]
	silence silence
}

// New makes a Binding, which knows nothing before Bind or Check.
func New(db *sqlx.DB, log BoundLog, now func() time.Time) *Binding {
	return &Binding{db: db, log: log, now: now}
}

// BindKey makes Bind write into the log which key proves it, unless the log says so already.
func (b *Binding) BindKey(key func(context.Context) (string, error)) { b.key = key }

// Lineage is which log this is, as Bind or Check last found it.
func (b *Binding) Lineage() origin.Lineage {
	if l := b.lineage.Load(); l != nil {
		return *l
	}
	return origin.Lineage{}
}

const boundLogSQL = `
SELECT log_id, coalesce(stands, '') AS stands, coalesce(place, '') AS place
FROM projection_log`

// If two processes bind at once, one wins. Both have the same name, since it is written
// to the log before the database.
const bindLogSQL = `
INSERT INTO projection_log AS l (log_id, stands)
VALUES ($1, $2)
ON CONFLICT (one) DO UPDATE
SET stands = EXCLUDED.stands
WHERE l.stands IS NULL
  AND l.log_id = EXCLUDED.log_id`

// logIdentity identifies a log.
type logIdentity struct {
	Name string `db:"log_id"` // empty: it has none yet
	// Stands says where the name stands, and since when if it was copied there
	// from another log. Empty: the database did not look yet.
	Stands string `db:"stands"`
	// Place is where the database stood when a service last ran on it (placeSQL), or
	// the newest place that the log tells of a restore to.
	Place string `db:"place"`

	lineage  origin.Lineage
	keyed    bool                    // the log says which key proves it
	revision domain.ExpectedRevision // of the last event about the log itself
}

const furthestCheckpointSQL = `
SELECT commit_position AS commit, prepare_position AS prepare
FROM projection_checkpoints
WHERE status <> 'retired'
  AND commit_position >= 0
ORDER BY commit_position DESC
LIMIT 1`

// Bind gives a log that has no name one, and binds a database that is bound to
// none. A crash in between leaves a log with a name, which the next Bind takes.
func (b *Binding) Bind(ctx context.Context) error {
	bound, err := b.boundIdentity(ctx)
	if err != nil {
		return err
	}
	is, err := identityOf(ctx, b.log)
	if err != nil {
		return err
	}
	if bound.Name == "" && is.Name == "" {
		if err := b.checkLength(ctx); err != nil {
			return err
		}
		if is, err = b.nameLog(ctx); err != nil {
			return err
		}
	}
	if err := sameLog(bound, is); err != nil {
		return err
	}
	if bound.Stands == "" {
		if _, err := b.db.ExecContext(ctx, bindLogSQL, is.Name, is.Stands); err != nil {
			return fmt.Errorf("bind the database to log %s: %w", is.Name, err)
		}
	}
	if err := b.Check(ctx); err != nil {
		return err
	}
	if err := b.noteRestore(ctx); err != nil {
		return err
	}
	if b.key == nil || is.keyed {
		return nil
	}
	return b.AcceptKey(ctx, "service", "")
}

// Judge writes an operator's word about a finding of the audit into the log.
func (b *Binding) Judge(ctx context.Context, said origin.AuditJudged) error {
	said.At = b.now().UTC().Truncate(time.Millisecond)
	_, err := b.note(ctx, &said)
	return err
}

// AcceptKey writes into the log that the current key proves it from here on.
func (b *Binding) AcceptKey(ctx context.Context, actor, reason string) error {
	is, err := identityOf(ctx, b.log)
	if err != nil {
		return err
	}
	key, err := b.key(ctx)
	if err != nil {
		return err
	}
	at := b.now().UTC().Truncate(time.Millisecond)
	err = b.append(ctx, is.revision, actor, &origin.KeyBound{AuditKey: key, At: at, Reason: reason})
	if errors.Is(err, domain.ErrWrongRevision) && reason == "" {
		return nil // another process was first
	}
	return err
}

// Check finds out whether the log is the database's, and sets the answer of Problem.
// It writes nothing. Only a *domain.Error says that the log is not the database's.
func (b *Binding) Check(ctx context.Context) error {
	err := b.checkLog(ctx)
	var found *foreignLogError
	switch {
	case err == nil:
		b.found.Store(nil)
	case errors.As(err, &found):
		b.found.Store(found.refusal)
	}
	return err
}

func (b *Binding) checkLog(ctx context.Context) error {
	bound, err := b.boundIdentity(ctx)
	if err != nil || bound.Name == "" {
		return err
	}
	is, err := identityOf(ctx, b.log)
	if err != nil {
		return err
	}
	if err := sameLog(bound, is); err != nil {
		return err
	}
	b.lineage.Store(&is.lineage)
	if err := b.checkLength(ctx); !Foreign(err) {
		return err
	}
	if err := backoff.Wait(ctx, lateHead); err != nil {
		return err
	}
	return b.checkLength(ctx)
}

// Watch probes and checks the log until ctx ends, and logs each change of the check's result.
func (b *Binding) Watch(ctx context.Context, log logrus.FieldLogger) error {
	for backoff.Wait(ctx, watchLog) == nil {
		if !b.probe(ctx) {
			continue
		}
		before := b.Problem()
		err := b.Check(ctx) // /readyz reports any other error
		if err == nil {
			// A stand-by of Postgres may have taken over, without its last moments.
			_ = b.noteRestore(ctx) // after an error the next check tries again
		}
		switch now := b.Problem(); {
		case now != nil && before == nil:
			log.WithField("hint", now.Hint).Error(now.Message + ": nothing is done any more")
		case now == nil && before != nil:
			log.Info("the event log is this database's again")
		}
	}
	return nil
}

// Problem is why nothing may be done with this log; nil while nothing is known.
func (b *Binding) Problem() *domain.Error { return b.found.Load() }

// Refuse is Problem as an error.
func (b *Binding) Refuse() error {
	if found := b.Problem(); found != nil {
		return found
	}
	return nil
}

// boundIdentity is the name of the database's log, empty if it has none yet.
func (b *Binding) boundIdentity(ctx context.Context) (logIdentity, error) {
	bound, _, err := pgpool.Find[logIdentity](ctx, b.db, "which log the database belongs to", boundLogSQL)
	return bound, err
}

func identityOf(ctx context.Context, log domain.Log) (is logIdentity, err error) {
	is.revision = domain.NoStream
	err = log.Load(ctx, origin.Stream, 0, func(r domain.Recorded) error {
		is.revision = domain.ExpectedRevision(r.Revision)
		switch e := r.Event.(type) {
		case *origin.KeyBound:
			is.keyed = true
		case *origin.Restored:
			is.Place, is.lineage = e.Place, is.lineage.Restored(r.ID, r.Position)
		case *origin.Trimmed:
			is.lineage = is.lineage.Trimmed(e)
		case *origin.Named:
			if is.Name != "" {
				break
			}
			is.Name, is.Stands, is.keyed = e.LogID, r.Position.String(), e.AuditKey != ""
			if !r.Stored.Copied.IsZero() {
				is.Stands += " since " + r.Stored.Copied.UTC().Format(time.RFC3339Nano)
			}
			is.lineage = origin.Begin(is.Name, is.Stands)
		}
		return nil
	})
	if err != nil {
		return logIdentity{}, fmt.Errorf("read the log's name: %w", err)
	}
	return is, nil
}

func (b *Binding) nameLog(ctx context.Context) (is logIdentity, err error) {
	key := ""
	if b.key != nil {
		if key, err = b.key(ctx); err != nil {
			return logIdentity{}, err
		}
	}
	named := &origin.Named{LogID: uuid.NewString(), At: b.now().UTC().Truncate(time.Millisecond), AuditKey: key}
	err = b.append(ctx, domain.NoStream, "service", named)
	if err != nil && !errors.Is(err, domain.ErrWrongRevision) { // another process was first
		return logIdentity{}, err
	}
	return identityOf(ctx, b.log)
}

// foreignLogError is the refusal of a log, unlike an error that kept Check from an answer.
type foreignLogError struct{ refusal *domain.Error }

func (e *foreignLogError) Error() string { return e.refusal.Error() }

// Foreign says that the error is the refusal of a log that is not the database's.
func Foreign(err error) bool {
	_, is := errors.AsType[*foreignLogError](err)
	return is
}

// Unwrap gives the refusal that callers are shown.
func (e *foreignLogError) Unwrap() error { return e.refusal }

func foreignLog(hint, format string, args ...any) error {
	return &foreignLogError{&domain.Error{
		Kind: domain.KindUnavailable, Code: domain.CodeUnavailable, Message: fmt.Sprintf(format, args...), Hint: hint,
	}}
}

// sameLog compares the database's log with this one.
func sameLog(bound, is logIdentity) error {
	name := is.Name
	switch {
	case bound.Name == "":
		return nil
	case bound.Name == name && (bound.Stands == "" || bound.Stands == is.Stands):
		return nil
	case bound.Name == name:
		return foreignLog("humanqa eventstore copy --rebind takes the database along to a copy, with the service stopped; "+
			"or set HUMANQA_EVENTSTORE_URL to the log that was copied again (docs/eventstore.md)",
			"this event log and the one of this database, %s, are copies of each other", name)
	case name == "":
		name = "without a name"
	}
	return foreignLog("set HUMANQA_EVENTSTORE_URL to that log again, or HUMANQA_DATABASE_URL to the database of this one; "+
		"an empty database is filled from the log (docs/eventstore.md)",
		"the event log is %s, and this database belongs to %s", name, bound.Name)
}

// checkLength compares how far the database has seen the log with the log's end.
func (b *Binding) checkLength(ctx context.Context) error {
	// The checkpoint is read before the log's end, which only grows.
	at, started, err := pgpool.Find[domain.Position](ctx, b.db, "the checkpoints", furthestCheckpointSQL)
	if err != nil || !started {
		return err
	}
	head, err := b.log.Head(ctx)
	if err != nil {
		return fmt.Errorf("read the log's end: %w", err)
	}
	if head.Compare(at) >= 0 {
		return nil
	}
	return foreignLog("restore the log and the database of one moment, or set HUMANQA_DATABASE_URL to an empty database, "+
		"which is filled from the log (docs/eventstore.md)",
		"the event log ends at %s, and this database has seen it up to %s: it has lost events, or is an older copy", head, at)
}

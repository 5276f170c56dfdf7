package generation

import (
	"context"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/internal/pgpool"
)

// State is the state of a generation.
type State string

// The states. A generation that is building may be serving too: the first one
// of a projection, until it has caught up. A retired one was replaced; its
// tables are dropped soon.
const (
	Building State = "building"
	Live     State = "live"
	Stopped  State = "stopped"
	Retired  State = "retired"
)

// Generation is a row of projection_checkpoints.
type Generation struct {
	Name            string     `db:"name"`
	Number          int        `db:"generation"`
	Version         int        `db:"version"`
	Schema          string     `db:"schema_name"`
	State           State      `db:"status"`
	Serving         bool       `db:"serving"`
	Commit          int64      `db:"commit_position"`
	Prepare         int64      `db:"prepare_position"`
	Applied         int64      `db:"applied"`
	Unknown         int64      `db:"unknown"`          // events of types that the binary did not know
	Skipped         int64      `db:"skipped"`          // events passed over by an operator's word
	Owner           string     `db:"owner"`            // machine:process/id; empty: no process runs it
	FencingToken    int64      `db:"epoch"`            // goes up with every owner
	FailureCategory Category   `db:"failure_category"` // empty: it never stopped
	FailureCommit   int64      `db:"failure_commit"`
	FailurePrepare  int64      `db:"failure_prepare"`
	FailureDetail   string     `db:"failure_detail"`
	FailureAttempts int        `db:"failure_attempts"`
	FailedAt        *time.Time `db:"failed_at"`
	Obstacle        string     `db:"obstacle"` // why it cannot serve although it is built
	UpdatedAt       time.Time  `db:"updated_at"`
}

// Columns names the columns, since a later binary's table may have more.
const Columns = `
    name, generation, version, schema_name, status, serving, commit_position, prepare_position, applied, unknown, skipped,
    COALESCE(owner, '') AS owner, epoch, COALESCE(failure_category, '') AS failure_category, COALESCE(failure_commit, 0) AS failure_commit,
    COALESCE(failure_prepare, 0) AS failure_prepare, COALESCE(failure_detail, '') AS failure_detail, failure_attempts, failed_at, obstacle,
    updated_at`

const selectSQL = `
SELECT ` + Columns + `
FROM projection_checkpoints`

// Checkpoint is the place up to which the rows have seen the log.
func (g Generation) Checkpoint() eventstore.Checkpoint {
	if g.Commit < 0 {
		return eventstore.Checkpoint{Start: true}
	}
	return eventstore.At(domain.Position{Commit: uint64(g.Commit), Prepare: uint64(g.Prepare)})
}

// PositionColumns is the inverse of Generation.Checkpoint.
func PositionColumns(c eventstore.Checkpoint) (commit, prepare int64) {
	if c.Start {
		return -1, -1
	}
	return int64(c.Position.Commit), int64(c.Position.Prepare)
}

// Failure is why the line stopped, nil while it runs.
func (g Generation) Failure() *Failure {
	if g.State != Stopped || g.FailureCategory == "" {
		return nil
	}
	f := &Failure{
		Category: g.FailureCategory, Position: domain.Position{Commit: uint64(g.FailureCommit), Prepare: uint64(g.FailurePrepare)},
		Detail: g.FailureDetail, Attempts: g.FailureAttempts,
	}
	if g.FailedAt != nil {
		f.At = g.FailedAt.UTC()
	}
	return f
}

// Reached says that c is at the event at p, or behind it.
func Reached(c eventstore.Checkpoint, p domain.Position) bool {
	return !c.Start && c.Position.Compare(p) >= 0
}

// AtLeast says that a has seen everything that b has.
func AtLeast(a, b eventstore.Checkpoint) bool {
	return b.Start || Reached(a, b.Position)
}

// Lease is the right to advance a generation's checkpoint, with its owner's knowledge
// of the generation. It belongs to one runner's goroutine.
type Lease struct {
	Gen   Generation
	Owner string
	// Stored is the checkpoint in Postgres, and Seen the one that the runner has read
	// up to: between them lie only events that change nothing.
	Stored, Seen eventstore.Checkpoint
	// Counted since Stored.
	Handled, Unknown, Skipped int64
}

// ErrNotOwner says that the checkpoint has another place or owner than the runner
// knows. The whole transaction must roll back.
var ErrNotOwner = errors.New("not the owner of the lease any more")

// ownedSQL fences a statement: its first parameters are those of a Lease (exec).
const ownedSQL = `
WHERE name = $1
  AND generation = $2
  AND owner = $3
  AND epoch = $4`

// A lease is taken when it is free, has ended by Postgres' clock, or is the runner's
// own. After a lost connection the runner does not know whether it has the lease.
const acquireSQL = `
UPDATE projection_checkpoints
SET owner = $3,
    epoch = epoch + 1,
    lease_until = clock_timestamp() + make_interval(secs => $4)
WHERE name = $1
  AND generation = $2
  AND status IN ('building', 'live')
  AND (owner IS NULL OR owner = $3 OR lease_until < clock_timestamp())
RETURNING ` + Columns

// PlanOnce, within the first statement of a transaction, sets how Postgres plans the later
// statements: once, and for tables of any size. Most plans are made, and kept, while the
// tables are nearly empty. By default Postgres would plan anew for each short array, which
// takes longer than the execution. Plain index scans mark the dead entries that they meet,
// of which a queue's index is full.
const PlanOnce = `set_config('plan_cache_mode', 'force_generic_plan', true) <> ''
    AND set_config('enable_seqscan', 'off', true) <> ''
    AND set_config('enable_bitmapscan', 'off', true) <> ''`

// Channel is notified of checkpoints that moved, in the transaction that moves them, while
// a process listens because it waits for consumers that run elsewhere. Otherwise no
// transaction notifies, since Postgres commits those that do one after the other.
const Channel = "humanqa_checkpoints"

// The statement also sets three things, which saves each batch some round trips. Its
// transaction does not wait for the disk. $15 decides how the transaction's statements are
// planned (a read model's build plans for its own pages). $14 notifies other processes.
const advanceSQL = `
UPDATE projection_checkpoints
SET commit_position = $7,
    prepare_position = $8,
    applied = applied + $9,
    unknown = unknown + $10,
    skipped = skipped + $11,
    status = $12,
    lease_until = clock_timestamp() + make_interval(secs => $13),
    updated_at = clock_timestamp()` + ownedSQL + `
  AND commit_position = $5
  AND prepare_position = $6
  AND set_config('synchronous_commit', 'off', true) = 'off'
  AND CASE WHEN $15 THEN ` + PlanOnce + ` ELSE true END
  AND CASE WHEN $14 THEN pg_notify('` + Channel + `', '') IS NOT NULL ELSE true END`

const stopSQL = `
UPDATE projection_checkpoints
SET status = 'stopped',
    owner = NULL,
    lease_until = NULL,
    failure_attempts = CASE
        WHEN failure_commit = $6 AND failure_prepare = $7 THEN failure_attempts + 1
        ELSE 1
    END,
    failure_category = $5,
    failure_commit = $6,
    failure_prepare = $7,
    failure_detail = $8,
    failed_at = clock_timestamp()` + ownedSQL

const releaseSQL = `
UPDATE projection_checkpoints
SET owner = NULL,
    lease_until = NULL` + ownedSQL

const getSQL = selectSQL + `
WHERE name = $1
  AND generation = $2`

const servingSQL = selectSQL + `
WHERE name = $1
  AND serving`

const listServingSQL = selectSQL + `
WHERE serving`

const listGenerationsSQL = selectSQL + `
ORDER BY name, generation`

// Acquire takes the lease; nil means that another process has it, or that there
// is nothing to run (stopped, retired, gone).
func Acquire(ctx context.Context, db *sqlx.DB, g Generation, owner string, length time.Duration) (*Lease, error) {
	taken, free, err := pgpool.Find[Generation](ctx, db, "the lease of "+g.Schema, acquireSQL, g.Name, g.Number, owner, length.Seconds())
	if err != nil || !free {
		return nil, err
	}
	return &Lease{Gen: taken, Owner: owner, Stored: taken.Checkpoint(), Seen: taken.Checkpoint()}, nil
}

// Advance moves the stored checkpoint, and renews the lease. It tells other processes if notify
// says so.
func (l *Lease) Advance(
	ctx context.Context, q sqlx.ExecerContext, to eventstore.Checkpoint, applied int64, length time.Duration, notify, planned bool,
) error {
	oldCommit, oldPrepare := PositionColumns(l.Stored)
	commit, prepare := PositionColumns(to)
	return l.exec(ctx, q, advanceSQL, oldCommit, oldPrepare, commit, prepare, applied, l.Unknown, l.Skipped, l.Gen.State, length.Seconds(),
		notify, planned)
}

// NoteAdvanced records that the advance was committed.
func (l *Lease) NoteAdvanced(to eventstore.Checkpoint) {
	l.Stored, l.Seen = to, to
	l.Handled, l.Unknown, l.Skipped = 0, 0, 0
}

// Stop records a failure, after which an operator has to act, and gives the lease back.
func (l *Lease) Stop(ctx context.Context, db *sqlx.DB, f Failure) error {
	return l.exec(ctx, db, stopSQL, f.Category, int64(f.Position.Commit), int64(f.Position.Prepare), f.Detail)
}

// Release gives the lease back. A failure, or a lease that is not ours any more, does
// little harm: the lease ends by itself.
func (l *Lease) Release(ctx context.Context, db *sqlx.DB) error {
	_, err := db.ExecContext(ctx, releaseSQL, l.Gen.Name, l.Gen.Number, l.Owner, l.Gen.FencingToken)
	return err
}

// exec runs a statement that only the owner may run (ownedSQL); for others it is ErrNotOwner.
func (l *Lease) exec(ctx context.Context, q sqlx.ExecerContext, query string, args ...any) error {
	owner := []any{l.Gen.Name, l.Gen.Number, l.Owner, l.Gen.FencingToken}
	return pgpool.ExecOne(ctx, q, ErrNotOwner, "write the checkpoint of "+l.Gen.Schema, query, append(owner, args...)...)
}

// Get reads one row; ok is false when it is gone.
func Get(ctx context.Context, q sqlx.QueryerContext, name string, number int) (g Generation, ok bool, err error) {
	return pgpool.Find[Generation](ctx, q, "the checkpoint of "+name, getSQL, name, number)
}

// Serving is the generation of a projection that serves.
func Serving(ctx context.Context, q sqlx.QueryerContext, name string) (Generation, error) {
	return pgpool.One[Generation](ctx, q, "the serving checkpoint of "+name, servingSQL, name)
}

// ListServing lists the generations that serve.
func ListServing(ctx context.Context, q sqlx.QueryerContext) ([]Generation, error) {
	return pgpool.List[Generation](ctx, q, "the checkpoints", listServingSQL)
}

// ListAll lists the generations of all projections, by name and number.
func ListAll(ctx context.Context, q sqlx.QueryerContext) ([]Generation, error) {
	return pgpool.List[Generation](ctx, q, "the checkpoints", listGenerationsSQL)
}

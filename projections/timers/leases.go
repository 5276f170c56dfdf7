package timers

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain/policy"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Timers hands due timers to the policies (policy.Timers).
type Timers struct {
	db  *sqlx.DB
	dsn string
}

// New reads the timers through their view. dsn names the database to listen on for new
// timers; without it the timers are only polled.
func New(db *sqlx.DB, dsn string) *Timers { return &Timers{db: readmodel.Pool(db), dsn: dsn} }

// A timer without a lease is due once its time has come, by Postgres' clock. A settled or
// live lease belongs to the event that set the timer then. A later event makes the timer
// due again. An earlier event, during a rebuild of the timers, never does.
//
// A lease that another node takes in the same moment is not returned: the conflict's
// WHERE sees it. Locking the rows only keeps nodes from choosing the same ones. All
// timers before the horizon are settled. While the first build of the timers runs, the
// rows include timers that the log has cleared long ago. There is no horizon then, and no
// timer is due.
const takeDueTimersSQL = `
WITH due AS (
    SELECT t.kind, t.key, t.account_id, t.due_at, t.wall_clock, t.sandbox, t.cause_id, t.position
    FROM ` + dueTimersSQL + `
    ORDER BY t.fire_at
    LIMIT $2
    FOR UPDATE OF t SKIP LOCKED
), ` + leaseDueTimersSQL

// Accounts take turns: the first timer of each account comes before the second of any.
// The leases of an account on all nodes count. Two nodes that look in the same moment may
// give an account a few more.
const takeSharedTimersSQL = `
WITH held AS (
    SELECT t.account_id, count(*) AS places
    FROM policy.leases l
    JOIN readmodel.timers t USING (kind, key)
    WHERE l.kind = ANY ($1)
      AND l.state = 'leased'
      AND l.until > now()
    GROUP BY t.account_id
), ranked AS (
    SELECT t.kind, t.key, coalesce((SELECT places FROM held WHERE held.account_id = t.account_id), 0)
        + row_number() OVER (PARTITION BY t.account_id ORDER BY t.fire_at) AS turn
    FROM ` + dueTimersSQL + `
), due AS (
    SELECT t.kind, t.key, t.account_id, t.due_at, t.wall_clock, t.sandbox, t.cause_id, t.position
    FROM readmodel.timers t
    JOIN ranked USING (kind, key)
    WHERE turn <= $4
    ORDER BY turn, t.fire_at
    LIMIT $2
    FOR UPDATE OF t SKIP LOCKED
), ` + leaseDueTimersSQL

const dueTimersSQL = `readmodel.timers t
    LEFT JOIN policy.leases l USING (kind, key)
    WHERE t.kind = ANY ($1)
      AND t.fire_at BETWEEN (` + horizonSQL + `) AND now()
      AND ` + freeTimer

const leaseDueTimersSQL = `taken AS (
    INSERT INTO policy.leases AS l (kind, key, position, state, until, attempts, fence)
    SELECT kind, key, position, 'leased', now() + make_interval(secs => $3), 1, 1
    FROM due
    ORDER BY kind, key
    ON CONFLICT (kind, key) DO UPDATE
    SET position = EXCLUDED.position,
        state = 'leased',
        until = EXCLUDED.until,
        attempts = CASE WHEN l.position = EXCLUDED.position THEN l.attempts + 1 ELSE 1 END,
        fence = l.fence + 1
    WHERE l.state <> 'leased' AND l.position < EXCLUDED.position
      OR l.state <> 'settled' AND l.position <= EXCLUDED.position AND l.until <= now()
    RETURNING kind, key, attempts, fence
)
SELECT due.*, taken.attempts, taken.fence
FROM due
JOIN taken USING (kind, key)`

const horizonSQL = `
        SELECT coalesce(h.fire_at, '-infinity')
        FROM projection_checkpoints p
        LEFT JOIN policy.horizons h ON h.generation = p.schema_name
        WHERE p.name = 'timers'
          AND p.serving
          AND p.status <> 'building'`

const freeTimer = `(
        l.kind IS NULL
        OR l.state <> 'leased' AND l.position < t.position
        OR l.state <> 'settled' AND l.position <= t.position AND l.until <= now())`

// TakeDue implements policy.Timers.
func (t *Timers) TakeDue(ctx context.Context, kinds []string, limit, perAccount int, lease time.Duration) ([]policy.Timer, error) {
	query, args := takeDueTimersSQL, []any{pq.Array(kinds), limit, lease.Seconds()}
	if perAccount > 0 {
		query, args = takeSharedTimersSQL, append(args, perAccount)
	}
	due, err := pgpool.List[policy.Timer](ctx, t.db, "the timers to take", query, args...)
	if older(err) {
		return nil, nil
	}
	return due, err
}

// older says that the view still shows a generation of an older version, which lacks a
// column. Our generation is being built beside it: no timer is due until it serves.
func older(err error) bool {
	var refused *pq.Error
	return errors.As(err, &refused) && refused.Code == "42703"
}

const renewTimerSQL = `
UPDATE policy.leases
SET until = now() + make_interval(secs => $4)
WHERE kind = $1
  AND key = $2
  AND fence = $3
  AND state = 'leased'`

// Renew implements policy.Timers.
func (t *Timers) Renew(ctx context.Context, timer policy.Timer, lease time.Duration) (held bool, err error) {
	n, err := pgpool.ExecCount(ctx, t.db, "renew the lease of a timer", renewTimerSQL, timer.Kind, timer.Key, timer.Fence, lease.Seconds())
	return n > 0, err
}

type outcomeRow struct {
	Kind  string  `json:"kind"`
	Key   string  `json:"key"`
	Fence int64   `json:"fence"`
	State string  `json:"state"`
	Retry float64 `json:"retry"` // seconds
}

const settleTimersSQL = `
UPDATE policy.leases l
SET state = o.state,
    until = now() + make_interval(secs => o.retry)
FROM json_to_recordset($1) AS o (kind text, key text, fence bigint, state text, retry float8)
WHERE l.kind = o.kind
  AND l.key = o.key
  AND l.fence = o.fence`

// Settle implements policy.Timers.
func (t *Timers) Settle(ctx context.Context, outcomes []policy.Outcome) error {
	rows := make([]outcomeRow, len(outcomes))
	for i, o := range outcomes {
		rows[i] = outcomeRow{Kind: o.Kind, Key: o.Key, Fence: o.Fence, State: "settled", Retry: o.Retry.Seconds()}
		if o.Err != nil && !o.Final { // its text is for the log alone: it may hold a client's words
			rows[i].State = "failed"
		}
	}
	return pgpool.Exec(ctx, t.db, "settle timers", settleTimersSQL, pgpool.Rows(rows))
}

// Timers that are due after within are not searched. Otherwise a look for kinds without
// timers would read all later timers, at least one of each open job.
const nextTimerSQL = `
SELECT extract(epoch FROM least(
    (
        SELECT t.fire_at
        FROM readmodel.timers t
        LEFT JOIN policy.leases l USING (kind, key)
        WHERE t.kind = ANY ($1)
          AND t.fire_at > now()
          AND t.fire_at <= now() + make_interval(secs => $2)
          AND (l.kind IS NULL OR l.position < t.position)
        ORDER BY t.fire_at
        LIMIT 1
    ), (
        SELECT min(until)
        FROM policy.leases
        WHERE state <> 'settled'
          AND kind = ANY ($1)
          AND until > now()
          AND until <= now() + make_interval(secs => $2)
    )) - now())`

// Next implements policy.Timers.
func (t *Timers) Next(ctx context.Context, kinds []string, within time.Duration) (time.Duration, bool, error) {
	seconds, err := pgpool.One[sql.NullFloat64](ctx, t.db, "the next timer", nextTimerSQL, pq.Array(kinds), within.Seconds())
	switch {
	case older(err):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	}
	// Rounded up: a look that comes too early finds nothing.
	return time.Duration(seconds.Float64*float64(time.Second)) + time.Millisecond, seconds.Valid, nil
}

// Wake implements policy.Timers.
func (t *Timers) Wake(ctx context.Context) <-chan struct{} {
	if t.dsn == "" {
		return nil
	}
	// A broken connection is opened again; the policies also poll.
	return pgpool.Listen(ctx, t.dsn, timersChannel, nil)
}

const forgetTimerLeasesSQL = `
DELETE FROM policy.leases l
WHERE until < now() - interval '1 hour'
  AND NOT EXISTS (
    SELECT 1
    FROM readmodel.timers t
    WHERE t.kind = l.kind
      AND t.key = l.key)
  AND EXISTS (` + horizonSQL + `)`

const forgetHorizonsSQL = `
DELETE FROM policy.horizons h
WHERE NOT EXISTS (
    SELECT 1
    FROM projection_checkpoints p
    WHERE p.schema_name = h.generation)`

const lockHorizonSQL = `
SELECT h.generation
FROM policy.horizons h
JOIN projection_checkpoints p ON p.schema_name = h.generation
WHERE p.name = 'timers'
  AND p.serving
  AND p.status <> 'building'
FOR UPDATE OF h`

const moveHorizonSQL = `
UPDATE policy.horizons h
SET fire_at = coalesce((
    SELECT t.fire_at
    FROM readmodel.timers t
    LEFT JOIN policy.leases l USING (kind, key)
    WHERE t.fire_at BETWEEN h.fire_at AND now()
      AND (l.kind IS NULL OR l.state <> 'settled' OR l.position < t.position)
    ORDER BY t.fire_at
    LIMIT 1), now())
WHERE h.generation = $1`

// Forget implements policy.Timers. It also moves the horizon to the first timer
// that is not settled.
func (t *Timers) Forget(ctx context.Context) error {
	if err := pgpool.Exec(ctx, t.db, "forget ended leases of timers", forgetTimerLeasesSQL); err != nil {
		return err
	}
	if err := pgpool.Exec(ctx, t.db, "forget horizons of timers", forgetHorizonsSQL); err != nil {
		return err
	}
	return pgpool.InTx(ctx, t.db, func(tx *sqlx.Tx) error {
		generation, serves, err := pgpool.Find[string](ctx, tx, "the horizon of timers", lockHorizonSQL)
		if err != nil || !serves { // the timers are being built
			return err
		}
		// A statement of its own: it sees what the lock has waited for.
		return pgpool.Exec(ctx, tx, "move the horizon of timers", moveHorizonSQL, generation)
	})
}

package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/internal/pgpool"
)

// queue is the dispatcher's view of the tables: deliveries that are due, leased
// under a cap per endpoint. It holds no state of its own.
type queue struct {
	db    *sqlx.DB
	pool  int
	cap   caps
	lease time.Duration
}

// claimed is a delivery that this process has leased, with the endpoint as it
// stood in that moment.
type claimed struct {
	ID             string    `db:"id"`
	ProjectID      string    `db:"project_id"`
	Event          string    `db:"event"`
	Body           []byte    `db:"body"`
	Attempt        int       `db:"attempts"`
	Failures       int       `db:"failures"`
	LeaseID        uuid.UUID `db:"lease_id"`
	AccountID      string    `db:"account_id"`
	URL            string    `db:"url"`
	Secret         string    `db:"secret"`
	PreviousSecret string    `db:"previous_secret"` // empty outside a rotation's overlap
	Resets         int64     `db:"generation"`
}

// servable are the endpoints to look at: not those of accounts that have their
// share of the pool.
const servable = `enabled AND url <> '' AND secret <> '' AND account_id <> ALL($1::text[])`

// lockDueEndpoints takes the endpoints that have waited longest. One that
// another dispatcher holds is being served.
const lockDueEndpoints = `
SELECT project_id
FROM webhooks.endpoints
WHERE due_at <= now() AND ` + servable + `
ORDER BY due_at
LIMIT $2
FOR UPDATE SKIP LOCKED`

// leaseDue runs under the locks of lockDueEndpoints, as a statement of its own:
// so it sees what earlier holders of these locks committed. One delivery of
// each endpoint comes before the second of any, and no account gets more than its
// room. A lease that is taken over leaves its attempt behind with an unknown outcome.
const leaseDue = `
WITH served AS (
	SELECT e.*, CASE e.cap WHEN 0 THEN $2 ELSE least(e.cap, $6) END - (
		SELECT count(*)
		FROM webhooks.deliveries l
		WHERE l.project_id = e.project_id AND l.lease_id IS NOT NULL AND l.due_at > now()
	) AS room
	FROM webhooks.endpoints e
	WHERE e.project_id = ANY($1)
), due AS (
	SELECT d.id, d.due_at AS delivery_due, d.attempts AS lost_attempt, d.lease_id AS lost_lease,
		s.account_id, s.url, s.secret, s.generation, s.due_at AS endpoint_due,
		CASE WHEN s.previous_until > now() THEN s.previous_secret ELSE '' END AS previous_secret,
		row_number() OVER (PARTITION BY s.project_id ORDER BY d.due_at) AS turn
	FROM served s
	CROSS JOIN LATERAL (
		SELECT *
		FROM webhooks.deliveries d
		WHERE d.project_id = s.project_id AND d.state = 'pending' AND d.due_at > '-infinity' AND d.due_at <= now() AND ` + isNext + `
		ORDER BY d.due_at
		LIMIT greatest(s.room, 0)
	) d
), placed AS (
	SELECT *, row_number() OVER (PARTITION BY account_id ORDER BY turn, endpoint_due) AS place
	FROM due
), picked AS (
	SELECT *
	FROM placed
	LEFT JOIN unnest($7::text[], $8::integer[]) AS account (account_id, room) USING (account_id)
	WHERE place <= coalesce(account.room, $9)
	ORDER BY turn, endpoint_due
	LIMIT $3
), lost AS (
	INSERT INTO webhooks.attempts (delivery_id, attempt, at, duration_ms, url, status, error, response)
	SELECT id, lost_attempt, delivery_due - $4 * interval '1 millisecond', $4, url, NULL,
		'` + lost + `', ''
	FROM picked
	WHERE lost_lease IS NOT NULL
	ON CONFLICT DO NOTHING
)
UPDATE webhooks.deliveries d
SET lease_id = $5, due_at = now() + $4 * interval '1 millisecond', attempts = d.attempts + 1
FROM picked p
WHERE d.id = p.id
RETURNING d.id, d.project_id, d.event, d.body, d.attempts, d.failures, d.lease_id,
	p.account_id, p.url, p.secret, p.previous_secret, p.generation`

// isNext holds for a delivery d whose job has no earlier one to settle. A job
// belongs to one project, so the key alone decides.
//
// Plans are mostly made while the queue is empty, and kept. For a single row any
// way seems as good as the right one, and in a burst the whole queue would be read
// for each of its rows. So this is asked of each row by itself, not as a join; and
// each of the two indexes of what is pending has a word in its condition that is
// always true, and that only the questions meant for it say: deliveries_order that
// the revision is not negative, deliveries_due (what an endpoint is sent next) that
// the time is finite.
const isNext = `d.revision = (
	SELECT min(earlier.revision)
	FROM webhooks.deliveries earlier
	WHERE earlier.state = 'pending' AND earlier.revision >= 0 AND earlier.ordering_key = d.ordering_key
)`

// planOnce keeps the planner to plain index scans, since only they mark the dead
// entries they meet, and the indexes of a queue are full of them; and to the plans it
// has: one for these few deliveries would be a little cheaper than one for any, and
// takes longer to make than to run (TestPlansHoldHoweverMuchIsSettled).
const planOnce = `SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_generic_plan`

// untilDue is how long until the next endpoint wants to be looked at. Where none
// does, greatest would pass over the NULL here, too.
const untilDue = `
SELECT coalesce(CASE WHEN min(due_at) IS NOT NULL THEN greatest(extract(epoch FROM min(due_at) - now()) * 1000, 0) END, -1)::bigint
FROM webhooks.endpoints
WHERE due_at IS NOT NULL AND ` + servable

// claim leases up to limit due deliveries. next is when to look again, at the
// latest; negative when nothing is scheduled. A crash after the commit leaves
// leases that run out.
func (q queue) claim(ctx context.Context, limit int, busy shares) (batch []claimed, next time.Duration, err error) {
	accounts, rooms, full := busy.rooms(limit)
	// A lost commit is a claim that never was: nothing has been sent yet.
	err = pgpool.InTxAsync(ctx, q.db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, planOnce); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		var endpoints []string
		if err := tx.SelectContext(ctx, &endpoints, lockDueEndpoints, pq.Array(full), limit); err != nil {
			return fmt.Errorf("lock due endpoints: %w", err)
		}
		if len(endpoints) > 0 {
			most := q.cap.share(limit-q.pool/2, len(endpoints))
			err := tx.SelectContext(ctx, &batch, leaseDue, pq.Array(endpoints), q.cap.begin, limit, q.lease.Milliseconds(), uuid.New(), most,
				pq.Array(accounts), pq.Array(rooms), room(limit, 0))
			if err != nil {
				return fmt.Errorf("lease due deliveries: %w", err)
			}
			if err := q.rearm(ctx, tx, endpoints, most); err != nil {
				return err
			}
		}
		var ms []int64 // one row
		if err := tx.SelectContext(ctx, &ms, untilDue, pq.Array(full)); err != nil {
			return fmt.Errorf("find the next due endpoint: %w", err)
		}
		next = time.Duration(ms[0]) * time.Millisecond
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	return batch, next, nil
}

// rearmEndpoints schedules the look after this one: when a lease runs out while
// the endpoint is full (a settled attempt pokes it sooner); else when its first
// delivery in line is due, and behind all endpoints that wait already. Without one
// there is no look: greatest would pass over the NULL and make it due now, and now
// again.
const rearmEndpoints = `
UPDATE webhooks.endpoints e
SET due_at = n.due_at
FROM (
	SELECT e.project_id, CASE
		WHEN leased.count >= CASE e.cap WHEN 0 THEN $2 ELSE least(e.cap, $3) END THEN leased.until
		WHEN first.due_at IS NOT NULL THEN greatest(first.due_at, now())
	END AS due_at
	FROM webhooks.endpoints e
	CROSS JOIN LATERAL (
		SELECT count(*) AS count, min(l.due_at) AS until
		FROM webhooks.deliveries l
		WHERE l.project_id = e.project_id AND l.lease_id IS NOT NULL AND l.due_at > now()
	) leased
	LEFT JOIN LATERAL (
		SELECT d.due_at
		FROM webhooks.deliveries d
		WHERE d.project_id = e.project_id AND d.state = 'pending' AND d.due_at > '-infinity' AND ` + isNext + `
		ORDER BY d.due_at
		LIMIT 1
	) first ON true
	WHERE e.project_id = ANY($1)
) n
WHERE e.project_id = n.project_id AND e.due_at IS DISTINCT FROM n.due_at`

func (q queue) rearm(ctx context.Context, tx *sqlx.Tx, projectIDs []string, most int) error {
	if _, err := tx.ExecContext(ctx, rearmEndpoints, pq.Array(projectIDs), q.cap.begin, most); err != nil {
		return fmt.Errorf("schedule endpoints: %w", err)
	}
	return nil
}

// pokeEndpoints has the next claim look at the endpoints; it also finds out if
// there is nothing to do.
const pokeEndpoints = `
UPDATE webhooks.endpoints
SET due_at = now()
WHERE project_id = ANY($1) AND enabled AND url <> '' AND secret <> '' AND (due_at IS NULL OR due_at > now())`

// poke must be called, under the endpoints' locks, by everybody who changed
// which of their deliveries are due.
func poke(ctx context.Context, tx *sqlx.Tx, projectIDs []string) error {
	if _, err := tx.ExecContext(ctx, pokeEndpoints, pq.Array(projectIDs)); err != nil {
		return fmt.Errorf("schedule endpoints: %w", err)
	}
	return nil
}

// lockEndpoints takes the rows in the order that all takers keep to.
const lockEndpoints = `
SELECT *
FROM webhooks.endpoints
WHERE project_id = ANY($1)
ORDER BY project_id
FOR UPDATE`

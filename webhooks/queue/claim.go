package queue

import (
	"context"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/internal/pgpool"
	"humanqa/webhooks"
)

// servable is the condition for the endpoints to look at. It leaves out accounts that
// have used up their quota of the pool.
const servable = sendable + ` AND account_id <> ALL($1::text[])`

const sendable = `enabled AND url <> '' AND secret <> ''`

// lockDueEndpoints takes the endpoints that have waited longest. An endpoint that another
// dispatcher holds is being served.
const lockDueEndpoints = `
SELECT project_id, account_id, cap, in_flight, lease_id IS NOT DISTINCT FROM $3 AS ours
FROM webhooks.endpoints
WHERE due_at <= now() AND ` + servable + ` AND (lease_id IS NULL OR lease_id = $3 OR leased_until <= now())
ORDER BY due_at
LIMIT $2
FOR UPDATE SKIP LOCKED`

// dueEndpoint is an endpoint that this process may send to.
type dueEndpoint struct {
	webhooks.EndpointRow
	Ours bool // the lease is this process's
}

// leaseDue runs under the locks of lockDueEndpoints, as a statement of its own, so it
// sees the commits of earlier holders of these locks. The first delivery of each endpoint
// comes before the second of any, and no account gets more than its quota. For each
// endpoint it reads one delivery more than may be sent. That delivery decides when to
// look at the endpoint next: when it is due, after all endpoints that wait already. A
// full endpoint is looked at when its lease ends; a settled attempt makes it due sooner.
// While a delivery is under way, the look comes no later than the end of the lease.
// Otherwise there is no look. The CASE is needed, because greatest would ignore the NULL
// and make the endpoint due now, again and again.
const leaseDue = `
WITH served AS (
	SELECT e.project_id, e.account_id, e.in_flight, e.due_at, r.turns, r.room
	FROM json_to_recordset($1) AS r (project_id text, turns integer, room integer)
	JOIN webhooks.endpoints e USING (project_id)
), line AS (
	SELECT s.project_id, s.account_id, s.due_at AS endpoint_due, s.turns, d.id, d.due_at,
		row_number() OVER (PARTITION BY s.project_id ORDER BY d.due_at) AS turn
	FROM served s
	CROSS JOIN LATERAL (
		SELECT d.id, d.due_at
		FROM webhooks.deliveries d
		WHERE d.project_id = s.project_id AND d.state = 'pending' AND d.due_at > '-infinity' AND d.id <> ALL(s.in_flight) AND ` + isNext + `
		ORDER BY d.due_at
		LIMIT s.turns + 1
	) d
), placed AS (
	SELECT *, row_number() OVER (PARTITION BY account_id ORDER BY turn, endpoint_due) AS place
	FROM line
	WHERE due_at <= now() AND turn <= turns
), picked AS (
	SELECT id, project_id, turn, endpoint_due
	FROM placed
	LEFT JOIN json_to_recordset($5) AS account (account_id text, quota integer) USING (account_id)
	WHERE place <= coalesce(account.quota, $6)
	ORDER BY turn, endpoint_due
	LIMIT $2
), next AS (
	SELECT s.project_id, min(l.due_at) FILTER (WHERE p.id IS NULL) AS due_at, count(p.id) >= s.room AS full,
		coalesce(array_agg(p.id) FILTER (WHERE p.id IS NOT NULL), '{}') AS ids
	FROM served s
	LEFT JOIN line l USING (project_id)
	LEFT JOIN picked p USING (id)
	GROUP BY s.project_id, s.room
), leased AS (
	UPDATE webhooks.endpoints e
	SET in_flight = e.in_flight || n.ids,
		lease_id = CASE WHEN e.in_flight || n.ids <> '{}' THEN $3::uuid END,
		leased_until = CASE WHEN n.ids <> '{}' THEN now() + $4 * interval '1 millisecond' WHEN e.in_flight <> '{}' THEN e.leased_until END,
		due_at = least(
			CASE WHEN n.due_at IS NOT NULL AND NOT n.full THEN greatest(n.due_at, now()) END,
			CASE WHEN n.ids <> '{}' THEN now() + $4 * interval '1 millisecond' WHEN e.in_flight <> '{}' THEN e.leased_until END)
	FROM next n
	WHERE e.project_id = n.project_id
)
SELECT d.id, d.project_id, d.event, d.body, d.request_id, d.trace, d.attempts + 1 AS attempt, d.failures, coalesce(d.last_status, 0) AS last_status,
	e.account_id, e.url, e.secret, e.new_secret, e.generation, e.headers, e.headers_origin,
	CASE WHEN e.previous_until > now() THEN e.previous_secret ELSE '' END AS previous_secret
FROM picked p
CROSS JOIN LATERAL (
	SELECT *
	FROM webhooks.deliveries d
	WHERE d.id = p.id
	OFFSET 0
) d
JOIN webhooks.endpoints e ON e.project_id = d.project_id
ORDER BY p.turn, p.endpoint_due`

// isNext holds for a delivery d if its job has no earlier delivery to settle. A job
// belongs to one project, so the key alone decides.
//
// Plans are mostly made while the queue is empty, and kept. For a single row any plan
// seems as good as the right one. In a burst, a wrong plan would read the whole queue for
// each of its rows. So this condition is a subquery for each row, not a join. Each of the
// two indexes of pending deliveries also has a condition that is always true, and that
// only the queries for this index contain. For deliveries_order it says that the revision
// is not negative. For deliveries_due (an endpoint's next deliveries) it says that the
// time is finite.
const isNext = `d.revision = (
	SELECT min(earlier.revision)
	FROM webhooks.deliveries earlier
	WHERE earlier.state = 'pending' AND earlier.revision >= 0 AND earlier.ordering_key = d.ordering_key
)`

// planOnce restricts the planner to plain index scans: only they mark the dead entries
// they meet, and the indexes of a queue are full of these. It also restricts the planner
// to its generic plans. A plan for these few deliveries would be a little cheaper, but
// takes longer to make than to run (TestPlansHoldHoweverMuchIsSettled).
const planOnce = `SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_generic_plan` +
	leaveNoLocks

// leaveNoLocks has the database end the transaction of a process that freezes in the
// middle of it. Otherwise no other process could write to the endpoints that it has
// locked.
const leaveNoLocks = `; SET LOCAL idle_in_transaction_session_timeout = '5s'`

// untilDue gives the time until the next look at a servable endpoint. An endpoint that
// another dispatcher holds is looked at only after its lease. If no endpoint is due,
// greatest would ignore the NULL, so here, too, there is a CASE. others covers leases of
// all accounts.
const untilDue = `
SELECT CASE WHEN at IS NULL THEN -1 ELSE greatest(extract(epoch FROM at - now()) * 1000, 0) END::bigint AS ms, coalesce(others, false) AS others
FROM (
	SELECT min(CASE WHEN lease_id IS NULL OR lease_id = $2 THEN due_at ELSE greatest(due_at, leased_until) END)
			FILTER (WHERE account_id <> ALL($1::text[])) AS at,
		bool_or(lease_id <> $2 AND leased_until > now()) AS others
	FROM webhooks.endpoints
	WHERE due_at IS NOT NULL AND ` + sendable + `
) next`

// noWait is for commits that a crash of the database may lose as a whole. A lost claim
// never happened, and a delivery with a lost result is sent again under its id.
const noWait = `; SET LOCAL synchronous_commit = off`

// Exchange settles outcomes, and takes up to limit due deliveries with their endpoints'
// leases, in one transaction. next is when to look again, at the latest; negative when
// nothing is scheduled, or all places are taken. After an error nothing was written, and the
// same outcomes may be settled again. A crash after the commit leaves leases that run out.
func (q *Queue) Exchange(
	ctx context.Context, done []Outcome, limit int,
) (s Settlement, batch []Delivery, next time.Duration, err error) {
	until := q.leaseEnd()
	use, back := q.accountUse()
	if len(done) == 0 && limit == 0 {
		q.short = true
		return s, nil, back, nil
	}
	if err := q.peers.endDeadLeases(ctx, q.db, q.holder); err != nil {
		return s, nil, 0, err
	}
	err = q.inTx(ctx, done, func(tx *sqlx.Tx) error {
		if s, err = q.settle(ctx, tx, done); err != nil {
			return err
		}
		batch, next, err = q.claim(ctx, tx, limit, use)
		return err
	})
	if err != nil {
		return s, nil, 0, err
	}
	q.addBatch(batch, until)
	return s, batch, sooner(next, back), nil
}

// Settle is Exchange without a claim.
func (q *Queue) Settle(ctx context.Context, done []Outcome) (s Settlement, err error) {
	err = q.inTx(ctx, done, func(tx *sqlx.Tx) error {
		s, err = q.settle(ctx, tx, done)
		return err
	})
	s.Waits = s.Waits || q.short
	return s, err
}

// inTx settles outcomes in a transaction, which waits for the disk unless all of them are
// successes.
func (q *Queue) inTx(ctx context.Context, done []Outcome, f func(*sqlx.Tx) error) error {
	settings := planOnce
	if !slices.ContainsFunc(done, func(o Outcome) bool { return o.Result != Delivered }) {
		settings += noWait
	}
	if err := pgpool.InTxSet(ctx, q.db, settings, f); err != nil {
		return err
	}
	for _, o := range done {
		q.Forget(o.Delivery)
	}
	return nil
}

func (q *Queue) claim(ctx context.Context, tx *sqlx.Tx, limit int, use accountUse) (batch []Delivery, next time.Duration, err error) {
	full := use.fullAccounts(limit)
	endpoints, err := pgpool.List[dueEndpoint](ctx, tx, "due endpoints", lockDueEndpoints, pq.Array(full), limit, q.holder)
	if err != nil {
		return nil, 0, err
	}
	if len(endpoints) > 0 {
		if err := q.expireAttempts(ctx, tx, endpoints); err != nil {
			return nil, 0, err
		}
		batch, err = pgpool.List[Delivery](ctx, tx, "due deliveries", leaseDue, pgpool.Rows(q.endpointRooms(endpoints, limit, use)), limit,
			q.holder, q.lease.Milliseconds(), pgpool.Rows(use.quotas(limit)), quota(limit, 0))
		if err != nil {
			return nil, 0, err
		}
	}
	for _, d := range batch {
		use[d.AccountID]++
	}
	full = use.fullAccounts(limit - len(batch))
	q.short = len(batch) == limit || len(full) > 0
	if len(batch) == limit {
		return batch, -1, nil
	}
	look, err := pgpool.One[struct {
		MS     int64
		Others bool
	}](ctx, tx, "the next due endpoint", untilDue, pq.Array(full), q.holder)
	if err != nil {
		return nil, 0, err
	}
	next = time.Duration(look.MS) * time.Millisecond
	switch q.peers.present = look.Others; {
	case q.peers.present:
		next = sooner(next, q.peers.nextPeerLook())
	case q.short: // others may take what is left
		next = sooner(next, peerLookEvery)
	}
	return batch, next, nil
}

// endpointRoom has the numbers of deliveries that an endpoint may be sent in all, and in
// one claim.
type endpointRoom struct {
	ProjectID string `json:"project_id"`
	Turns     int    `json:"turns"`
	Room      int    `json:"room"`
}

// endpointRooms gives, for each endpoint, how many deliveries it may be sent beside those
// under way, and how many of them in this claim. The second number is about the
// endpoint's part of the quotas of all these accounts, since few deliveries beyond that
// would be picked.
func (q *Queue) endpointRooms(endpoints []dueEndpoint, limit int, use accountUse) (rooms []endpointRoom) {
	most := q.caps.endpointShare(limit-q.pool/2, len(endpoints))
	all := 0
	for _, account := range webhooks.Distinct(endpoints, func(e dueEndpoint) string { return e.AccountID }) {
		all += quota(limit, use[account])
	}
	each := (2*min(all, limit) + len(endpoints) - 1) / len(endpoints)
	for _, e := range endpoints {
		n := q.caps.Begin
		if e.Cap > 0 {
			n = min(e.Cap, most)
		}
		n = max(n-len(e.InFlight), 0)
		rooms = append(rooms, endpointRoom{e.ProjectID, min(n, each), n})
	}
	return rooms
}

// expireAttemptsSQL expires attempts with an unknown outcome. Each counts as an attempt.
// A process that still brings the outcome finds another number, and changes only the log
// of attempts.
const expireAttemptsSQL = `
WITH gone AS (
	UPDATE webhooks.deliveries
	SET attempts = attempts + 1
	WHERE id = ANY($1)
	RETURNING id, project_id, attempts
), logged AS (
	INSERT INTO webhooks.attempts (delivery_id, attempt, at, duration_ms, url, status, error, response)
	SELECT g.id, g.attempts, e.leased_until - $3 * interval '1 millisecond', $3, e.url, NULL, '` + lost + `', ''
	FROM gone g
	JOIN webhooks.endpoints e USING (project_id)
	ON CONFLICT DO NOTHING
)
UPDATE webhooks.endpoints
SET in_flight = ARRAY(SELECT f FROM unnest(in_flight) f WHERE f <> ALL($1))
WHERE project_id = ANY($2)`

// expireAttempts expires deliveries that are under way by the endpoints' rows, but not in
// fact. The lease of their process has ended, or in this process they outlived their
// lease.
func (q *Queue) expireAttempts(ctx context.Context, tx *sqlx.Tx, endpoints []dueEndpoint) error {
	var ids, projects []string
	for i, e := range endpoints {
		var alive []string
		for _, id := range e.InFlight {
			if e.Ours && q.isSending(id) {
				alive = append(alive, id)
			} else {
				ids, projects = append(ids, id), append(projects, e.ProjectID)
			}
		}
		endpoints[i].InFlight = alive
	}
	if len(ids) == 0 {
		return nil
	}
	return pgpool.Exec(ctx, tx, "expire attempts", expireAttemptsSQL, pq.Array(ids), pq.Array(projects), q.lease.Milliseconds())
}

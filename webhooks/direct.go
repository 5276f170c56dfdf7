package webhooks

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/internal/pgpool"
)

// DirectSender is the dispatcher of the subscriber's own process. It sends new deliveries
// without a claim: the subscriber, which holds the endpoint's row, leases the endpoint to
// it in the statement that writes the delivery (direct dispatch).
type DirectSender interface {
	// ReservePlaces reserves places for deliveries that wait for nothing of their own
	// batch, as far as there are any. It returns the lease with which these must be written.
	ReservePlaces([]NewDelivery) DirectLease
	// KeepLeased frees the places of all other deliveries, because they did not get the
	// lease.
	KeepLeased(ids []string)
	// Committed says how the transaction ended: without an error the leased deliveries
	// are sent.
	Committed(err error)
}

// DirectLease is a dispatcher's lease of the endpoints of deliveries.
type DirectLease struct {
	Holder     uuid.UUID
	Term       time.Duration
	Deliveries []string // ids
}

// SendThrough has the subscriber lease deliveries that may go at once to the dispatcher.
// Call it before either runs.
func (s *Subscriber) SendThrough(d DirectSender) { s.direct = d }

// Committed implements consumer.Committer.
func (s *Subscriber) Committed(err error) {
	if s.direct != nil {
		s.direct.Committed(err)
	}
}

// candidates are the first new deliveries of their streams, to endpoints whose settings
// stay as they are.
func (p *batchPlan) candidates() (list []NewDelivery) {
	streams := map[string]bool{}
	for _, d := range p.rows {
		first := !streams[d.OrderingKey]
		streams[d.OrderingKey] = true
		if first && d.State == StatePending && !p.changesSettings(d.ProjectID) {
			list = append(list, d)
		}
	}
	return list
}

// insertDeliveries also schedules the endpoints: a delivery waits for each round trip. Of the
// offered deliveries it leases those that are new and the first of their job that is not
// settled. The row lock keeps this true until the lease is committed. The notification's
// payload names the dispatcher if only these leases are to be served; if there is other work
// it is empty.
const insertDeliveries = `
WITH given AS (
	SELECT *
	FROM json_to_recordset($2) AS g (id uuid, project_id text, event_id uuid, event text, ordering_key text, revision bigint, body text,
		state text, offered boolean, request_id text, trace text)
), inserted AS (
	INSERT INTO webhooks.deliveries (id, project_id, event_id, event, ordering_key, revision, body, state, request_id, trace)
	SELECT id, project_id, event_id, event, ordering_key, revision, convert_to(body, 'UTF8'), state, request_id, trace
	FROM given
	ON CONFLICT (id) DO NOTHING
	RETURNING id
), going AS (
	SELECT id, g.project_id
	FROM given g
	JOIN inserted USING (id)
	WHERE g.offered AND (
		SELECT min(earlier.revision)
		FROM webhooks.deliveries earlier
		WHERE earlier.state = 'pending' AND earlier.revision >= 0 AND earlier.ordering_key = g.ordering_key
	) IS NULL
), touched AS (
	SELECT t.project_id, g.ids, t.project_id = ANY($3) OR
		(SELECT count(*) FROM given WHERE project_id = t.project_id) > cardinality(g.ids) AS waits
	FROM unnest($1::text[]) AS t (project_id)
	CROSS JOIN LATERAL (SELECT coalesce(array_agg(id), '{}') AS ids FROM going WHERE project_id = t.project_id) g
), marked AS (
	UPDATE webhooks.endpoints e
	SET in_flight = e.in_flight || t.ids,
		lease_id = CASE WHEN t.ids <> '{}' THEN $4::uuid ELSE e.lease_id END,
		leased_until = CASE WHEN t.ids <> '{}' THEN clock_timestamp() + $5 * interval '1 millisecond' ELSE e.leased_until END,
		due_at = least(e.due_at, CASE WHEN t.waits THEN now() ELSE clock_timestamp() + $5 * interval '1 millisecond' END)
	FROM touched t
	WHERE e.project_id = ANY($1) AND e.project_id = t.project_id AND e.enabled AND e.url <> '' AND e.secret <> ''
		AND (t.ids <> '{}' OR e.due_at IS NULL OR e.due_at > now())
)
SELECT id::text
FROM going
UNION ALL
SELECT pg_notify('` + DueChannel + `', CASE WHEN EXISTS (SELECT FROM touched WHERE waits) THEN '' ELSE $4::text END)::text`

// insertRows writes new deliveries. Those that may go at once are leased to the dispatcher of
// this process; the others wait for the next claim.
func (s *Subscriber) insertRows(ctx context.Context, tx *sqlx.Tx, p batchPlan, touched []string) error {
	var lease DirectLease
	if s.direct != nil {
		lease = s.direct.ReservePlaces(p.candidates())
	}
	for i := range p.rows {
		p.rows[i].Offered = slices.Contains(lease.Deliveries, p.rows[i].ID)
	}
	leased, err := pgpool.List[string](ctx, tx, "the deliveries that were inserted", insertDeliveries,
		pq.Array(touched), pgpool.Rows(p.rows), pq.Array(p.changed), lease.Holder, lease.Term.Milliseconds())
	if err == nil && len(lease.Deliveries) > 0 {
		s.direct.KeepLeased(leased)
	}
	return err
}

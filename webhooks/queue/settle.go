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

// settleDeliveries logs attempts, also those that no longer count: it corrects an expired
// attempt. It changes the delivery only if this process still has the endpoint, and the
// attempt is the delivery's next one. A delivery that was held meanwhile stays held
// unless it was delivered.
const settleDeliveries = `
WITH r AS (
	SELECT *
	FROM json_to_recordset($1) AS r (id uuid, attempt integer, counts boolean, sent boolean, result text, wait bigint, at timestamptz, took integer,
		url text, status integer, error text, response text, signature text, standard text)
), logged AS (
	INSERT INTO webhooks.attempts AS a (delivery_id, attempt, at, duration_ms, url, status, error, response, signature, standard_signature)
	SELECT id, attempt, at, took, url, nullif(status, 0), error, response, signature, standard
	FROM r
	WHERE sent
	ON CONFLICT (delivery_id, attempt) DO UPDATE
	SET at = excluded.at, duration_ms = excluded.duration_ms, url = excluded.url,
		status = excluded.status, error = excluded.error, response = excluded.response,
		signature = excluded.signature, standard_signature = excluded.standard_signature
)
UPDATE webhooks.deliveries d
SET state = CASE
		WHEN r.result = 'delivered' THEN 'delivered'
		WHEN r.result IN ('exhausted', 'undelivered') THEN 'failed'
		ELSE d.state
	END,
	settled_at = CASE WHEN r.result IN ('delivered', 'exhausted', 'undelivered') OR d.state = 'dropped' THEN now() END,
	attempts = r.attempt,
	failures = CASE WHEN r.result IN ('retry', 'exhausted', 'undelivered') THEN d.failures + 1 ELSE d.failures END,
	due_at = now() + r.wait * interval '1 millisecond',
	last_status = nullif(r.status, 0),
	last_error = r.error
FROM r
WHERE d.id = r.id AND r.counts AND d.attempts = r.attempt - 1`

// lockEndpoints locks the rows in the order that all transactions keep when they wait for
// rows.
const lockEndpoints = `
SELECT ` + webhooks.EndpointColumns + `
FROM webhooks.endpoints
WHERE project_id = ANY($1)
ORDER BY project_id
FOR UPDATE`

// settle writes the outcomes of a batch of attempts, states and log.
func (q *Queue) settle(ctx context.Context, tx *sqlx.Tx, batch []Outcome) (Settlement, error) {
	if len(batch) == 0 {
		return Settlement{}, nil
	}
	projectIDs := webhooks.Distinct(batch, func(o Outcome) string { return o.ProjectID })
	byProject := func(e webhooks.EndpointRow) string { return e.ProjectID }
	now, err := pgpool.By(ctx, tx, "the endpoints to settle", byProject, lockEndpoints, pq.Array(projectIDs))
	if err != nil {
		return Settlement{}, err
	}
	final := slices.Clone(batch)
	for i := range final {
		final[i].forgiveChanged(now[final[i].ProjectID])
	}
	closed, err := q.writeOutcomes(ctx, tx, final, now)
	if err != nil {
		return Settlement{}, err
	}
	return concludeEndpoints(ctx, tx, q.caps, closed, now)
}

// forgiveChanged turns the last failure into a postponement when the endpoint has been
// changed since the claim: the failure is about earlier settings.
func (o *Outcome) forgiveChanged(e webhooks.EndpointRow) {
	if o.Result == Exhausted && o.Resets != e.Resets {
		o.Result, o.Wait = Postponed, 0
	}
}

// attemptRow is a finished attempt as settleDeliveries takes it. Times are milliseconds.
type attemptRow struct {
	ID        string    `json:"id"`
	Attempt   int       `json:"attempt"`
	Counts    bool      `json:"counts"`
	Sent      bool      `json:"sent"`
	Result    Result    `json:"result"`
	Wait      int64     `json:"wait"`
	At        time.Time `json:"at"`
	Took      int64     `json:"took"`
	URL       string    `json:"url"`
	Status    int       `json:"status"` // 0: none
	Error     string    `json:"error"`
	Response  string    `json:"response"`
	Signature string    `json:"signature"`
	Standard  string    `json:"standard"`
}

// writeOutcomes gives the outcomes that still count by the endpoints and the register.
// The statement checks again that the attempt's number is the delivery's next one.
func (q *Queue) writeOutcomes(
	ctx context.Context, tx *sqlx.Tx, batch []Outcome, now map[string]webhooks.EndpointRow,
) (closed []Outcome, err error) {
	var attempts []attemptRow
	for _, o := range batch {
		counts := q.ownsOutcome(now[o.ProjectID], o)
		if counts {
			closed = append(closed, o)
		}
		attempts = append(attempts, attemptRow{
			ID: o.ID, Attempt: o.Attempt, Counts: counts, Sent: !o.Unsent, Result: o.Result, Wait: o.Wait.Milliseconds(),
			At: o.At, Took: o.Took.Milliseconds(), URL: o.URL, Status: o.Status, Error: o.Err, Response: o.Response,
			Signature: o.Signed.Service, Standard: o.Signed.Standard,
		})
	}
	return closed, pgpool.Exec(ctx, tx, "settle deliveries", settleDeliveries, pgpool.Rows(attempts))
}

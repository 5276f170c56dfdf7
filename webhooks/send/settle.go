package send

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain/announce"
	"humanqa/internal/pgpool"
	"humanqa/webhooks"
)

// result is what one attempt means for its delivery.
type result string

const (
	delivered result = "delivered"
	retry     result = "retry"     // one failure more, due again after a while
	exhausted result = "exhausted" // the last failure: the endpoint is disabled
	postponed result = "postponed" // no fault of the endpoint; due again after a while
	// undelivered is the end of a test event, which is sent once and disables
	// nothing.
	undelivered result = "undelivered"
)

// outcome is a finished attempt on its way into the rows.
type outcome struct {
	claimed
	answer
	result result
	wait   time.Duration
	unsent bool // nothing left this process: no attempt to log
}

// classify applies the delivery rules (specification, "Delivery rules"; decisions,
// "Retries").
func classify(c claimed, a answer, retries []time.Duration) outcome {
	o := outcome{claimed: c, answer: a}
	switch {
	case a.err == "":
		o.result = delivered
	case c.Event == announce.TestName:
		o.result = undelivered
	case c.Failures >= len(retries):
		o.result = exhausted
	default:
		o.result, o.wait = retry, retries[c.Failures]
	}
	return o
}

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

// settlement has the results of settling that others need.
type settlement struct {
	disabled  []webhooks.EndpointRow // were disabled: the log must be told
	sealed    []string               // projects whose secret cannot be opened any more
	confirmed bool                   // a receiver confirmed its new secret: the log must be told
	waits     bool                   // an endpoint is to be looked at
}

// settleOutcomes writes the outcomes of a batch of attempts, states and log in one
// transaction. After an error nothing was written; the same batch may be settled again.
func (q *queue) settleOutcomes(ctx context.Context, batch []outcome) (s settlement, err error) {
	err = pgpool.InTxSet(ctx, q.db, planOnce+commitWait(batch), func(tx *sqlx.Tx) error {
		s, err = q.settleOutcomesIn(ctx, tx, batch)
		return err
	})
	if err != nil {
		return settlement{}, err
	}
	q.inFlight.removeSettled(batch)
	return s, nil
}

// settleAndClaim is settleOutcomes and claimDeliveries in one transaction, and one commit.
func (q *queue) settleAndClaim(
	ctx context.Context, done []outcome, limit int,
) (s settlement, batch []claimed, next time.Duration, err error) {
	until := q.inFlight.leaseEnd()
	use, back := q.inFlight.accountUse()
	if err := q.endDeadLeases(ctx); err != nil {
		return settlement{}, nil, 0, err
	}
	err = pgpool.InTxSet(ctx, q.db, planOnce+commitWait(done), func(tx *sqlx.Tx) error {
		if len(done) > 0 {
			if s, err = q.settleOutcomesIn(ctx, tx, done); err != nil {
				return err
			}
		}
		batch, next, err = q.claimDeliveriesIn(ctx, tx, limit, use)
		return err
	})
	if err != nil {
		return settlement{}, nil, 0, err
	}
	q.inFlight.removeSettled(done)
	q.inFlight.addBatch(batch, until)
	return s, batch, sooner(next, back), nil
}

// commitWait makes a commit wait for the disk, unless all outcomes are successes.
func commitWait(batch []outcome) string {
	if slices.ContainsFunc(batch, func(o outcome) bool { return o.result != delivered }) {
		return ""
	}
	return noWait
}

func (q *queue) settleOutcomesIn(ctx context.Context, tx *sqlx.Tx, batch []outcome) (settlement, error) {
	projectIDs := webhooks.Distinct(batch, func(o outcome) string { return o.ProjectID })
	var endpoints []webhooks.EndpointRow
	if err := tx.SelectContext(ctx, &endpoints, lockEndpoints, pq.Array(projectIDs)); err != nil {
		return settlement{}, fmt.Errorf("lock endpoints: %w", err)
	}
	now := make(map[string]webhooks.EndpointRow, len(endpoints))
	for _, e := range endpoints {
		now[e.ProjectID] = e
	}
	final := slices.Clone(batch)
	for i := range final {
		final[i].forgiveChanged(now[final[i].ProjectID])
	}
	closed, err := q.writeOutcomes(ctx, tx, final, now)
	if err != nil {
		return settlement{}, err
	}
	return q.concludeEndpoints(ctx, tx, closed, now)
}

// forgiveChanged turns the last failure into a postponement when the endpoint has been
// changed since the claim: the failure is about earlier settings.
func (o *outcome) forgiveChanged(e webhooks.EndpointRow) {
	if o.result == exhausted && o.Resets != e.Resets {
		o.result, o.wait = postponed, 0
	}
}

// attemptRow is a finished attempt as settleDeliveries takes it. Times are milliseconds.
type attemptRow struct {
	ID        string    `json:"id"`
	Attempt   int       `json:"attempt"`
	Counts    bool      `json:"counts"`
	Sent      bool      `json:"sent"`
	Result    result    `json:"result"`
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
func (q *queue) writeOutcomes(
	ctx context.Context, tx *sqlx.Tx, batch []outcome, now map[string]webhooks.EndpointRow,
) (closed []outcome, err error) {
	var attempts []attemptRow
	for _, o := range batch {
		counts := q.inFlight.ownsOutcome(now[o.ProjectID], o)
		if counts {
			closed = append(closed, o)
		}
		attempts = append(attempts, attemptRow{
			ID: o.ID, Attempt: o.Attempt, Counts: counts, Sent: !o.unsent, Result: o.result, Wait: o.wait.Milliseconds(),
			At: o.at, Took: o.took.Milliseconds(), URL: o.URL, Status: o.status, Error: o.err, Response: o.response,
			Signature: o.signed.Service, Standard: o.signed.Standard,
		})
	}
	if _, err := tx.ExecContext(ctx, settleDeliveries, pgpool.Rows(attempts)); err != nil {
		return nil, fmt.Errorf("settle deliveries: %w", err)
	}
	return closed, nil
}

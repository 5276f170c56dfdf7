package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain/announce"
	"humanqa/internal/pgpool"
	"humanqa/internal/signature"
	"humanqa/webhooks"
)

// Result is what one attempt means for its delivery.
type Result string

const (
	Delivered Result = "delivered"
	Retry     Result = "retry"     // one failure more, due again after a while
	Exhausted Result = "exhausted" // the last failure: the endpoint is disabled
	Postponed Result = "postponed" // no fault of the endpoint; due again after a while
	// Undelivered is the end of a test event, which is sent once and disables
	// nothing.
	Undelivered Result = "undelivered"
)

// Answer is the result of one request. Err is empty exactly on a 2xx.
type Answer struct {
	At       time.Time
	Took     time.Duration
	Status   int // 0: none
	Err      string
	Response string
	Slow     bool // it used up its time
	Signed   signature.Pair
}

// Outcome is a finished attempt on its way into the rows.
type Outcome struct {
	Delivery
	Answer
	Result Result
	Wait   time.Duration
	Unsent bool // nothing left this process: no attempt to log
}

// Classify applies the delivery rules (specification, "Delivery rules"; decisions,
// "Retries").
func Classify(c Delivery, a Answer, retries []time.Duration) Outcome {
	o := Outcome{Delivery: c, Answer: a}
	switch {
	case a.Err == "":
		o.Result = Delivered
	case c.Event == announce.TestName:
		o.Result = Undelivered
	case c.Failures >= len(retries):
		o.Result = Exhausted
	default:
		o.Result, o.Wait = Retry, retries[c.Failures]
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

// Settlement has the results of settling that others need.
type Settlement struct {
	Disabled  []webhooks.EndpointRow // were disabled: the log must be told
	Sealed    []string               // projects whose secret cannot be opened any more
	Confirmed bool                   // a receiver confirmed its new secret: the log must be told
	Waits     bool                   // an endpoint is to be looked at
}

// SettleOutcomes writes the outcomes of a batch of attempts, states and log in one
// transaction. After an error nothing was written; the same batch may be settled again.
func (q *Queue) SettleOutcomes(ctx context.Context, batch []Outcome) (s Settlement, err error) {
	err = pgpool.InTxSet(ctx, q.DB, planOnce+commitWait(batch), func(tx *sqlx.Tx) error {
		s, err = q.settleOutcomesIn(ctx, tx, batch)
		return err
	})
	if err != nil {
		return Settlement{}, err
	}
	q.InFlight.removeSettled(batch)
	return s, nil
}

// SettleAndClaim is SettleOutcomes and ClaimDeliveries in one transaction, and one commit.
func (q *Queue) SettleAndClaim(
	ctx context.Context, done []Outcome, limit int,
) (s Settlement, batch []Delivery, next time.Duration, err error) {
	until := q.InFlight.LeaseEnd()
	use, back := q.InFlight.AccountUse()
	if err := q.endDeadLeases(ctx); err != nil {
		return Settlement{}, nil, 0, err
	}
	err = pgpool.InTxSet(ctx, q.DB, planOnce+commitWait(done), func(tx *sqlx.Tx) error {
		if len(done) > 0 {
			if s, err = q.settleOutcomesIn(ctx, tx, done); err != nil {
				return err
			}
		}
		batch, next, err = q.claimDeliveriesIn(ctx, tx, limit, use)
		return err
	})
	if err != nil {
		return Settlement{}, nil, 0, err
	}
	q.InFlight.removeSettled(done)
	q.InFlight.addBatch(batch, until)
	return s, batch, sooner(next, back), nil
}

// commitWait makes a commit wait for the disk, unless all outcomes are successes.
func commitWait(batch []Outcome) string {
	if slices.ContainsFunc(batch, func(o Outcome) bool { return o.Result != Delivered }) {
		return ""
	}
	return noWait
}

func (q *Queue) settleOutcomesIn(ctx context.Context, tx *sqlx.Tx, batch []Outcome) (Settlement, error) {
	projectIDs := webhooks.Distinct(batch, func(o Outcome) string { return o.ProjectID })
	var endpoints []webhooks.EndpointRow
	if err := tx.SelectContext(ctx, &endpoints, lockEndpoints, pq.Array(projectIDs)); err != nil {
		return Settlement{}, fmt.Errorf("lock endpoints: %w", err)
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
		return Settlement{}, err
	}
	return q.concludeEndpoints(ctx, tx, closed, now)
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
		counts := q.InFlight.ownsOutcome(now[o.ProjectID], o)
		if counts {
			closed = append(closed, o)
		}
		attempts = append(attempts, attemptRow{
			ID: o.ID, Attempt: o.Attempt, Counts: counts, Sent: !o.Unsent, Result: o.Result, Wait: o.Wait.Milliseconds(),
			At: o.At, Took: o.Took.Milliseconds(), URL: o.URL, Status: o.Status, Error: o.Err, Response: o.Response,
			Signature: o.Signed.Service, Standard: o.Signed.Standard,
		})
	}
	if _, err := tx.ExecContext(ctx, settleDeliveries, pgpool.Rows(attempts)); err != nil {
		return nil, fmt.Errorf("settle deliveries: %w", err)
	}
	return closed, nil
}

package webhooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain/announce"
	"humanqa/internal/pgpool"
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

// settleDeliveries closes leases. A delivery whose lease somebody else has taken
// over is left alone; one that was held while its attempt ran stays held
// unless it was delivered.
const settleDeliveries = `
UPDATE webhooks.deliveries d
SET state = CASE
		WHEN r.result = 'delivered' THEN 'delivered'
		WHEN r.result IN ('exhausted', 'undelivered') THEN 'failed'
		ELSE d.state
	END,
	settled_at = CASE WHEN r.result IN ('delivered', 'exhausted', 'undelivered') OR d.state = 'dropped' THEN now() END,
	failures = CASE WHEN r.result IN ('retry', 'exhausted', 'undelivered') THEN d.failures + 1 ELSE d.failures END,
	due_at = now() + r.wait * interval '1 millisecond',
	lease_id = NULL,
	last_status = nullif(r.status, 0),
	last_error = r.error
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::bigint[], $5::integer[], $6::text[])
	AS r (id, lease_id, result, wait, status, error)
WHERE d.id = r.id AND d.lease_id = r.lease_id
RETURNING d.id || ' ' || r.lease_id`

// logAttempts also corrects the attempt that was written off as lost when its
// lease was taken over.
const logAttempts = `
INSERT INTO webhooks.attempts AS a (delivery_id, attempt, at, duration_ms, url, status, error, response, signature, standard_signature)
SELECT r.id, r.attempt, r.at, r.took, r.url, nullif(r.status, 0), r.error, r.response, r.signature, r.standard
FROM unnest($1::uuid[], $2::integer[], $3::timestamptz[], $4::integer[], $5::text[], $6::integer[], $7::text[], $8::text[],
	$9::text[], $10::text[]) AS r (id, attempt, at, took, url, status, error, response, signature, standard)
ON CONFLICT (delivery_id, attempt) DO UPDATE
SET at = excluded.at, duration_ms = excluded.duration_ms, url = excluded.url,
	status = excluded.status, error = excluded.error, response = excluded.response,
	signature = excluded.signature, standard_signature = excluded.standard_signature`

// settle writes what became of a batch of attempts, states and log in one
// transaction. disabled are the endpoints that were switched off: the log has
// to be told; sealed are the projects whose secret cannot be opened any more.
// After an error nothing was written; the same batch may be settled
// again.
func (q queue) settle(ctx context.Context, batch []outcome) (disabled []endpoint, sealed []string, err error) {
	projectIDs := distinct(batch, func(o outcome) string { return o.ProjectID })
	err = pgpool.InTx(ctx, q.db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, planOnce); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		var endpoints []endpoint
		if err := tx.SelectContext(ctx, &endpoints, lockEndpoints, pq.Array(projectIDs)); err != nil {
			return fmt.Errorf("lock endpoints: %w", err)
		}
		now := make(map[string]endpoint, len(endpoints))
		for _, e := range endpoints {
			now[e.ProjectID] = e
		}
		final := slices.Clone(batch)
		for i := range final {
			final[i].spare(now[final[i].ProjectID])
		}
		if err := q.writeAttempts(ctx, tx, final); err != nil {
			return err
		}
		closed, err := q.writeOutcomes(ctx, tx, final)
		if err != nil {
			return err
		}
		if disabled, sealed, err = q.conclude(ctx, tx, closed, now); err != nil {
			return err
		}
		return poke(ctx, tx, projectIDs)
	})
	if err != nil {
		return nil, nil, err
	}
	return disabled, sealed, nil
}

// spare turns the last failure into a postponement when the endpoint has been
// changed since the claim: the failure is about something that is gone.
func (o *outcome) spare(e endpoint) {
	if o.result == exhausted && o.Resets != e.Resets {
		o.result, o.wait = postponed, 0
	}
}

// writeOutcomes gives those whose lease was still theirs. What the others have
// to say no longer counts.
func (q queue) writeOutcomes(ctx context.Context, tx *sqlx.Tx, batch []outcome) ([]outcome, error) {
	var (
		ids, leases, results, errs []string
		waits, statuses            []int64
	)
	for _, o := range batch {
		ids = append(ids, o.ID)
		leases = append(leases, o.LeaseID.String())
		results = append(results, string(o.result))
		waits = append(waits, o.wait.Milliseconds())
		statuses = append(statuses, int64(o.status))
		errs = append(errs, o.err)
	}
	var closed []string
	err := tx.SelectContext(ctx, &closed, settleDeliveries,
		pq.Array(ids), pq.Array(leases), pq.Array(results), pq.Array(waits), pq.Array(statuses), pq.Array(errs))
	if err != nil {
		return nil, fmt.Errorf("settle deliveries: %w", err)
	}
	if len(closed) == len(batch) {
		return batch, nil
	}
	return slices.DeleteFunc(slices.Clone(batch), func(o outcome) bool {
		return !slices.Contains(closed, o.ID+" "+o.LeaseID.String())
	}), nil
}

func (q queue) writeAttempts(ctx context.Context, tx *sqlx.Tx, batch []outcome) error {
	var (
		ids, ats, urls, errs, responses []string
		signatures, standards           []string
		attempts, tooks, statuses       []int64
	)
	for _, o := range batch {
		if o.unsent {
			continue
		}
		ids = append(ids, o.ID)
		attempts = append(attempts, int64(o.Attempt))
		ats = append(ats, o.at.UTC().Format(time.RFC3339Nano))
		tooks = append(tooks, o.took.Milliseconds())
		urls = append(urls, o.URL)
		statuses = append(statuses, int64(o.status))
		errs = append(errs, o.err)
		responses = append(responses, o.response)
		signatures = append(signatures, o.signed.service)
		standards = append(standards, o.signed.standard)
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, logAttempts, pq.Array(ids), pq.Array(attempts), pq.Array(ats), pq.Array(tooks),
		pq.Array(urls), pq.Array(statuses), pq.Array(errs), pq.Array(responses), pq.Array(signatures), pq.Array(standards))
	if err != nil {
		return fmt.Errorf("log attempts: %w", err)
	}
	return nil
}

func distinct[T any](list []T, key func(T) string) []string {
	seen := make(map[string]bool, len(list))
	var keys []string
	for _, v := range list {
		if k := key(v); !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}

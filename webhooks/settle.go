package webhooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// verdict is what one attempt means for its delivery.
type verdict string

const (
	delivered verdict = "delivered"
	retry     verdict = "retry"     // one failure more, due again after a while
	exhausted verdict = "exhausted" // the last failure: the endpoint is disabled
	postponed verdict = "postponed" // no fault of the endpoint; due again after a while
)

// outcome is a finished attempt on its way into the rows.
type outcome struct {
	claimed
	answer
	verdict verdict
	wait    time.Duration
	unsent  bool // nothing left this process: no attempt to log
}

// judge applies the delivery rules (specification, "Delivery rules"; decisions,
// section 7, "Retries").
func judge(c claimed, a answer, retries []time.Duration) outcome {
	o := outcome{claimed: c, answer: a}
	switch {
	case a.err == "":
		o.verdict = delivered
	case a.final || c.Failures >= len(retries):
		o.verdict = exhausted
	default:
		o.verdict, o.wait = retry, retries[c.Failures]
	}
	return o
}

// settleDeliveries closes leases. A delivery whose lease somebody else has taken
// over is left alone; one that was held while its attempt ran stays held
// unless it was delivered.
const settleDeliveries = `
UPDATE webhooks.deliveries d
SET state = CASE
		WHEN r.verdict = 'delivered' THEN 'delivered'
		WHEN r.verdict = 'exhausted' THEN 'failed'
		ELSE d.state
	END,
	settled_at = CASE WHEN r.verdict IN ('delivered', 'exhausted') THEN now() END,
	failures = CASE WHEN r.verdict IN ('retry', 'exhausted') THEN d.failures + 1 ELSE d.failures END,
	due_at = now() + r.wait * interval '1 millisecond',
	lease_id = NULL,
	last_status = nullif(r.status, 0),
	last_error = r.error
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::bigint[], $5::integer[], $6::text[])
	AS r (id, lease_id, verdict, wait, status, error)
WHERE d.id = r.id AND d.lease_id = r.lease_id
RETURNING d.id || ' ' || r.lease_id`

// logAttempts also corrects the attempt that was written off as lost when its
// lease was taken over.
const logAttempts = `
INSERT INTO webhooks.attempts AS a (delivery_id, attempt, at, duration_ms, url, status, error, response)
SELECT r.id, r.attempt, r.at, r.took, r.url, nullif(r.status, 0), r.error, r.response
FROM unnest($1::uuid[], $2::integer[], $3::timestamptz[], $4::integer[], $5::text[], $6::integer[], $7::text[], $8::text[])
	AS r (id, attempt, at, took, url, status, error, response)
ON CONFLICT (delivery_id, attempt) DO UPDATE
SET at = excluded.at, duration_ms = excluded.duration_ms, url = excluded.url,
	status = excluded.status, error = excluded.error, response = excluded.response`

const setCautious = `
UPDATE webhooks.endpoints e
SET cautious = r.cautious
FROM unnest($1::text[], $2::boolean[]) AS r (project_id, cautious)
WHERE e.project_id = r.project_id`

const disableEndpoints = `
UPDATE webhooks.endpoints e
SET enabled = false, announced = false, disabled_by = r.delivery_id, disabled_reason = r.reason, due_at = NULL
FROM unnest($1::text[], $2::text[], $3::text[]) AS r (project_id, delivery_id, reason)
WHERE e.project_id = r.project_id AND e.enabled`

// holdDeliveries leaves running attempts their leases: a success still counts.
const holdDeliveries = `
UPDATE webhooks.deliveries
SET state = 'held'
WHERE project_id = ANY($1) AND state = 'pending'`

// settle writes what became of a batch of attempts, states and log in one
// transaction. disabled says that an endpoint was switched off and the log has
// to be told. After an error nothing was written; the same batch may be settled
// again.
func (q queue) settle(ctx context.Context, batch []outcome) (disabled bool, err error) {
	projectIDs := distinct(batch, func(o outcome) string { return o.ProjectID })
	err = inTx(ctx, q.db, true, func(tx *sqlx.Tx) error {
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
		if disabled, err = disable(ctx, tx, closed, now); err != nil {
			return err
		}
		return poke(ctx, tx, projectIDs)
	})
	if err != nil {
		return false, err
	}
	return disabled, nil
}

// spare turns the last failure into a postponement when the endpoint has been
// changed since the claim: the failure is about something that is gone.
func (o *outcome) spare(e endpoint) {
	if o.verdict == exhausted && o.Generation != e.Generation {
		o.verdict, o.wait = postponed, 0
	}
}

// writeOutcomes gives those whose lease was still theirs. What the others have
// to say no longer counts.
func (q queue) writeOutcomes(ctx context.Context, tx *sqlx.Tx, batch []outcome) ([]outcome, error) {
	var (
		ids, leases, verdicts, errs []string
		waits, statuses             []int64
	)
	for _, o := range batch {
		ids = append(ids, o.ID)
		leases = append(leases, o.LeaseID.String())
		verdicts = append(verdicts, string(o.verdict))
		waits = append(waits, o.wait.Milliseconds())
		statuses = append(statuses, int64(o.status))
		errs = append(errs, o.err)
	}
	var closed []string
	err := tx.SelectContext(ctx, &closed, settleDeliveries,
		pq.Array(ids), pq.Array(leases), pq.Array(verdicts), pq.Array(waits), pq.Array(statuses), pq.Array(errs))
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
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, logAttempts, pq.Array(ids), pq.Array(attempts), pq.Array(ats), pq.Array(tooks),
		pq.Array(urls), pq.Array(statuses), pq.Array(errs), pq.Array(responses))
	if err != nil {
		return fmt.Errorf("log attempts: %w", err)
	}
	return nil
}

// disable draws the endpoints' conclusions: one that timed out is served one at
// a time until a 2xx; one whose delivery failed for good is switched off and
// its other deliveries are held.
func disable(ctx context.Context, tx *sqlx.Tx, batch []outcome, now map[string]endpoint) (bool, error) {
	cautious := map[string]bool{}
	causes := map[string]outcome{}
	for _, o := range batch {
		switch {
		case o.timedOut:
			cautious[o.ProjectID] = true
		case o.verdict == delivered:
			cautious[o.ProjectID] = false
		}
		if _, known := causes[o.ProjectID]; o.verdict == exhausted && now[o.ProjectID].Enabled && !known {
			causes[o.ProjectID] = o
		}
	}
	var changed []string
	var flags []bool
	for id, flag := range cautious {
		if flag != now[id].Cautious {
			changed, flags = append(changed, id), append(flags, flag)
		}
	}
	if len(changed) > 0 {
		if _, err := tx.ExecContext(ctx, setCautious, pq.Array(changed), pq.Array(flags)); err != nil {
			return false, fmt.Errorf("mark endpoints that time out: %w", err)
		}
	}
	if len(causes) == 0 {
		return false, nil
	}
	var ids, deliveries, reasons []string
	for id, o := range causes {
		ids, deliveries, reasons = append(ids, id), append(deliveries, o.ID), append(reasons, o.err)
	}
	if _, err := tx.ExecContext(ctx, disableEndpoints, pq.Array(ids), pq.Array(deliveries), pq.Array(reasons)); err != nil {
		return false, fmt.Errorf("disable endpoints: %w", err)
	}
	if _, err := tx.ExecContext(ctx, holdDeliveries, pq.Array(ids)); err != nil {
		return false, fmt.Errorf("hold deliveries: %w", err)
	}
	return true, nil
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

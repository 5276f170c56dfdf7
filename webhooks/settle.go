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

// settleDeliveries logs attempts, also those that no longer count: it corrects one
// that was written off. What an attempt means for its delivery it writes where the
// endpoint is still this process's and the attempt the delivery's next one; a
// delivery that was held meanwhile stays held unless it was delivered.
const settleDeliveries = `
WITH r AS (
	SELECT *
	FROM unnest($1::uuid[], $2::integer[], $3::boolean[], $4::boolean[], $5::text[], $6::bigint[], $7::timestamptz[], $8::integer[], $9::text[],
		$10::integer[], $11::text[], $12::text[], $13::text[], $14::text[])
		AS r (id, attempt, counts, sent, result, wait, at, took, url, status, error, response, signature, standard)
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

// settlement is what others have to hear of.
type settlement struct {
	disabled  []endpoint // were switched off: the log has to be told
	sealed    []string   // projects whose secret cannot be opened any more
	confirmed bool       // a receiver confirmed its new secret: likewise
	waits     bool       // an endpoint is to be looked at
}

// settle writes what became of a batch of attempts, states and log in one
// transaction. After an error nothing was written; the same batch may be settled
// again.
func (q *queue) settle(ctx context.Context, batch []outcome) (s settlement, err error) {
	err = pgpool.InTxSet(ctx, q.db, planOnce+settleWait(batch), func(ctx context.Context, tx *sqlx.Tx) error {
		s, err = q.settleIn(ctx, tx, batch, true)
		return err
	})
	if err != nil {
		return settlement{}, err
	}
	q.land(batch)
	return s, nil
}

// exchange is settle and claim in one transaction, and one commit. What is written goes
// out with the claim's first question.
func (q *queue) exchange(ctx context.Context, done []outcome, limit int, busy shares) (s settlement, batch []claimed, next time.Duration, err error) {
	until := q.begin()
	if err := q.bury(ctx); err != nil {
		return settlement{}, nil, 0, err
	}
	err = pgpool.InTxSet(ctx, q.db, planOnce+settleWait(done), func(ctx context.Context, tx *sqlx.Tx) error {
		if s, err = q.settleIn(ctx, tx, done, false); err != nil {
			return err
		}
		batch, next, err = q.claimIn(ctx, tx, limit, busy)
		return err
	})
	if err != nil {
		return settlement{}, nil, 0, err
	}
	q.land(done)
	q.take(batch, until)
	return s, batch, next, nil
}

// settleWait has a commit wait for the disk for all but arrivals.
func settleWait(batch []outcome) string {
	if slices.ContainsFunc(batch, func(o outcome) bool { return o.result != delivered }) {
		return ""
	}
	return noWait
}

// settleIn says whether something waits where that is asked.
func (q *queue) settleIn(ctx context.Context, tx *sqlx.Tx, batch []outcome, ask bool) (settlement, error) {
	projectIDs := distinct(batch, func(o outcome) string { return o.ProjectID })
	var endpoints []endpoint
	if err := tx.SelectContext(ctx, &endpoints, lockEndpoints, pq.Array(projectIDs)); err != nil {
		return settlement{}, fmt.Errorf("lock endpoints: %w", err)
	}
	now := make(map[string]endpoint, len(endpoints))
	for _, e := range endpoints {
		now[e.ProjectID] = e
	}
	final := slices.Clone(batch)
	for i := range final {
		final[i].spare(now[final[i].ProjectID])
	}
	closed, err := q.writeOutcomes(ctx, tx, final, now)
	if err != nil {
		return settlement{}, err
	}
	return q.conclude(ctx, tx, closed, now, ask)
}

// spare turns the last failure into a postponement when the endpoint has been
// changed since the claim: the failure is about something that is gone.
func (o *outcome) spare(e endpoint) {
	if o.result == exhausted && o.Resets != e.Resets {
		o.result, o.wait = postponed, 0
	}
}

// writeOutcomes gives those that still count, as far as endpoints and flights tell: that
// its number is the delivery's next one the statement asks once more.
func (q *queue) writeOutcomes(ctx context.Context, tx *sqlx.Tx, batch []outcome, now map[string]endpoint) ([]outcome, error) {
	var (
		ids, results, ats, urls, errs    []string
		responses, signatures, standards []string
		attempts, waits, tooks, statuses []int64
		counts, sent                     []bool
		closed                           []outcome
	)
	for _, o := range batch {
		holds := q.holds(now[o.ProjectID], o)
		if holds {
			closed = append(closed, o)
		}
		ids = append(ids, o.ID)
		attempts = append(attempts, int64(o.Attempt))
		counts = append(counts, holds)
		sent = append(sent, !o.unsent)
		results = append(results, string(o.result))
		waits = append(waits, o.wait.Milliseconds())
		ats = append(ats, o.at.UTC().Format(time.RFC3339Nano))
		tooks = append(tooks, o.took.Milliseconds())
		urls = append(urls, o.URL)
		statuses = append(statuses, int64(o.status))
		errs = append(errs, o.err)
		responses = append(responses, o.response)
		signatures = append(signatures, o.signed.service)
		standards = append(standards, o.signed.standard)
	}
	_, err := tx.ExecContext(pgpool.Later(ctx), settleDeliveries, pq.Array(ids), pq.Array(attempts), pq.Array(counts), pq.Array(sent),
		pq.Array(results), pq.Array(waits), pq.Array(ats), pq.Array(tooks), pq.Array(urls), pq.Array(statuses), pq.Array(errs),
		pq.Array(responses), pq.Array(signatures), pq.Array(standards))
	if err != nil {
		return nil, fmt.Errorf("settle deliveries: %w", err)
	}
	return closed, nil
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

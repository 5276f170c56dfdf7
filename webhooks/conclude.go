package webhooks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain/announce"
	"humanqa/internal/pgpool"
)

// conclude draws the endpoints' conclusions from attempts that are written: each is
// given free where nothing else is under way, and looked at again; how many each is
// sent at once from now on, and how it does; one whose delivery failed for good is
// switched off and its other deliveries are held; those of one whose secret
// cannot be opened are postponed together.
func (q *queue) conclude(ctx context.Context, tx *sqlx.Tx, batch []outcome, now map[string]endpoint, ask bool) (s settlement, err error) {
	causes := map[string]string{} // deliveries that failed for good, by project
	for _, o := range batch {
		if _, known := causes[o.ProjectID]; o.result == exhausted && now[o.ProjectID].Enabled && !known {
			causes[o.ProjectID] = o.ID
		}
	}
	changed := standings(batch, now)
	for id, st := range changed {
		if st.LastError == sealedSecret && now[id].LastError != sealedSecret {
			s.sealed = append(s.sealed, id)
		}
	}
	if err := postpone(ctx, tx, batch); err != nil {
		return settlement{}, err
	}
	becomes := aftermath{caps: q.cap.after(batch, now), standings: changed, newSecrets: newSecrets(batch, now)}
	for _, is := range becomes.newSecrets {
		s.confirmed = s.confirmed || is == confirmed
	}
	if s.waits, err = freeEndpoints(ctx, tx, batch, now, becomes, ask); err != nil || len(causes) == 0 {
		return s, err
	}
	s.disabled, err = disable(ctx, tx, causes)
	return s, err
}

const postponeDeliveries = `
UPDATE webhooks.deliveries
SET due_at = now() + $2 * interval '1 millisecond'
WHERE project_id = ANY($1) AND state = 'pending' AND due_at > '-infinity' AND due_at <= now()`

// postpone lets whatever else is due to endpoints with a sealed secret wait, too.
func postpone(ctx context.Context, tx *sqlx.Tx, batch []outcome) error {
	var ids []string
	for _, o := range batch {
		if o.unsent {
			ids = append(ids, o.ProjectID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if _, err := tx.ExecContext(pgpool.Later(ctx), postponeDeliveries, pq.Array(ids), unsealWait.Milliseconds()); err != nil {
		return fmt.Errorf("postpone deliveries: %w", err)
	}
	return nil
}

// successEvery is how exactly the time of an endpoint's last success is kept: a
// busy one is not written for each.
const successEvery = time.Second

// standings gives the new standing of the endpoints whose standing has changed,
// by project. Attempts about what the endpoint was before, and test events, say
// nothing of it.
func standings(batch []outcome, now map[string]endpoint) map[string]standing {
	changed := map[string]standing{}
	for _, o := range batch {
		e, known := now[o.ProjectID]
		if !known || o.Resets != e.Resets || o.Event == announce.TestName {
			continue
		}
		s, begun := changed[o.ProjectID]
		if !begun {
			s = e.standing
		}
		ended := o.at.Add(o.took)
		switch o.result {
		case delivered:
			if s.FailingSince == nil && s.LastSuccessAt != nil && ended.Sub(*s.LastSuccessAt) < successEvery {
				continue
			}
			s = standing{LastSuccessAt: &ended}
		case retry, exhausted:
			if s.FailingSince == nil {
				s.FailingSince = &o.at
			}
			s.ConsecutiveFailures++
			s.LastError = o.err
		case postponed:
			if !o.unsent || s.LastError == sealedSecret {
				continue
			}
			if s.FailingSince == nil {
				s.FailingSince = &o.at
			}
			s.LastError = sealedSecret
		case undelivered:
			continue
		}
		changed[o.ProjectID] = s
	}
	return changed
}

// settleEndpoints also has the next claim look at them, unless nothing waits beside
// what is still under way: then that lease's end is all there is to look for, as
// leaseDue would find. Of what waits one row is looked for in the way of leaseDue,
// past those under way, which are as many as the cap.
const settleEndpoints = `
UPDATE webhooks.endpoints e
SET in_flight = ARRAY(SELECT f FROM unnest(e.in_flight) f WHERE f <> ALL($7::uuid[])),
	lease_id = CASE WHEN e.in_flight <@ $7 THEN NULL ELSE e.lease_id END,
	leased_until = CASE WHEN e.in_flight <@ $7 THEN NULL ELSE e.leased_until END,
	due_at = CASE
		WHEN NOT (e.enabled AND e.url <> '' AND e.secret <> '') THEN e.due_at
		WHEN (
			SELECT d.due_at
			FROM webhooks.deliveries d
			WHERE d.project_id = e.project_id AND d.state = 'pending' AND d.due_at > '-infinity'
				AND (d.id <> ALL(e.in_flight) OR d.id = ANY($7::uuid[]))
			ORDER BY d.due_at
			LIMIT 1
		) IS NOT NULL THEN least(e.due_at, now())
		WHEN NOT e.in_flight <@ $7 THEN e.leased_until
	END,
	cap = r.cap, consecutive_failures = r.failures, failing_since = r.since, last_error = r.error, last_success_at = r.success,
	new_secret = r.new_secret
FROM unnest($1::text[], $2::integer[], $3::integer[], $4::timestamptz[], $5::text[], $6::timestamptz[], $8::text[])
	AS r (project_id, cap, failures, since, error, success, new_secret)
WHERE e.project_id = r.project_id
RETURNING coalesce(e.due_at <= now(), false)`

// aftermath is what attempts changed of their endpoints, by project.
type aftermath struct {
	caps       map[string]int
	standings  map[string]standing
	newSecrets map[string]string
}

// freeEndpoints says whether one of them is to be looked at, where that is asked.
func freeEndpoints(ctx context.Context, tx *sqlx.Tx, batch []outcome, now map[string]endpoint, becomes aftermath, ask bool) (waits bool, err error) {
	if len(batch) == 0 {
		return false, nil
	}
	ids := distinct(batch, func(o outcome) string { return o.ProjectID })
	var (
		errs, made       []string
		sizes, failures  []int64
		since, succeeded []*string
	)
	for _, id := range ids {
		size, s, is := now[id].Cap, now[id].standing, now[id].NewSecret
		if n, changed := becomes.caps[id]; changed {
			size = n
		}
		if n, changed := becomes.standings[id]; changed {
			s = n
		}
		if n, changed := becomes.newSecrets[id]; changed {
			is = n
		}
		made = append(made, is)
		sizes, errs, failures = append(sizes, int64(size)), append(errs, s.LastError), append(failures, int64(s.ConsecutiveFailures))
		since, succeeded = append(since, timeText(s.FailingSince)), append(succeeded, timeText(s.LastSuccessAt))
	}
	args := []any{
		pq.Array(ids), pq.Array(sizes), pq.Array(failures), pq.Array(since), pq.Array(errs),
		pq.Array(succeeded), pq.Array(distinct(batch, func(o outcome) string { return o.ID })), pq.Array(made),
	}
	var due []bool
	if ask {
		err = tx.SelectContext(ctx, &due, settleEndpoints, args...)
	} else {
		_, err = tx.ExecContext(pgpool.Later(ctx), settleEndpoints, args...)
	}
	if err != nil {
		return false, fmt.Errorf("settle endpoints: %w", err)
	}
	return slices.Contains(due, true), nil
}

// timeText writes a time for an array of them; nil stays NULL.
func timeText(t *time.Time) *string {
	if t == nil {
		return nil
	}
	s := t.UTC().Format(time.RFC3339Nano)
	return &s
}

// sealedSecret is the error of deliveries that could not be signed, and of
// their endpoint.
const sealedSecret = "the signing secret cannot be opened"

// What ended attempts that say nothing about the endpoint.
const (
	interrupted = "interrupted: "
	lost        = "the outcome is unknown: the sender went away"
)

// disableEndpoints says why: what the delivery's failed attempts met, each thing
// once, in the order it first came. The last one alone may be a mere symptom, such
// as a time-out after three refused certificates.
const disableEndpoints = `
WITH failed AS (
	SELECT c.project_id, a.error, a.attempt, d.failures,
		row_number() OVER (PARTITION BY c.project_id ORDER BY a.attempt DESC) AS back
	FROM unnest($1::text[], $2::uuid[]) AS c (project_id, delivery_id)
	JOIN webhooks.deliveries d ON d.id = c.delivery_id
	JOIN webhooks.attempts a ON a.delivery_id = d.id
	WHERE a.error NOT IN ('', '` + lost + `') AND a.error NOT LIKE '` + interrupted + `%'
), met AS (
	SELECT project_id, error, min(attempt) AS first
	FROM failed
	WHERE back <= failures
	GROUP BY project_id, error
), cause AS (
	SELECT c.project_id, c.delivery_id, left(coalesce(string_agg(m.error, '; then ' ORDER BY m.first), ''), 1000) AS reason
	FROM unnest($1::text[], $2::uuid[]) AS c (project_id, delivery_id)
	LEFT JOIN met m USING (project_id)
	GROUP BY c.project_id, c.delivery_id
)
UPDATE webhooks.endpoints e
SET enabled = false, announced = false, disabled_by = c.delivery_id, disabled_reason = c.reason, due_at = NULL
FROM cause c
WHERE e.project_id = c.project_id AND e.enabled
RETURNING e.project_id, e.disabled_by, e.disabled_reason`

// holdDeliveries leaves running attempts their leases: a success still counts.
// A test event is about the endpoint as it was: it is never held.
const holdDeliveries = `
UPDATE webhooks.deliveries
SET state = CASE WHEN event = '` + announce.TestName + `' THEN 'dropped' ELSE 'held' END,
	settled_at = CASE WHEN event = '` + announce.TestName + `' THEN now() END
WHERE project_id = ANY($1) AND state = 'pending' AND due_at > '-infinity'`

// disable switches endpoints off because of deliveries, both by project.
func disable(ctx context.Context, tx *sqlx.Tx, causes map[string]string) (disabled []endpoint, err error) {
	ids := slices.Collect(maps.Keys(causes))
	deliveries := make([]string, len(ids))
	for i, id := range ids {
		deliveries[i] = causes[id]
	}
	if err := tx.SelectContext(ctx, &disabled, disableEndpoints, pq.Array(ids), pq.Array(deliveries)); err != nil {
		return nil, fmt.Errorf("disable endpoints: %w", err)
	}
	if _, err := tx.ExecContext(ctx, holdDeliveries, pq.Array(ids)); err != nil {
		return nil, fmt.Errorf("hold deliveries: %w", err)
	}
	return disabled, nil
}

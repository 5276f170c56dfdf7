package queue

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain/announce"
	"humanqa/internal/pgpool"
	"humanqa/webhooks"
)

// Settlement has the results of settling that others need.
type Settlement struct {
	Disabled  []webhooks.EndpointRow // were disabled: the log must be told
	Sealed    []string               // projects whose secret cannot be opened any more
	Confirmed bool                   // a receiver confirmed its new secret: the log must be told
	Waits     bool                   // an endpoint is to be looked at, or the last claim left deliveries
}

// concludeEndpoints updates the endpoints after written attempts. It releases an endpoint
// without other deliveries under way, and makes endpoints due again. It sets their caps
// and their health. It disables an endpoint with a delivery that failed for good, and
// holds its other deliveries. It postpones all deliveries of an endpoint whose secret
// cannot be opened.
func concludeEndpoints(
	ctx context.Context, tx *sqlx.Tx, caps Caps, batch []Outcome, now map[string]webhooks.EndpointRow,
) (s Settlement, err error) {
	causes := map[string]string{} // deliveries that failed for good, by project
	after := map[string]webhooks.EndpointRow{}
	for _, o := range batch {
		e, known := now[o.ProjectID]
		if known {
			after[o.ProjectID] = e
		}
		if o.Result == Exhausted && e.Enabled {
			causes[o.ProjectID] = cmp.Or(causes[o.ProjectID], o.ID)
		}
	}
	caps.adjustCaps(after, batch)
	adjustHealth(after, batch)
	adjustSecrets(after, batch)
	for id, e := range after {
		if e.LastError == sealedSecret && now[id].LastError != sealedSecret {
			s.Sealed = append(s.Sealed, id)
		}
		s.Confirmed = s.Confirmed || e.NewSecret == webhooks.SecretConfirmed && now[id].NewSecret != webhooks.SecretConfirmed
	}
	if err := postponeSealed(ctx, tx, batch); err != nil {
		return Settlement{}, err
	}
	if s.Waits, err = saveEndpoints(ctx, tx, after, batch); err != nil || len(causes) == 0 {
		return s, err
	}
	s.Disabled, err = disableEndpoints(ctx, tx, causes)
	return s, err
}

const postponeDeliveries = `
UPDATE webhooks.deliveries
SET due_at = now() + $2 * interval '1 millisecond'
WHERE project_id = ANY($1) AND state = 'pending' AND due_at > '-infinity' AND due_at <= now()`

// postponeSealed also postpones all other due deliveries of endpoints whose secret cannot
// be opened.
func postponeSealed(ctx context.Context, tx *sqlx.Tx, batch []Outcome) error {
	var ids []string
	for _, o := range batch {
		if o.Unsent {
			ids = append(ids, o.ProjectID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return pgpool.Exec(ctx, tx, "postpone deliveries", postponeDeliveries, pq.Array(ids), unsealWait.Milliseconds())
}

// adjustHealth updates the health of endpoints. It ignores attempts from before the
// endpoint's last reset, and test events.
func adjustHealth(endpoints map[string]webhooks.EndpointRow, batch []Outcome) {
	for _, o := range batch {
		e, known := endpoints[o.ProjectID]
		if !known || o.Resets != e.Resets || o.Event == announce.TestName {
			continue
		}
		s := &e.EndpointHealth
		ended := o.At.Add(o.Took)
		failed := o.Result == Retry || o.Result == Exhausted
		switch {
		case o.Result == Delivered:
			*s = webhooks.EndpointHealth{LastSuccessAt: &ended}
		case failed, o.Unsent && s.LastError != sealedSecret:
			if s.FailingSince == nil {
				s.FailingSince = &o.At
			}
			if s.LastError = o.Err; failed {
				s.ConsecutiveFailures++
			}
		}
		endpoints[o.ProjectID] = e
	}
}

// settleEndpoints also makes the next claim look at the endpoints. If no delivery waits
// beside those under way, the next look is at the end of the lease, as leaseDue would set
// it. To find a waiting delivery it reads one row in the order of leaseDue, past those
// under way, which are at most as many as the cap.
const settleEndpoints = `
UPDATE webhooks.endpoints e
SET in_flight = ARRAY(SELECT f FROM unnest(e.in_flight) f WHERE f <> ALL($2::uuid[])),
	lease_id = CASE WHEN e.in_flight <@ $2 THEN NULL ELSE e.lease_id END,
	leased_until = CASE WHEN e.in_flight <@ $2 THEN NULL ELSE e.leased_until END,
	due_at = CASE
		WHEN NOT (e.enabled AND e.url <> '' AND e.secret <> '') THEN e.due_at
		WHEN (
			SELECT d.due_at
			FROM webhooks.deliveries d
			WHERE d.project_id = e.project_id AND d.state = 'pending' AND d.due_at > '-infinity'
				AND (d.id <> ALL(e.in_flight) OR d.id = ANY($2::uuid[]))
			ORDER BY d.due_at
			LIMIT 1
		) IS NOT NULL THEN least(e.due_at, now())
		WHEN NOT e.in_flight <@ $2 THEN e.leased_until
	END,
	cap = r.cap, consecutive_failures = r.failures, failing_since = r.since, last_error = r.error, last_success_at = r.success,
	new_secret = r.new_secret
FROM json_to_recordset($1) AS r (project_id text, cap integer, failures integer, since timestamptz, error text, success timestamptz, new_secret text)
WHERE e.project_id = r.project_id
RETURNING coalesce(e.due_at <= now(), false)`

// settledEndpoint is an endpoint as settleEndpoints takes it.
type settledEndpoint struct {
	ProjectID string     `json:"project_id"`
	Cap       int        `json:"cap"`
	Failures  int        `json:"failures"`
	Since     *time.Time `json:"since"`
	Error     string     `json:"error"`
	Success   *time.Time `json:"success"`
	NewSecret string     `json:"new_secret"`
}

// saveEndpoints writes the endpoints, and says whether one of them is due now.
func saveEndpoints(ctx context.Context, tx *sqlx.Tx, after map[string]webhooks.EndpointRow, batch []Outcome) (waits bool, err error) {
	if len(batch) == 0 {
		return false, nil
	}
	var endpoints []settledEndpoint
	for id, e := range after {
		endpoints = append(endpoints, settledEndpoint{
			ProjectID: id, Cap: e.Cap, NewSecret: e.NewSecret,
			Failures: e.ConsecutiveFailures, Since: e.FailingSince, Error: e.LastError, Success: e.LastSuccessAt,
		})
	}
	due, err := pgpool.List[bool](ctx, tx, "the endpoints that were settled", settleEndpoints, pgpool.Rows(endpoints),
		pq.Array(webhooks.Distinct(batch, func(o Outcome) string { return o.ID })))
	return slices.Contains(due, true), err
}

// disableEndpointsSQL gives as the reason the errors of the delivery's failed attempts,
// each once, in the order of their first occurrence. The last error alone may be a mere
// symptom, such as a time-out after three refused certificates.
const disableEndpointsSQL = `
WITH failed AS (
	SELECT c.project_id, a.error, a.attempt, d.failures,
		row_number() OVER (PARTITION BY c.project_id ORDER BY a.attempt DESC) AS back
	FROM json_to_recordset($1) AS c (project_id text, delivery_id uuid)
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
	FROM json_to_recordset($1) AS c (project_id text, delivery_id uuid)
	LEFT JOIN met m USING (project_id)
	GROUP BY c.project_id, c.delivery_id
)
UPDATE webhooks.endpoints e
SET enabled = false, announced = false, disabled_by = c.delivery_id, disabled_reason = c.reason, due_at = NULL
FROM cause c
WHERE e.project_id = c.project_id AND e.enabled
RETURNING e.project_id, e.disabled_by, e.disabled_reason`

// disableEndpoints switches endpoints off because of deliveries, both by project.
func disableEndpoints(ctx context.Context, tx *sqlx.Tx, causes map[string]string) ([]webhooks.EndpointRow, error) {
	type cause struct {
		ProjectID  string `json:"project_id"`
		DeliveryID string `json:"delivery_id"`
	}
	var list []cause
	for project, delivery := range causes {
		list = append(list, cause{project, delivery})
	}
	disabled, err := pgpool.List[webhooks.EndpointRow](ctx, tx, "the endpoints that were disabled", disableEndpointsSQL, pgpool.Rows(list))
	if err != nil {
		return nil, err
	}
	return disabled, pgpool.Exec(ctx, tx, "hold deliveries", webhooks.HoldDeliveries, pq.Array(slices.Collect(maps.Keys(causes))))
}

package webhooks

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/project"
)

// lockConcerned locks the endpoints that get something: a project's own events
// always do, those of its jobs only where there is a URL.
const lockConcerned = `
SELECT ` + endpointColumns + `
FROM webhooks.endpoints
WHERE project_id = ANY($1) AND (url <> '' OR project_id = ANY($2))
ORDER BY project_id
FOR UPDATE`

// plan is what the steps, walked in the log's order, lead to.
type plan struct {
	endpoints map[string]*endpoint
	changed   []string // project ids
	hold      []string // project ids
	rotated   []string // project ids
	rows      []row
}

// row is a new delivery.
type row struct {
	step
	id    uuid.UUID
	state string
}

func (s *Subscriber) write(ctx context.Context, tx *sqlx.Tx, steps []step) error {
	erased := distinct(steps, func(st step) string { return st.erased })
	steps = slices.DeleteFunc(slices.Clone(steps), func(st step) bool { return st.erased != "" })
	if err := s.writeSteps(ctx, tx, steps); err != nil {
		return err
	}
	// Last: what an account's events led to was written by then, and its projects
	// have no webhook any more.
	for _, accountID := range erased {
		if accountID == "" {
			continue
		}
		for _, query := range []string{eraseDeliveries, eraseEndpoints} {
			if _, err := tx.ExecContext(ctx, query, accountID); err != nil {
				return fmt.Errorf("erase the webhooks of account %s: %w", accountID, err)
			}
		}
	}
	return nil
}

const eraseDeliveries = `
DELETE FROM webhooks.deliveries d
USING webhooks.endpoints e
WHERE e.project_id = d.project_id AND e.account_id = $1`

const eraseEndpoints = `
UPDATE webhooks.endpoints
SET secret = '', previous_secret = '', last_error = '', disabled_reason = ''
WHERE account_id = $1`

func (s *Subscriber) writeSteps(ctx context.Context, tx *sqlx.Tx, steps []step) error {
	own := slices.Clone(steps)
	own = slices.DeleteFunc(own, func(st step) bool { return st.body != nil })
	byProject := func(st step) string { return st.projectID }
	var current []endpoint
	err := tx.SelectContext(ctx, &current, lockConcerned,
		pq.Array(distinct(steps, byProject)), pq.Array(distinct(own, byProject)))
	if err != nil {
		return fmt.Errorf("lock endpoints: %w", err)
	}
	p := walk(current, steps)
	for _, id := range p.changed {
		if err := saveEndpoint(ctx, tx, p.endpoints[id]); err != nil {
			return err
		}
	}
	if len(p.hold) > 0 {
		if _, err := tx.ExecContext(ctx, holdDeliveries, pq.Array(p.hold)); err != nil {
			return fmt.Errorf("hold deliveries: %w", err)
		}
	}
	if len(p.rotated) > 0 {
		if _, err := tx.ExecContext(ctx, startAfresh, pq.Array(p.rotated)); err != nil {
			return fmt.Errorf("start deliveries afresh: %w", err)
		}
	}
	touched := distinct(append(distinct(p.rows, func(r row) string { return r.projectID }), p.changed...), func(id string) string { return id })
	switch {
	case len(p.rows) > 0:
		return s.insertRows(ctx, tx, p, touched)
	case len(touched) > 0:
		return poke(ctx, tx, touched)
	}
	return nil
}

// walk folds the steps in their order: an event meets the endpoint as it stood
// then, so a new endpoint hears only of what came after it.
func walk(current []endpoint, steps []step) plan {
	p := plan{endpoints: make(map[string]*endpoint, len(current))}
	for i := range current {
		p.endpoints[current[i].ProjectID] = &current[i]
	}
	for _, st := range steps {
		e := p.endpoints[st.projectID]
		if st.body == nil {
			if e == nil {
				e = &endpoint{ProjectID: st.projectID, AccountID: st.Meta.AccountID, Enabled: true, Announced: true}
				p.endpoints[st.projectID] = e
			}
			p.settings(e, st)
			continue
		}
		if e == nil || !e.wants(st.kind) {
			continue
		}
		r := row{step: st, id: deliveryID(st.projectID, st.ID), state: "pending"}
		if !e.Enabled {
			r.state = "held"
		}
		p.rows = append(p.rows, r)
	}
	return p
}

// changes says whether a project's settings are other ones now.
func (p *plan) changes(projectID string) bool { return slices.Contains(p.changed, projectID) }

func (p *plan) settings(e *endpoint, st step) {
	changed, hold := e.apply(st.Event)
	if changed && !p.changes(st.projectID) {
		p.changed = append(p.changed, st.projectID)
	}
	if _, rotated := st.Event.(*project.SecretSet); rotated {
		p.rotated = append(p.rotated, st.projectID)
	}
	if !hold {
		return
	}
	p.hold = append(p.hold, st.projectID)
	for i := range p.rows {
		if p.rows[i].projectID == st.projectID {
			p.rows[i].state = "held"
		}
	}
}

// deliveryID is the id of the one delivery of an event to an endpoint.
func deliveryID(projectID string, event uuid.UUID) uuid.UUID {
	return domain.DeriveID(event, "webhook of "+projectID)
}

const upsertEndpoint = `
INSERT INTO webhooks.endpoints AS e (project_id, account_id, url, events, secret, previous_secret, previous_until, new_secret,
	generation, enabled, disabled_by, disabled_reason, announced, cap,
	consecutive_failures, failing_since, last_error, last_success_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
ON CONFLICT (project_id) DO UPDATE
SET url = excluded.url, events = excluded.events, secret = excluded.secret,
	previous_secret = excluded.previous_secret, previous_until = excluded.previous_until, new_secret = excluded.new_secret,
	generation = excluded.generation, enabled = excluded.enabled, disabled_by = excluded.disabled_by,
	disabled_reason = excluded.disabled_reason, announced = excluded.announced, cap = excluded.cap,
	consecutive_failures = excluded.consecutive_failures, failing_since = excluded.failing_since,
	last_error = excluded.last_error, last_success_at = excluded.last_success_at,
	due_at = NULL`

func saveEndpoint(ctx context.Context, tx *sqlx.Tx, e *endpoint) error {
	_, err := tx.ExecContext(ctx, upsertEndpoint, e.ProjectID, e.AccountID, e.URL, e.Events, e.Secret, e.PreviousSecret,
		e.PreviousUntil, e.NewSecret, e.Resets, e.Enabled, e.DisabledBy, e.DisabledReason, e.Announced, e.Cap,
		e.ConsecutiveFailures, e.FailingSince, e.LastError, e.LastSuccessAt)
	if err != nil {
		return fmt.Errorf("save the endpoint of project %s: %w", e.ProjectID, err)
	}
	return nil
}

// insertDeliveries also pokes: a delivery waits for each round trip.
const insertDeliveries = `
WITH ` + inserted + `, ` + poked + wakeDispatchers

const inserted = `inserted AS (
	INSERT INTO webhooks.deliveries (id, project_id, event_id, event, ordering_key, revision, body, state)
	SELECT *
	FROM unnest($2::uuid[], $3::text[], $4::uuid[], $5::text[], $6::text[], $7::bigint[], $8::bytea[], $9::text[])
	ON CONFLICT (id) DO NOTHING
	RETURNING id
)`

// newRows are rows as insertDeliveries takes them.
type newRows struct {
	ids, projects, events, kinds, keys, states []string
	revisions                                  []int64
	bodies                                     [][]byte
}

func columnsOf(rows []row) (n newRows) {
	for _, r := range rows {
		n.ids = append(n.ids, r.id.String())
		n.projects = append(n.projects, r.projectID)
		n.events = append(n.events, r.ID.String())
		n.kinds = append(n.kinds, r.kind.Name)
		n.keys = append(n.keys, r.orderingKey())
		n.revisions = append(n.revisions, int64(r.Revision))
		n.bodies = append(n.bodies, r.body)
		n.states = append(n.states, r.state)
	}
	return n
}

func (n newRows) args(touched []string) []any {
	return []any{
		pq.Array(touched), pq.Array(n.ids), pq.Array(n.projects), pq.Array(n.events), pq.Array(n.kinds),
		pq.Array(n.keys), pq.Array(n.revisions), pq.Array(n.bodies), pq.Array(n.states),
	}
}

// insertRows writes new deliveries. What may go at once is handed over, and what
// waits is looked at by the next claim.
func (s *Subscriber) insertRows(ctx context.Context, tx *sqlx.Tx, p plan, touched []string) error {
	n := columnsOf(p.rows)
	if s.to != nil {
		if offered := s.to.offer(p); len(offered) > 0 {
			return s.to.hand(ctx, tx, n, touched, p, offered)
		}
	}
	if _, err := tx.ExecContext(ctx, insertDeliveries, n.args(touched)...); err != nil {
		return fmt.Errorf("insert deliveries: %w", err)
	}
	return nil
}

// orderingKey is the stream: what it tells goes out in order. An event of the
// whole account may go to several projects, and none waits for another's.
func (r row) orderingKey() string {
	if r.kind.OfAccount {
		return r.Stream + " for " + r.projectID
	}
	return r.Stream
}

package webhooks

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/project"
	"humanqa/internal/pgpool"
)

// lockConcerned locks the endpoints that the batch concerns: by a project's own events
// always, by those of its jobs only where there is a URL.
const lockConcerned = `
SELECT ` + EndpointColumns + `
FROM webhooks.endpoints
WHERE project_id = ANY($1) AND (url <> '' OR project_id = ANY($2))
ORDER BY project_id
FOR UPDATE`

// batchPlan has the changes that the steps of a batch lead to.
type batchPlan struct {
	endpoints map[string]*EndpointRow
	changed   []string // project ids
	hold      []string // project ids
	rotated   []string // project ids
	rows      []NewDelivery
}

func (s *Subscriber) writeBatch(ctx context.Context, tx *sqlx.Tx, steps []step) error {
	told := slices.DeleteFunc(slices.Clone(steps), func(st step) bool { return st.erase != nil })
	if err := s.writeSteps(ctx, tx, told); err != nil {
		return err
	}
	// This comes last: the deliveries of the other events are written then, and the projects
	// of an account have no webhook any more.
	for _, st := range steps {
		for _, query := range st.erase {
			if err := pgpool.Exec(ctx, tx, "erase the deliveries of "+st.erased, query, st.erased); err != nil {
				return err
			}
		}
	}
	return nil
}

// eraseBodies keeps of a job's deliveries only their times and results. It drops
// deliveries that still wait, because their bytes hold the texts.
const eraseBodies = `
WITH emptied AS (
	UPDATE webhooks.deliveries
	SET body = '{"erased":true}',
		settled_at = COALESCE(settled_at, now()),
		state = CASE WHEN state = 'delivered' THEN state ELSE 'dropped' END
	WHERE ordering_key = $1
	RETURNING id
)
UPDATE webhooks.attempts a
SET response = ''
FROM emptied e
WHERE a.delivery_id = e.id`

const eraseDeliveries = `
DELETE FROM webhooks.deliveries d
USING webhooks.endpoints e
WHERE e.project_id = d.project_id AND e.account_id = $1`

const eraseEndpoints = `
UPDATE webhooks.endpoints
SET secret = '', previous_secret = '', headers = '[]', last_error = '', disabled_reason = ''
WHERE account_id = $1`

func (s *Subscriber) writeSteps(ctx context.Context, tx *sqlx.Tx, steps []step) error {
	own := slices.DeleteFunc(slices.Clone(steps), func(st step) bool { return st.body != nil })
	byProject := func(st step) string { return st.projectID }
	current, err := pgpool.List[EndpointRow](ctx, tx, "the endpoints of a batch", lockConcerned,
		pq.Array(Distinct(steps, byProject)), pq.Array(Distinct(own, byProject)))
	if err != nil {
		return err
	}
	p := foldSteps(current, steps)
	for _, id := range p.changed {
		if _, err := tx.NamedExecContext(ctx, upsertEndpoint, p.endpoints[id]); err != nil {
			return fmt.Errorf("save the endpoint of project %s: %w", id, err)
		}
	}
	if len(p.hold) > 0 {
		if err := pgpool.Exec(ctx, tx, "hold deliveries", HoldDeliveries, pq.Array(p.hold)); err != nil {
			return err
		}
	}
	if len(p.rotated) > 0 {
		if err := pgpool.Exec(ctx, tx, "start deliveries afresh", startAfresh, pq.Array(p.rotated)); err != nil {
			return err
		}
	}
	touched := Distinct(append(Distinct(p.rows, func(d NewDelivery) string { return d.ProjectID }), p.changed...),
		func(id string) string { return id })
	switch {
	case len(p.rows) > 0:
		return s.insertRows(ctx, tx, p, touched)
	case len(touched) > 0:
		return scheduleEndpoints(ctx, tx, touched)
	}
	return nil
}

// foldSteps folds the steps in their order. Each event meets the endpoint of that time,
// so a new endpoint gets only later events.
func foldSteps(current []EndpointRow, steps []step) batchPlan {
	p := batchPlan{endpoints: make(map[string]*EndpointRow, len(current))}
	for i := range current {
		p.endpoints[current[i].ProjectID] = &current[i]
	}
	for _, st := range steps {
		e := p.endpoints[st.projectID]
		if st.body == nil {
			if e == nil {
				e = &EndpointRow{ProjectID: st.projectID, AccountID: st.Meta.AccountID, Enabled: true, Announced: true}
				p.endpoints[st.projectID] = e
			}
			p.applySettings(e, st)
			continue
		}
		if e == nil || !e.wantsKind(st.kind) {
			continue
		}
		d := NewDelivery{
			ID: deliveryID(st.projectID, st.ID).String(), ProjectID: st.projectID, EventID: st.ID.String(), Event: st.kind.Name,
			OrderingKey: st.orderingKey(), Revision: st.Revision, Body: string(st.body), State: StatePending,
			RequestID: st.Meta.CorrelationID, Trace: st.Meta.Trace, Endpoint: e,
		}
		if !e.Enabled {
			d.State = StateHeld
		}
		p.rows = append(p.rows, d)
	}
	return p
}

// changesSettings says whether the batch changes a project's settings.
func (p *batchPlan) changesSettings(projectID string) bool {
	return slices.Contains(p.changed, projectID)
}

func (p *batchPlan) applySettings(e *EndpointRow, st step) {
	changed, hold := e.applyEvent(st.Event)
	if changed && !p.changesSettings(st.projectID) {
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
		if p.rows[i].ProjectID == st.projectID {
			p.rows[i].State = StateHeld
		}
	}
}

// HoldDeliveries leaves running attempts their leases: a success still counts.
// A test event is about the endpoint as it was: it is never held.
const HoldDeliveries = `
UPDATE webhooks.deliveries
SET state = CASE WHEN event = '` + announce.TestName + `' THEN 'dropped' ELSE 'held' END,
	settled_at = CASE WHEN event = '` + announce.TestName + `' THEN now() END
WHERE project_id = ANY($1) AND state = 'pending' AND due_at > '-infinity'`

// startAfresh gives waiting deliveries all their attempts again. The earlier attempts
// were made with one secret, and the last attempt must not be the only one with two
// secrets.
const startAfresh = `
UPDATE webhooks.deliveries
SET failures = 0
WHERE project_id = ANY($1) AND state = 'pending' AND due_at > '-infinity' AND failures > 0`

// deliveryID is the id of the one delivery of an event to an endpoint.
func deliveryID(projectID string, event uuid.UUID) uuid.UUID {
	return domain.DeriveID(event, "webhook of "+projectID)
}

const upsertEndpoint = `
INSERT INTO webhooks.endpoints AS e (project_id, account_id, url, events, secret, previous_secret, previous_until, new_secret,
	generation, enabled, disabled_by, disabled_reason, announced, cap,
	consecutive_failures, failing_since, last_error, last_success_at, headers, headers_origin)
VALUES (:project_id, :account_id, :url, :events, :secret, :previous_secret, :previous_until, :new_secret,
	:generation, :enabled, :disabled_by, :disabled_reason, :announced, :cap,
	:consecutive_failures, :failing_since, :last_error, :last_success_at, :headers, :headers_origin)
ON CONFLICT (project_id) DO UPDATE
SET url = excluded.url, events = excluded.events, secret = excluded.secret,
	previous_secret = excluded.previous_secret, previous_until = excluded.previous_until, new_secret = excluded.new_secret,
	generation = excluded.generation, enabled = excluded.enabled, disabled_by = excluded.disabled_by,
	disabled_reason = excluded.disabled_reason, announced = excluded.announced, cap = excluded.cap,
	consecutive_failures = excluded.consecutive_failures, failing_since = excluded.failing_since,
	last_error = excluded.last_error, last_success_at = excluded.last_success_at,
	headers = excluded.headers, headers_origin = excluded.headers_origin,
	due_at = NULL`

// NewDelivery is a delivery as insertDeliveries takes it.
type NewDelivery struct {
	ID          string `json:"id"`
	ProjectID   string `json:"project_id"`
	EventID     string `json:"event_id"`
	Event       string `json:"event"`
	OrderingKey string `json:"ordering_key"`
	Revision    uint64 `json:"revision"`
	Body        string `json:"body"` // JSON, so text
	State       string `json:"state"`
	Offered     bool   `json:"offered"` // for direct dispatch
	// RequestID and Trace are of the request that led to the event; either may be empty.
	RequestID string `json:"request_id"`
	Trace     string `json:"trace"`

	Endpoint *EndpointRow `json:"-"` // as it is locked
}

// orderingKey is the stream, so its deliveries go out in order. An event of the whole
// account may go to several projects, and the delivery for one project waits for no other
// project.
func (st step) orderingKey() string {
	if st.kind.OfAccount {
		return st.Stream + " for " + st.projectID
	}
	return st.Stream
}

// Distinct gives the different keys of a list, in order of appearance.
func Distinct[T any](list []T, key func(T) string) []string {
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

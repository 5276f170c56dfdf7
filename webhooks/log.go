package webhooks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

// The states of a delivery. A held one belongs to an endpoint that was
// disabled or cleared; it waits to be replayed or dropped.
const (
	StatePending   = "pending"
	StateHeld      = "held"
	StateDelivered = "delivered"
	StateFailed    = "failed"
	StateDropped   = "dropped"
)

// Log is the record of all deliveries and their attempts. The account comes
// first in every question: what belongs to another one does not exist.
type Log struct {
	db *sqlx.DB
}

// NewLog opens the record.
func NewLog(db *sqlx.DB) *Log { return &Log{db: db} }

// Delivery is one event on its way to one endpoint.
type Delivery struct {
	ID         uuid.UUID     `db:"id"`
	ProjectID  string        `db:"project_id"`
	EventID    uuid.UUID     `db:"event_id"`
	Event      string        `db:"event"`
	Stream     string        `db:"ordering_key"`
	State      string        `db:"state"`
	Attempts   int           `db:"attempts"`
	DueAt      time.Time     `db:"due_at"` // of a pending one
	LastStatus sql.NullInt64 `db:"last_status"`
	LastError  string        `db:"last_error"`
	CreatedAt  time.Time     `db:"created_at"`
	SettledAt  sql.NullTime  `db:"settled_at"`
}

// Attempt is one request of a delivery. Without a status there was no answer.
type Attempt struct {
	Attempt    int           `db:"attempt"`
	At         time.Time     `db:"at"`
	DurationMS int           `db:"duration_ms"`
	URL        string        `db:"url"`
	Status     sql.NullInt64 `db:"status"`
	Error      string        `db:"error"`    // empty: success
	Response   string        `db:"response"` // how the answer's body begins
}

// DeliveryFilter narrows a list; empty fields don't.
type DeliveryFilter struct {
	State  string
	JobID  string
	Limit  int // 1 to 100; else 20
	Offset int
}

const listDeliveries = `
SELECT d.id, d.project_id, d.event_id, d.event, d.ordering_key, d.state, d.attempts, d.due_at,
	d.last_status, d.last_error, d.created_at, d.settled_at
FROM webhooks.endpoints e
JOIN webhooks.deliveries d ON d.project_id = e.project_id
WHERE e.account_id = $1 AND e.project_id = $2
	AND ($3 = '' OR d.state = $3)
	AND ($4 = '' OR d.ordering_key = $4)
ORDER BY d.created_at DESC, d.id DESC
LIMIT $5 OFFSET $6`

// Deliveries lists a project's deliveries, the newest first.
func (l *Log) Deliveries(ctx context.Context, accountID, projectID string, f DeliveryFilter) ([]Delivery, error) {
	if f.Limit < 1 || f.Limit > 100 {
		f.Limit = 20
	}
	stream := ""
	if f.JobID != "" {
		stream = domain.JobStream(f.JobID)
	}
	list := []Delivery{}
	if err := l.db.SelectContext(ctx, &list, listDeliveries, accountID, projectID, f.State, stream, f.Limit, max(0, f.Offset)); err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	return list, nil
}

const readBody = `
SELECT d.body
FROM webhooks.endpoints e
JOIN webhooks.deliveries d ON d.project_id = e.project_id
WHERE e.account_id = $1 AND e.project_id = $2 AND d.id = $3`

// Body gives the bytes that every attempt of a delivery sends.
func (l *Log) Body(ctx context.Context, accountID, projectID string, id uuid.UUID) ([]byte, error) {
	var body []byte
	err := l.db.GetContext(ctx, &body, readBody, accountID, projectID, id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, domain.NotFound("delivery")
	}
	if err != nil {
		return nil, fmt.Errorf("read a delivery: %w", err)
	}
	return body, nil
}

const listAttempts = `
SELECT a.attempt, a.at, a.duration_ms, a.url, a.status, a.error, a.response
FROM webhooks.endpoints e
JOIN webhooks.deliveries d ON d.project_id = e.project_id
JOIN webhooks.attempts a ON a.delivery_id = d.id
WHERE e.account_id = $1 AND e.project_id = $2 AND d.id = $3
ORDER BY a.attempt`

// Attempts lists the attempts of a delivery, the first one first.
func (l *Log) Attempts(ctx context.Context, accountID, projectID string, id uuid.UUID) ([]Attempt, error) {
	list := []Attempt{}
	if err := l.db.SelectContext(ctx, &list, listAttempts, accountID, projectID, id); err != nil {
		return nil, fmt.Errorf("list attempts: %w", err)
	}
	return list, nil
}

const lockOwn = `
SELECT *
FROM webhooks.endpoints
WHERE account_id = $1 AND project_id = $2
FOR UPDATE`

// chosen are the deliveries that can be replayed or dropped: none that an
// attempt is running for.
const chosen = `
WHERE project_id = $1 AND state = ANY($2) AND ($3::uuid[] IS NULL OR id = ANY($3))
	AND (lease_id IS NULL OR due_at <= now())`

const replayDeliveries = `
UPDATE webhooks.deliveries
SET state = 'pending', due_at = now(), failures = 0, lease_id = NULL, settled_at = NULL` + chosen

const dropDeliveries = `
UPDATE webhooks.deliveries
SET state = 'dropped', lease_id = NULL, settled_at = now()` + chosen

// Replay sends held deliveries, all of them when none is named, and named ones
// that failed. Their ids and bytes stay. It answers how many; a delivery in
// another state, or with a request under way, is not counted. The endpoint
// must be enabled.
func (l *Log) Replay(ctx context.Context, accountID, projectID string, ids ...uuid.UUID) (int, error) {
	states := []string{StateHeld}
	if len(ids) > 0 {
		states = append(states, StateFailed)
	}
	return l.change(ctx, accountID, projectID, replayDeliveries, states, ids, func(e endpoint) error {
		if e.URL == "" || !e.Enabled {
			return domain.Conflict("the webhook is not enabled").WithHint("enable it, then replay")
		}
		return nil
	})
}

// Drop gives up on held deliveries, all of them when none is named. It answers
// how many.
func (l *Log) Drop(ctx context.Context, accountID, projectID string, ids ...uuid.UUID) (int, error) {
	return l.change(ctx, accountID, projectID, dropDeliveries, []string{StateHeld}, ids, func(endpoint) error { return nil })
}

func (l *Log) change(ctx context.Context, accountID, projectID, query string, states []string, ids []uuid.UUID, allowed func(endpoint) error) (changed int, err error) {
	var named []string // nil: all
	for _, id := range ids {
		named = append(named, id.String())
	}
	err = pgpool.InTx(ctx, l.db, func(tx *sqlx.Tx) error {
		var e endpoint
		err := tx.GetContext(ctx, &e, lockOwn, accountID, projectID)
		if errors.Is(err, sql.ErrNoRows) {
			return domain.NotFound("project")
		}
		if err != nil {
			return fmt.Errorf("lock the endpoint: %w", err)
		}
		if err := allowed(e); err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, query, projectID, pq.Array(states), pq.Array(named))
		if err != nil {
			return fmt.Errorf("change deliveries: %w", err)
		}
		n, err := done.RowsAffected()
		if err != nil {
			return fmt.Errorf("change deliveries: %w", err)
		}
		changed = int(n)
		if err := poke(ctx, tx, []string{projectID}); err != nil {
			return err
		}
		return notify(ctx, tx)
	})
	if err != nil {
		return 0, err
	}
	return changed, nil
}

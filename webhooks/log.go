package webhooks

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/internal/cursor"
	"humanqa/internal/pgpool"
	"humanqa/internal/signature"
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

// States lists them.
func States() []string {
	return []string{StatePending, StateDelivered, StateFailed, StateHeld, StateDropped}
}

// Log is the record of all deliveries and their attempts. The account comes first in
// every query: rows of another account do not exist for it.
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
	Sending    bool          `db:"sending"`
	LastStatus sql.NullInt64 `db:"last_status"`
	LastError  string        `db:"last_error"`
	CreatedAt  time.Time     `db:"created_at"`
}

// JobID is the job that the event is about; empty for events about none.
func (d Delivery) JobID() string {
	id, _ := strings.CutPrefix(d.Stream, domain.JobStreams)
	if id == d.Stream {
		return ""
	}
	return id
}

// NextAttemptAt is when a pending delivery is sent next; nil while a request is
// under way, and for all others.
func (d Delivery) NextAttemptAt() *time.Time {
	if d.State != StatePending || d.Sending {
		return nil
	}
	return &d.DueAt
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
	Signature  string        `db:"signature"`
	Standard   string        `db:"standard_signature"`
}

// DeliveryDetail is a delivery with the bytes that every attempt sends, and its attempts,
// the first one first.
type DeliveryDetail struct {
	Delivery
	AccountID string    `db:"account_id"`
	Body      []byte    `db:"body"`
	RequestID string    `db:"request_id"`
	Attempts  []Attempt `db:"-"`
}

// Headers are the headers of an attempt, without those that HTTP itself adds.
func (w DeliveryDetail) Headers(a Attempt) []signature.Header {
	return signature.Headers(w.Event, w.ID.String(), w.RequestID, a.At, signature.Pair{Service: a.Signature, Standard: a.Standard})
}

// DeliveryFilter narrows a list; empty fields don't.
type DeliveryFilter struct {
	State string
	Event string
	JobID string
	Limit int    // 1 to 100; else 20
	After string // a cursor; the page follows it
}

// IsCursor says whether a text is a cursor; the empty text stands for the list's
// beginning.
func IsCursor(text string) bool {
	_, err := cursor.Parse(text)
	return err == nil
}

// underWay holds for a delivery d of an endpoint e while a request is running.
const underWay = `coalesce(e.leased_until > now() AND d.id = ANY(e.in_flight), false)`

const deliveryColumns = `d.id, d.project_id, d.event_id, d.event, d.ordering_key, d.state, d.attempts, d.due_at,
	` + underWay + ` AS sending, d.last_status, d.last_error, d.created_at`

const listDeliveries = `
SELECT ` + deliveryColumns + `
FROM webhooks.endpoints e
JOIN webhooks.deliveries d ON d.project_id = e.project_id
WHERE e.account_id = $1 AND e.project_id = $2%s
ORDER BY d.created_at DESC, d.id DESC
LIMIT $3`

// Deliveries lists a project's deliveries, the newest first. next is the cursor of the
// next page; empty at the end. A text that is no cursor (IsCursor) gives the list's
// beginning.
func (l *Log) Deliveries(ctx context.Context, accountID, projectID string, f DeliveryFilter) (list []Delivery, next string, err error) {
	if f.Limit < 1 || f.Limit > 100 {
		f.Limit = 20
	}
	narrowed, args := f.conditions([]any{accountID, projectID, f.Limit + 1})
	list, err = pgpool.List[Delivery](ctx, l.db, "the deliveries of a project", fmt.Sprintf(listDeliveries, narrowed), args...)
	if len(list) > f.Limit {
		list = list[:f.Limit]
		last := list[f.Limit-1]
		next = cursor.Cursor{At: last.CreatedAt, ID: last.ID.String()}.String()
	}
	return list, next, err
}

// conditions gives the filter's conditions, and the arguments with theirs. Unused
// conditions are left out of the statement, because one plan for all filters finds the
// rare rows of no filter quickly. A state is spelled out, because some indexes are
// partial by state.
func (f DeliveryFilter) conditions(args []any) (conditions string, all []any) {
	condition := func(format string, more ...any) {
		places := make([]any, len(more))
		for i := range more {
			places[i] = len(args) + 1 + i
		}
		conditions += "\n\tAND " + fmt.Sprintf(format, places...)
		args = append(args, more...)
	}
	switch {
	case f.State == "":
	case f.State == StatePending:
		condition("d.state = 'pending' AND d.due_at > '-infinity'") // isNext tells why
	case slices.Contains(States(), f.State):
		condition("d.state = '" + f.State + "'")
	default:
		condition("false")
	}
	if f.Event != "" {
		condition("d.event = $%d", f.Event)
	}
	if f.JobID != "" {
		condition("d.ordering_key = $%d", domain.JobStream(f.JobID))
	}
	if after, err := cursor.Parse(f.After); err == nil && !after.IsBeginning() {
		condition("(d.created_at, d.id) < ($%d, $%d)", after.At, after.ID)
	}
	return conditions, args
}

const listDays = `
SELECT day, k.delivered, k.failed, k.open
FROM generate_series(date_trunc('day', now(), 'UTC') - $3 * interval '24 hours', now(), interval '24 hours') AS day
CROSS JOIN LATERAL (
	SELECT count(*) FILTER (WHERE d.state = 'delivered') AS delivered,
		count(*) FILTER (WHERE d.state IN ('held', 'failed')) AS failed,
		count(*) FILTER (WHERE d.state = 'pending') AS open
	FROM webhooks.endpoints e
	JOIN webhooks.deliveries d ON d.project_id = e.project_id
	WHERE e.account_id = $1 AND e.project_id = $2 AND d.created_at >= day AND d.created_at < day + interval '24 hours'
) k
ORDER BY day`

// Day is the number of deliveries of the events of a day (UTC).
type Day struct {
	At        time.Time `db:"day"`
	Delivered int       `db:"delivered"`
	Failed    int       `db:"failed"` // or held
	Open      int       `db:"open"`
}

// Days sums a project's deliveries of each of the last days. Today comes last.
func (l *Log) Days(ctx context.Context, accountID, projectID string, days int) ([]Day, error) {
	return pgpool.List[Day](ctx, l.db, "the deliveries of each day", listDays, accountID, projectID, days-1)
}

// The project may be empty: a page finds a delivery by its id alone.
const readDelivery = `
SELECT ` + deliveryColumns + `, e.account_id, d.body, d.request_id
FROM webhooks.deliveries d
JOIN webhooks.endpoints e ON e.project_id = d.project_id
WHERE e.account_id = $1 AND ($2 = '' OR e.project_id = $2) AND d.id = $3`

const listAttempts = `
SELECT attempt, at, duration_ms, url, status, error, response, signature, standard_signature
FROM webhooks.attempts
WHERE delivery_id = $1
ORDER BY attempt`

// Delivery gives one delivery with all its details: of the project, or, with an empty
// project, of any project of the account.
func (l *Log) Delivery(ctx context.Context, accountID, projectID string, id uuid.UUID) (DeliveryDetail, error) {
	w, err := pgpool.FindOr[DeliveryDetail](ctx, l.db, domain.NotFound("delivery"),
		"a delivery", readDelivery, accountID, projectID, id)
	if err != nil {
		return DeliveryDetail{}, err
	}
	w.Attempts, err = pgpool.List[Attempt](ctx, l.db, "the attempts of a delivery", listAttempts, id)
	return w, err
}

// Health is the health of a project's webhook.
type Health struct {
	ProjectID string `db:"project_id"`
	URL       string `db:"url"`
	Enabled   bool   `db:"enabled"`
	EndpointHealth
	// PreviousUntil is the end of the time in which the previous secret signs too; nil:
	// it does not sign.
	PreviousUntil *time.Time `db:"previous_until"`
	Held          int        `db:"held"`   // waiting for a replay or a drop
	Failed        int        `db:"failed"` // given up after the last retry
}

// The states of a webhook's health.
const (
	HealthOK       = "ok"
	HealthFailing  = "failing"  // the latest attempts failed, or cannot be signed; it is not disabled yet
	HealthDisabled = "disabled" // nothing is sent until it is enabled again
)

// Status is the state of the webhook's health.
func (h Health) Status() string {
	switch {
	case !h.Enabled:
		return HealthDisabled
	case h.FailingSince != nil:
		return HealthFailing
	}
	return HealthOK
}

const readHealth = `
SELECT e.project_id, e.url, e.enabled, e.consecutive_failures, e.failing_since, e.last_error, e.last_success_at,
	CASE WHEN e.previous_until > now() THEN e.previous_until END AS previous_until, k.held, k.failed
FROM webhooks.endpoints e
CROSS JOIN LATERAL (
	SELECT count(*) FILTER (WHERE state = 'held') AS held,
		count(*) FILTER (WHERE state = 'failed') AS failed
	FROM webhooks.deliveries d
	WHERE d.project_id = e.project_id AND d.state IN ('held', 'failed') AND ` + noTest + `
) k
WHERE e.account_id = $1 AND e.project_id = ANY($2)`

// Health gives the health of projects' webhooks, by project. A project that the
// subscriber has not seen yet is missing.
func (l *Log) Health(ctx context.Context, accountID string, projectIDs ...string) (map[string]Health, error) {
	byProject := func(h Health) string { return h.ProjectID }
	return pgpool.By(ctx, l.db, "the health of webhooks", byProject, readHealth, accountID, pq.Array(projectIDs))
}

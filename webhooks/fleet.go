package webhooks

import (
	"context"
	"database/sql"
	"time"

	"humanqa/internal/pgpool"
)

// Endpoint is the state of a project's webhook, as operators see it. It never has the
// path, which may hold a secret, nor the signing secret.
type Endpoint struct {
	ProjectID   string       `db:"project_id"`
	AccountID   string       `db:"account_id"`
	Host        string       `db:"host"`
	Enabled     bool         `db:"enabled"`
	Reason      string       `db:"disabled_reason"`
	Cap         int          `db:"cap"`      // 0: the initial cap
	Failures    int          `db:"failures"` // attempts since the last success
	FailingFrom sql.NullTime `db:"failing_since"`
	LastError   string       `db:"last_error"`
	LastSuccess sql.NullTime `db:"last_success_at"`
	Pending     int          `db:"pending"`
	Kept        int          `db:"kept"`   // held or failed: they wait for a replay or a drop
	Oldest      sql.NullTime `db:"oldest"` // of the pending ones
}

// FailingSince is when it began to fail; the zero time while it does not.
func (e Endpoint) FailingSince() time.Time { return e.FailingFrom.Time.UTC() }

// LastSuccessAt is when it answered last; the zero time: never.
func (e Endpoint) LastSuccessAt() time.Time { return e.LastSuccess.Time.UTC() }

// Fleet is all endpoints in numbers.
type Fleet struct {
	Endpoints int `db:"endpoints"`
	Disabled  int `db:"disabled"`
	Failing   int `db:"failing"`
}

const fleetSQL = `
SELECT COUNT(*) AS endpoints, COUNT(*) FILTER (WHERE NOT enabled) AS disabled,
       COUNT(*) FILTER (WHERE enabled AND consecutive_failures > 0) AS failing
FROM webhooks.endpoints
WHERE url <> ''`

// Ill endpoints come first, the longest ill first. Deliveries are counted only for the
// listed endpoints, and only up to a limit for each.
const listFleetSQL = `
SELECT e.project_id, e.account_id, e.host, e.enabled, e.disabled_reason, e.cap, e.failures, e.failing_since, e.last_error,
       e.last_success_at, p.pending, p.oldest, k.kept
FROM (
    SELECT project_id, account_id, COALESCE(substring(url FROM '^[a-z]+://(?:[^/?#]*@)?([^/?#]*)'), '') AS host, enabled,
           disabled_reason, cap, consecutive_failures AS failures, failing_since, last_error, last_success_at
    FROM webhooks.endpoints
    WHERE url <> ''
      AND ($1 OR NOT enabled OR consecutive_failures > 0)
    ORDER BY enabled, consecutive_failures = 0, failing_since, project_id
    LIMIT $2
    OFFSET $3) e
CROSS JOIN LATERAL (
    SELECT COUNT(*) AS pending, MIN(d.created_at) AS oldest
    FROM (
        SELECT created_at
        FROM webhooks.deliveries
        WHERE project_id = e.project_id
          AND state = 'pending'
        LIMIT 10000) d) p
CROSS JOIN LATERAL (
    SELECT COUNT(*) AS kept
    FROM (
        SELECT
        FROM webhooks.deliveries
        WHERE project_id = e.project_id
          AND state IN ('held', 'failed')
        LIMIT 10000) d) k
ORDER BY e.enabled, e.failures = 0, e.failing_since, e.project_id`

// Fleet lists the webhooks of all accounts: only the ill ones, or all.
func (l *Log) Fleet(ctx context.Context, all bool, limit, offset int) (sum Fleet, endpoints []Endpoint, err error) {
	if sum, err = pgpool.One[Fleet](ctx, l.db, "the number of webhooks", fleetSQL); err != nil {
		return sum, nil, err
	}
	endpoints, err = pgpool.List[Endpoint](ctx, l.db, "webhooks", listFleetSQL, all, limit, offset)
	return sum, endpoints, err
}

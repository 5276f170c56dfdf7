package webhooks

import (
	"context"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/internal/pgpool"
)

// DueChannel is notified once per batch of new work.
const DueChannel = "webhooks_due"

// scheduleEndpointsSQL makes the next claim look at the endpoints, even if none has a due
// delivery. It wakes the dispatchers when the transaction commits.
const scheduleEndpointsSQL = `
WITH scheduled AS (
	UPDATE webhooks.endpoints
	SET due_at = now()
	WHERE project_id = ANY($1::text[]) AND enabled AND url <> '' AND secret <> '' AND (due_at IS NULL OR due_at > now())
)
SELECT pg_notify('` + DueChannel + `', '')`

// scheduleEndpoints must be called, under the endpoints' locks, after each change of
// which of their deliveries are due.
func scheduleEndpoints(ctx context.Context, tx *sqlx.Tx, projectIDs []string) error {
	return pgpool.Exec(ctx, tx, "schedule endpoints", scheduleEndpointsSQL, pq.Array(projectIDs))
}

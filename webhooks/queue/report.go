package queue

import (
	"context"
	"errors"
	"fmt"

	"humanqa/internal/pgpool"
	"humanqa/webhooks"
)

// The rows remember what the log was not told yet, so a crash only delays the event. Each
// list gives what the mark needs to leave a later change of the endpoint alone.
const (
	unannounced = `
SELECT project_id, disabled_by AS about, disabled_reason AS reason
FROM webhooks.endpoints
WHERE NOT announced AND NOT enabled`

	markAnnounced = `
UPDATE webhooks.endpoints
SET announced = true
WHERE project_id = $1 AND disabled_by = $2`

	unconfirmed = `
SELECT project_id, secret AS about
FROM webhooks.endpoints
WHERE new_secret = '` + webhooks.SecretConfirmed + `'`

	markConfirmed = `
UPDATE webhooks.endpoints
SET new_secret = '` + webhooks.SecretAccepted + `'
WHERE project_id = $1 AND secret = $2 AND new_secret = '` + webhooks.SecretConfirmed + `'`
)

// Report tells the log of endpoints that were disabled, and of secrets that receivers
// confirmed. Any goroutine may call it.
func (q *Queue) Report(
	ctx context.Context, disabled func(ctx context.Context, projectID, deliveryID, reason string) error,
	confirmed func(ctx context.Context, projectID, sealed string) error,
) error {
	return errors.Join(
		q.report(ctx, unannounced, markAnnounced, disabled),
		q.report(ctx, unconfirmed, markConfirmed, func(ctx context.Context, projectID, sealed, _ string) error {
			return confirmed(ctx, projectID, sealed)
		}))
}

func (q *Queue) report(
	ctx context.Context, list, mark string, tell func(ctx context.Context, projectID, about, reason string) error,
) (failed error) {
	open, err := pgpool.List[struct {
		ProjectID     string `db:"project_id"`
		About, Reason string
	}](ctx, q.db, "the endpoints to report", list)
	if err != nil {
		return err
	}
	for _, e := range open {
		if err := tell(ctx, e.ProjectID, e.About, e.Reason); err != nil {
			failed = fmt.Errorf("report the webhook of project %s: %w", e.ProjectID, err)
			continue // the others need not wait for this one
		}
		if err := pgpool.Exec(ctx, q.db, "mark a report", mark, e.ProjectID, e.About); err != nil {
			return err
		}
	}
	return failed
}

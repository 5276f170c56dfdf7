package send

import (
	"context"
	"errors"
	"fmt"
	"time"

	"humanqa/webhooks"
)

// reportAgain is the wait after a report that failed.
const reportAgain = 5 * time.Second

const unannounced = `
SELECT project_id, disabled_by, disabled_reason
FROM webhooks.endpoints
WHERE NOT announced AND NOT enabled`

const markAnnounced = `
UPDATE webhooks.endpoints
SET announced = true
WHERE project_id = $1 AND disabled_by = $2`

// reportLoop tells the log about endpoints that were disabled, and about rotations whose
// receivers have the new secret. The rows remember the open reports, so a crash between
// the two only delays the event.
func (d *Dispatcher) reportLoop(ctx context.Context) {
	again := time.NewTimer(d.cfg.Poll)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.reportDue:
		case <-again.C:
		}
		wait := d.cfg.Poll
		if err := errors.Join(d.reportDisabled(ctx), d.reportConfirmed(ctx)); err != nil {
			if ctx.Err() != nil {
				return
			}
			d.log.WithError(err).Warn("the log has not been told of a webhook yet")
			wait = min(wait, reportAgain)
		}
		again.Reset(wait)
	}
}

func (d *Dispatcher) reportDisabled(ctx context.Context) error {
	var disabled []webhooks.EndpointRow
	if err := d.queue.DB.SelectContext(ctx, &disabled, unannounced); err != nil {
		return fmt.Errorf("list disabled endpoints: %w", err)
	}
	var failed error
	for _, e := range disabled {
		if err := d.report.Disabled(ctx, e.ProjectID, e.DisabledBy, e.DisabledReason); err != nil {
			failed = fmt.Errorf("announce that project %s's webhook is disabled: %w", e.ProjectID, err)
			continue // the others need not wait for this one
		}
		if _, err := d.queue.DB.ExecContext(ctx, markAnnounced, e.ProjectID, e.DisabledBy); err != nil {
			return fmt.Errorf("mark an announcement: %w", err)
		}
	}
	return failed
}

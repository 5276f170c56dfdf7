package send

import (
	"context"
	"time"

	"humanqa/webhooks/queue"
)

// reportAgain is the wait after a report that failed.
const reportAgain = 5 * time.Second

// Report has the functions by which the dispatcher reports to the log. Each is called
// again until it returns nil, so a repeat must be harmless.
type Report struct {
	// Disabled says that an endpoint was disabled, with the delivery and the reason.
	Disabled func(ctx context.Context, projectID, deliveryID, reason string) error
	// Confirmed says that the receiver verifies with the new secret of a rotation,
	// sealed as in its event, and no more with the previous one.
	Confirmed func(ctx context.Context, projectID, sealed string) error
}

// reportLoop tells the log about endpoints that were disabled, and about rotations whose
// receivers have the new secret, when a report is due and at each start.
func reportLoop(ctx context.Context, q *queue.Queue, to Report, due <-chan struct{}, cfg Config) {
	for {
		wait := cfg.Poll
		if err := q.Report(ctx, to.Disabled, to.Confirmed); err != nil && ctx.Err() == nil {
			cfg.Log.WithError(err).Warn("the log has not been told of a webhook yet")
			wait = min(wait, reportAgain)
		}
		select {
		case <-ctx.Done():
			return
		case <-due:
		case <-time.After(wait):
		}
	}
}

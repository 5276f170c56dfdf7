package send

import (
	"context"
	"time"

	"humanqa/internal/backoff"
	"humanqa/webhooks/queue"
)

// purgePause between two purges leaves time for the deliveries under way.
const purgePause = 100 * time.Millisecond

// purgeLoop deletes deliveries that were settled Config.Keep ago.
func purgeLoop(ctx context.Context, q *queue.Queue, cfg Config) {
	for wait := time.Duration(0); backoff.Wait(ctx, wait) == nil; {
		wait = cfg.PurgeEvery
		switch more, err := q.Purge(ctx, cfg.Keep); {
		case err != nil && ctx.Err() == nil:
			cfg.Log.WithError(err).Warn("old webhook deliveries stay until the next purge")
		case more:
			wait = purgePause
		}
	}
}

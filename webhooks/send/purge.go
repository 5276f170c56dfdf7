package send

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/internal/backoff"
	"humanqa/webhooks/queue"
)

const (
	// keepSettled is how long delivered and dropped deliveries stay.
	keepSettled = 30 * 24 * time.Hour
	purgeEvery  = time.Hour
	// purgePause, between two purges of a long list, leaves time for the deliveries under way.
	purgePause = 100 * time.Millisecond
)

// purgeLoop deletes deliveries that were settled long ago.
func purgeLoop(ctx context.Context, q *queue.Queue, log logrus.FieldLogger) {
	for wait := time.Duration(0); backoff.Wait(ctx, wait) == nil; {
		wait = purgeEvery
		switch more, err := q.Purge(ctx, keepSettled); {
		case err != nil && ctx.Err() == nil:
			log.WithError(err).Warn("old webhook deliveries stay until the next purge")
		case more:
			wait = purgePause
		}
	}
}

package send

import (
	"context"
	"fmt"
	"time"

	"humanqa/domain/announce"
	"humanqa/internal/backoff"
)

const (
	// purgeBatch bounds one transaction. purgePause between two of them leaves time for
	// the deliveries under way.
	purgeBatch = 500
	purgePause = 100 * time.Millisecond
)

// purgeDone leaves alone deliveries that may still be replayed: held and failed ones,
// except test events. Dispatchers that purge at the same time take different rows.
const purgeDone = `
DELETE FROM webhooks.deliveries
WHERE id IN (
	SELECT id
	FROM webhooks.deliveries
	WHERE (state IN ('delivered', 'dropped') OR event = '` + announce.TestName + `') AND settled_at < now() - $1 * interval '1 millisecond'
	ORDER BY settled_at
	LIMIT $2
	FOR UPDATE SKIP LOCKED
)`

// purgeLoop deletes deliveries that were settled Config.Keep ago, and their attempts.
func (d *Dispatcher) purgeLoop(ctx context.Context) {
	for wait := time.Duration(0); backoff.Wait(ctx, wait) == nil; {
		wait = d.cfg.PurgeEvery
		switch gone, err := d.purgeOnce(ctx); {
		case err != nil && ctx.Err() == nil:
			d.log.WithError(err).Warn("old webhook deliveries stay until the next purge")
		case gone == purgeBatch:
			wait = purgePause
		}
	}
}

func (d *Dispatcher) purgeOnce(ctx context.Context) (gone int64, err error) {
	done, err := d.queue.DB.ExecContext(ctx, purgeDone, d.cfg.Keep.Milliseconds(), purgeBatch)
	if err != nil {
		return 0, fmt.Errorf("purge deliveries: %w", err)
	}
	if gone, err = done.RowsAffected(); err != nil {
		return 0, fmt.Errorf("purge deliveries: %w", err)
	}
	return gone, nil
}

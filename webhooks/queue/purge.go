package queue

import (
	"context"
	"time"

	"humanqa/domain/announce"
	"humanqa/internal/pgpool"
)

// purgeBatch bounds one transaction.
const purgeBatch = 500

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

// Purge deletes deliveries that were settled so long ago, and their attempts, up to a bound.
// more says that there may be others. Any goroutine may call it.
func (q *Queue) Purge(ctx context.Context, keep time.Duration) (more bool, err error) {
	gone, err := pgpool.ExecCount(ctx, q.db, "purge deliveries", purgeDone, keep.Milliseconds(), purgeBatch)
	return gone == purgeBatch, err
}

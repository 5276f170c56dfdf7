package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
)

// How a process that has died is noticed before its leases end: the connection on
// which it listens carries the name of its leases, and is gone. One that was never
// seen, or is frozen and keeps its connection, is waited for until they end.
const (
	// lookForOthers is the time between two looks, while others hold leases.
	lookForOthers = 250 * time.Millisecond
	// deadAfter is how long a connection that was there is missing: it is opened
	// anew sooner where its process lives.
	deadAfter = 500 * time.Millisecond
)

// sessionName is the name of the connection on which the holder of leases listens.
func sessionName(holder uuid.UUID) string { return "webhooks " + holder.String() }

// others are the other dispatchers, as far as they hold leases. It belongs to the
// loop's goroutine.
type others struct {
	there   bool // when last looked for
	looked  time.Time
	started time.Time               // of the database: with it all connections are new
	alive   map[uuid.UUID]time.Time // when each was seen last
}

const listOthers = `
SELECT l.lease_id, pg_postmaster_start_time() AS started, EXISTS (
	SELECT
	FROM pg_stat_activity
	WHERE application_name = 'webhooks ' || l.lease_id
) AS alive
FROM (SELECT DISTINCT lease_id FROM webhooks.endpoints WHERE lease_id <> $1 AND leased_until > now()) l`

// A take-over writes off what was under way, as at any lease's end.
const endLeases = `
UPDATE webhooks.endpoints
SET leased_until = now(), due_at = CASE WHEN enabled AND url <> '' AND secret <> '' THEN now() ELSE due_at END
WHERE lease_id = ANY($1)`

// bury ends the leases of processes that have died.
func (q *queue) bury(ctx context.Context) error {
	now := time.Now()
	if !q.there || now.Sub(q.looked) < lookForOthers {
		return nil
	}
	q.looked = now
	var list []struct {
		Holder  uuid.UUID `db:"lease_id"`
		Started time.Time `db:"started"`
		Alive   bool      `db:"alive"`
	}
	if err := q.db.SelectContext(ctx, &list, listOthers, q.holder); err != nil {
		return fmt.Errorf("look for other dispatchers: %w", err)
	}
	seen := map[uuid.UUID]time.Time{}
	var dead []string
	for _, other := range list {
		last, known := q.alive[other.Holder]
		switch {
		case other.Alive:
			seen[other.Holder] = now
		case !known || !other.Started.Equal(q.started):
		case now.Sub(last) < deadAfter:
			seen[other.Holder] = last
		default:
			dead = append(dead, other.Holder.String())
		}
		q.started = other.Started
	}
	q.alive = seen
	if len(dead) == 0 {
		return nil
	}
	if _, err := q.db.ExecContext(ctx, endLeases, pq.Array(dead)); err != nil {
		return fmt.Errorf("end the leases of a dispatcher that has died: %w", err)
	}
	return nil
}

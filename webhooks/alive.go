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
	started time.Time // of the database: with it all connections are new
	known   map[string]sight
}

// sight is when another dispatcher was seen last, and whether it was missing since.
type sight struct {
	last    time.Time
	missing bool
}

// Who listens is listed before it holds leases, too: it may die soon after it got them.
const listOthers = `
SELECT holder, pg_postmaster_start_time() AS started, bool_or(alive) AS alive
FROM (
	SELECT lease_id::text AS holder, false AS alive
	FROM webhooks.endpoints
	WHERE lease_id <> $1 AND leased_until > now()
	UNION ALL
	SELECT substr(application_name, length('webhooks ') + 1), true
	FROM pg_stat_activity
	WHERE application_name LIKE 'webhooks %' AND datname = current_database()
) known
GROUP BY holder`

// A take-over writes off what was under way, as at any lease's end.
const endLeases = `
UPDATE webhooks.endpoints
SET leased_until = now(), due_at = CASE WHEN enabled AND url <> '' AND secret <> '' THEN now() ELSE due_at END
WHERE lease_id = ANY($1)`

// lookForOthersIn is how long until the next look for them, which the first one is not
// kept waiting for.
func (o *others) lookForOthersIn() time.Duration {
	return max(lookForOthers-time.Since(o.looked), 0)
}

// bury ends the leases of processes that have died. The first time it looks who is there.
func (q *queue) bury(ctx context.Context) error {
	now := time.Now()
	if !q.looked.IsZero() && (!q.there || q.lookForOthersIn() > 0) {
		return nil
	}
	q.looked = now
	var list []struct {
		Holder  string
		Started time.Time
		Alive   bool // listening; else it holds leases
	}
	if err := q.db.SelectContext(ctx, &list, listOthers, q.holder); err != nil {
		return fmt.Errorf("look for other dispatchers: %w", err)
	}
	seen := map[string]sight{}
	var dead []string
	for _, other := range list {
		was, known := q.known[other.Holder]
		switch {
		case other.Alive:
			seen[other.Holder] = sight{last: now}
		case !known || !other.Started.Equal(q.started):
		case !was.missing: // it went since the last look, which may be long ago
			seen[other.Holder] = sight{last: later(was.last, now.Add(-lookForOthers)), missing: true}
		case now.Sub(was.last) < deadAfter:
			seen[other.Holder] = was
		default:
			dead = append(dead, other.Holder)
		}
		q.started = other.Started
	}
	q.known = seen
	if len(dead) == 0 {
		return nil
	}
	if _, err := q.db.ExecContext(ctx, endLeases, pq.Array(dead)); err != nil {
		return fmt.Errorf("end the leases of a dispatcher that has died: %w", err)
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"humanqa/internal/pgpool"
)

// A dead process is noticed before its leases end. The connection on which it listened
// has a name with the id of its leases, and is gone. If no connection was ever seen, or a
// frozen process keeps it, the leases have to end first.
const (
	// peerLookEvery is the time between two looks, while others hold leases.
	peerLookEvery = 250 * time.Millisecond
	// deadAfter is how long a seen connection must be missing. A living process opens it
	// anew sooner.
	deadAfter = 500 * time.Millisecond
)

// SessionName is the name of the connection on which the holder of leases listens.
func SessionName(holder uuid.UUID) string { return "webhooks " + holder.String() }

// peers are the dispatchers of other processes, as far as they hold leases. The register
// belongs to the loop's goroutine.
type peers struct {
	present  bool // at the last look
	lookedAt time.Time
	started  time.Time // start of the database: all connections are new after it
	known    map[string]sighting
}

// sighting is the time when a peer was seen last, and whether it was missing since.
type sighting struct {
	last    time.Time
	missing bool
}

// The list also has dispatchers that listen and hold no lease: one may die soon after it
// gets a lease.
const listPeers = `
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

// The next claim of such an endpoint expires the attempts, as at any end of a lease.
const endLeasesSQL = `
UPDATE webhooks.endpoints
SET leased_until = now(), due_at = CASE WHEN enabled AND url <> '' AND secret <> '' THEN now() ELSE due_at END
WHERE lease_id = ANY($1)`

// nextPeerLook is how long until the next look for peers; the first look is not delayed.
func (o *peers) nextPeerLook() time.Duration {
	return max(peerLookEvery-time.Since(o.lookedAt), 0)
}

// endDeadLeases ends the leases of dead peers. The first call only notes the peers that live.
func (q *Queue) endDeadLeases(ctx context.Context) error {
	now := time.Now()
	if !q.lookedAt.IsZero() && (!q.present || q.nextPeerLook() > 0) {
		return nil
	}
	q.lookedAt = now
	var list []struct {
		Holder  string
		Started time.Time
		Alive   bool // listening; if false it only holds leases
	}
	if err := q.DB.SelectContext(ctx, &list, listPeers, q.InFlight.Holder); err != nil {
		return fmt.Errorf("look for other dispatchers: %w", err)
	}
	seen := map[string]sighting{}
	var dead []string
	for _, other := range list {
		was, known := q.known[other.Holder]
		switch {
		case other.Alive:
			seen[other.Holder] = sighting{last: now}
		case !known || !other.Started.Equal(q.started):
		case !was.missing: // it disappeared since the last look, which may be long ago
			seen[other.Holder] = sighting{last: later(was.last, now.Add(-peerLookEvery)), missing: true}
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
	return pgpool.Exec(ctx, q.DB, "end the leases of a dispatcher that has died", endLeasesSQL, pq.Array(dead))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

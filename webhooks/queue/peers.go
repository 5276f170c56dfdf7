package queue

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/internal/pgpool"
)

// A dead process is noticed before its leases end. The connection on which it listened
// has a name with the id of its leases, and is gone. If no connection was ever seen, or a
// frozen process keeps it, the leases have to end first.

// peerLookEvery is the time between two looks, while others hold leases.
const peerLookEvery = 250 * time.Millisecond

// sessionName is the name of the connection on which the holder of leases listens.
func sessionName(holder uuid.UUID) string { return "webhooks " + holder.String() }

// peers are the dispatchers of other processes. The register belongs to the loop's
// goroutine.
type peers struct {
	present  bool // others held leases at the last claim
	lookedAt time.Time
	sessions pgpool.Sessions
}

const listSessions = `
SELECT pg_postmaster_start_time() AS started, ARRAY(
	SELECT substr(application_name, length('webhooks ') + 1)
	FROM pg_stat_activity
	WHERE application_name LIKE 'webhooks %' AND application_name <> $1 AND datname = current_database()
) AS present`

// The next claim of such an endpoint expires the attempts, as at any end of a lease.
const endLeasesSQL = `
UPDATE webhooks.endpoints
SET leased_until = now(), due_at = CASE WHEN enabled AND url <> '' AND secret <> '' THEN now() ELSE due_at END
WHERE lease_id = ANY($1)`

// nextPeerLook is how long until the next look for peers; the first look is not delayed.
func (p *peers) nextPeerLook() time.Duration {
	return max(peerLookEvery-time.Since(p.lookedAt), 0)
}

// endDeadLeases ends the leases of dead peers. The first call only notes the peers that live.
func (p *peers) endDeadLeases(ctx context.Context, db *sqlx.DB, own uuid.UUID) error {
	if !p.lookedAt.IsZero() && (!p.present || p.nextPeerLook() > 0) {
		return nil
	}
	p.lookedAt = time.Now()
	seen, err := pgpool.One[struct {
		Started time.Time
		Present pq.StringArray
	}](ctx, db, "the other dispatchers", listSessions, sessionName(own))
	if err != nil {
		return err
	}
	dead := p.sessions.Dead(seen.Started, seen.Present)
	if len(dead) == 0 {
		return nil
	}
	return pgpool.Exec(ctx, db, "end the leases of a dispatcher that has died", endLeasesSQL, pq.Array(dead))
}

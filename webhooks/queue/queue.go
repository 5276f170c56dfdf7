package queue

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
	"humanqa/webhooks"
)

// Queue is the dispatcher's view of the tables. It has endpoints that are due, each
// leased while one of its deliveries is under way, and each with a cap on those. One
// goroutine claims and settles.
type Queue struct {
	*inFlight

	db    *sqlx.DB
	pool  int
	caps  Caps
	peers peers
	short bool // the last claim left deliveries for lack of places
}

// New gives the queue for a dispatcher with so many places. Its leases are those of a
// holder of its own.
func New(db *sqlx.DB, pool int, caps Caps, lease time.Duration) *Queue {
	return &Queue{db: db, pool: pool, caps: caps, inFlight: newInFlight(lease)}
}

// Listen wakes the reader of the channel when there is work. Its connection shows other
// processes that this one lives, until ctx ends.
func (q *Queue) Listen(ctx context.Context, dsn string, interrupted func(error)) <-chan struct{} {
	// The notification is only about leases of this process.
	own := func(payload string) bool { return payload == q.holder.String() }
	return pgpool.ListenTo(ctx, pgpool.Named(dsn, sessionName(q.holder)), webhooks.DueChannel, own, interrupted)
}

package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
)

// sqlUnreadable gives the version of a row, and what readers are shown in its place unless
// that is the version they were shown before. Hashing reads the whole row.
const sqlUnreadable = `
SELECT xmin::text,
  CASE WHEN xmin::text <> $2 THEN format('{"$unreadable":{"bytes":%s,"data":"%s","metadata":"%s"}}',
    octet_length(data) + octet_length(metadata), encode(sha256(data), 'hex'), encode(sha256(metadata), 'hex')) END
FROM eventlog.events
WHERE position = $1`

// unreadable holds what readers are shown of the events for which no message has room. An
// older version took them, so they are few and do not become more.
type unreadable struct {
	stmt *sql.Stmt

	mu   sync.Mutex // held while Postgres hashes: readers that meet an event together wait for one
	held map[int64]shown
}

// shown stands in for a row as it was in one of its versions: a change by SQL makes another.
type shown struct {
	version string
	data    []byte
}

// Unreadable stands in for an event that is too large for any message. A reader goes on
// behind it, and knows its place, its size and its sums.
func (u *unreadable) Unreadable(ctx context.Context, r *Record) (*Record, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := shown{}
	err := retryRead(ctx, func() error {
		return u.stmt.QueryRowContext(ctx, r.Position, u.held[r.Position].version).Scan(&now.version, &now.data)
	})
	if err != nil {
		return nil, fmt.Errorf("read what is shown of the event at %d: %w", r.Position, err)
	}
	if now.data != nil {
		u.held[r.Position] = now
	}
	out := *r
	out.Data, out.Metadata = u.held[r.Position].data, []byte("{}")
	return &out, nil
}

package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/oid"

	"humanqa/internal/pgpool"
)

// lockID is the session advisory lock of the writer: "humanqae" in ASCII.
const lockID int64 = 0x68756d616e716165

// commitTimeout bounds one group. It is long, since a slow disk is no failure,
// and finite, since a connection that died silently would hang the log.
const commitTimeout = 30 * time.Second

const (
	sqlPID     = `SELECT pg_backend_pid()`
	sqlTryLock = `SELECT pg_try_advisory_lock($1)`

	// The parts of a lock's number are shown as oids.
	sqlHolders = `
SELECT count(*) FILTER (WHERE pid <> ALL($2)), count(CASE WHEN pid = ANY($2) THEN pg_terminate_backend(pid) END),
  coalesce((SELECT address FROM eventlog.holder), '')
FROM pg_locks
WHERE locktype = 'advisory'
  AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND (classid::bigint << 32) + objid::bigint = $1`

	sqlHold = `
INSERT INTO eventlog.holder AS h (address)
VALUES ($1)
ON CONFLICT (one) DO UPDATE SET address = excluded.address
WHERE h.address <> excluded.address`

	sqlHead = `
SELECT coalesce(max(position), 0), coalesce((SELECT created FROM eventlog.events ORDER BY position DESC LIMIT 1), 0)
FROM eventlog.events`

	sqlLastWritten = `
SELECT coalesce((SELECT created FROM eventlog.events WHERE type <> $1 ORDER BY position DESC LIMIT 1), 0)`

	sqlInsertGroup = `
INSERT INTO eventlog.events (position, revision, created, event_id, is_json, stream, type, data, metadata)
SELECT g.position, g.revision, $3, g.event_id, g.is_json, g.stream, g.type, g.data, g.metadata
FROM unnest($1::bigint[], $2::bigint[], $4::uuid[], $5::boolean[], $6::text[], $7::text[], $8::bytea[], $9::bytea[])
  AS g (position, revision, event_id, is_json, stream, type, data, metadata)`

	// A group that was decided on the assumption that the named streams have no event is
	// written only if that is true.
	sqlInsertIfAbsent = sqlInsertGroup + `
WHERE NOT EXISTS (
  SELECT
  FROM unnest($10::text[]) AS s (name)
  CROSS JOIN LATERAL (
    SELECT
    FROM eventlog.events
    WHERE stream = s.name
    ORDER BY revision DESC
    LIMIT 1) e)`
)

// Queryer is a database, or a transaction.
type Queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Head is the position of the log's last event in a migrated database; 0: it is empty. It
// needs no node.
func Head(ctx context.Context, q Queryer) (position int64, err error) {
	var created int64
	if err := q.QueryRowContext(ctx, sqlHead).Scan(&position, &created); err != nil {
		return 0, fmt.Errorf("read the head of the log: %w", err)
	}
	return position, nil
}

// LastWritten is when the last event of another type was written; 1970: there is none.
func LastWritten(ctx context.Context, q Queryer, but string) (time.Time, error) {
	var created int64
	if err := q.QueryRowContext(ctx, sqlLastWritten, but).Scan(&created); err != nil {
		return time.Time{}, fmt.Errorf("read when the log was written: %w", err)
	}
	return time.UnixMicro(created).UTC(), nil
}

// session is the writer's hold on the log: one connection, the advisory lock
// on it, and the statements that write. It is never repaired: after any
// error it is closed and a new one is made.
type session struct {
	conn           *sql.Conn
	insert         *sql.Stmt
	insertIfAbsent *sql.Stmt // insert, if streams are absent
	pid            int64     // of the connection's backend
	head           int64     // as found when the lock was taken
	lastCreated    int64
}

// candidate is a node that wants the lock.
type candidate struct {
	// address is where clients reach the node, if they can.
	address string
	// former are backends of this node whose end it does not know: after an outage Postgres may
	// think that they live, and one may hold the lock. It is ended.
	former []int64
}

// openSession connects and takes the lock; a LockedError if another node has it.
func openSession(ctx context.Context, db *sql.DB, c *candidate) (*session, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect the writer: %w", err)
	}
	s := &session{conn: conn}
	if err := s.acquireLock(ctx, c); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) acquireLock(ctx context.Context, c *candidate) error {
	if err := s.conn.QueryRowContext(ctx, sqlPID).Scan(&s.pid); err != nil {
		return fmt.Errorf("take the writer's lock: %w", err)
	}
	var locked bool
	if err := s.conn.QueryRowContext(ctx, sqlTryLock, lockID).Scan(&locked); err != nil {
		c.former = append(c.former, s.pid) // the answer may have been lost
		return fmt.Errorf("take the writer's lock: %w", err)
	}
	if !locked {
		var others, ended int
		locked := &LockedError{}
		former := pq.Int64Array(append([]int64{}, c.former...)) // never NULL, which no backend differs from
		err := s.conn.QueryRowContext(ctx, sqlHolders, lockID, former).Scan(&others, &ended, &locked.Holder)
		if err != nil || others == 0 { // it was ended, or has just gone by itself
			return errors.Join(errFormer, err)
		}
		return locked
	}
	c.former = []int64{s.pid}
	// A database that takes no row is read all the same.
	if _, err := s.conn.ExecContext(ctx, sqlHold, c.address); err != nil && !notWritten(err) {
		return fmt.Errorf("take the writer's lock: %w", err)
	}
	// The head is read after the lock: all commits of the lock's previous holder are visible.
	if err := s.conn.QueryRowContext(ctx, sqlHead).Scan(&s.head, &s.lastCreated); err != nil {
		return fmt.Errorf("read the head of the log: %w", err)
	}
	p := preparer{ctx: ctx, on: s.conn}
	s.insert, s.insertIfAbsent = p.stmt(sqlInsertGroup), p.stmt(sqlInsertIfAbsent)
	return p.err
}

// answers looks whether the session is still there, and so its lock.
func (s *session) answers() error {
	answered := make(chan error, 1)
	go func() { answered <- s.conn.PingContext(context.Background()) }() // the connection's patience bounds it
	patience := time.NewTimer(watchTimeout)
	defer patience.Stop()
	select {
	case err := <-answered:
		return err
	case <-patience.C:
		return errSilent
	}
}

// close ends the connection itself, not only its place in the pool: the lock
// lives as long as the connection.
func (s *session) close() {
	// Errors don't matter, Postgres frees the lock however the connection ends.
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = s.conn.Close()
}

// trialBytes is more than the pages of a table have room for.
const trialBytes = 64 << 10

// tryWrite writes an event that needs room, and takes it back.
func (s *session) tryWrite(ctx context.Context) error {
	data := make([]byte, trialBytes)
	_, _ = rand.Read(data) // never fails; random bytes cannot be compressed
	if _, err := s.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return fmt.Errorf("try to write: %w", err)
	}
	if _, err := s.writeGroup(s.lastCreated, []*Record{{Position: s.head + 1, Data: data}}, nil); err != nil {
		return fmt.Errorf("try to write: %w", err)
	}
	return pgpool.Exec(ctx, s.conn, "try to write", "ROLLBACK")
}

// writeGroup commits a group in one statement, which is one transaction. It writes nothing if
// a stream in absent has events.
func (s *session) writeGroup(created int64, records []*Record, absent []string) (written bool, err error) {
	n := len(records)
	dataSize, metaSize, names := 0, 0, 0
	for _, r := range records {
		dataSize, metaSize, names = dataSize+len(r.Data), metaSize+len(r.Metadata), names+max(len(r.Stream), len(r.Type))
	}
	positions, revisions := newArray(oid.T_int8, n, 8*n), newArray(oid.T_int8, n, 8*n)
	ids, json := newArray(oid.T_uuid, n, 16*n), newArray(oid.T_bool, n, n)
	streams, types := newArray(oid.T_text, n, names), newArray(oid.T_text, n, names)
	data, metadata := newArray(oid.T_bytea, n, dataSize), newArray(oid.T_bytea, n, metaSize)
	isJSON := map[bool][]byte{false: {0}, true: {1}}
	for _, r := range records {
		positions, revisions = addNumber(positions, r.Position), addNumber(revisions, r.Revision)
		ids, json = addElement(ids, r.ID[:]), addElement(json, isJSON[r.JSON])
		streams, types = addElement(streams, r.Stream), addElement(types, r.Type)
		data, metadata = addElement(data, r.Data), addElement(metadata, r.Metadata)
	}
	stmt, args := s.insert, []any{positions, revisions, created, ids, json, streams, types, data, metadata}
	if len(absent) > 0 {
		stmt, args = s.insertIfAbsent, append(args, pq.StringArray(absent))
	}
	// The commit must not end with a single client's context; the connection's patience bounds it.
	result, err := stmt.ExecContext(context.Background(), args...)
	if err != nil {
		return false, fmt.Errorf("write a group of %d events: %w", n, err)
	}
	inserted, err := result.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("write a group of %d events: %w", n, err)
	}
	return inserted == int64(n), nil
}

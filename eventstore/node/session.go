package node

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// lockID is the session advisory lock of the writer: "humanqae" in ASCII.
const lockID int64 = 0x68756d616e716165

// commitTimeout bounds one group. It is long, since a slow disk is no failure,
// and finite, since a connection that died silently would hang the log.
const commitTimeout = 30 * time.Second

const (
	sqlTryLock = `SELECT pg_try_advisory_lock($1)`

	sqlHead = `
SELECT coalesce(max(position), 0), coalesce((SELECT created FROM eventlog.events ORDER BY position DESC LIMIT 1), 0)
FROM eventlog.events`

	sqlInsertGroup = `
INSERT INTO eventlog.events (position, revision, created, event_id, is_json, stream, type, data, metadata)
SELECT g.position, g.revision, $3, g.event_id, g.is_json, g.stream, g.type, g.data, g.metadata
FROM unnest($1::bigint[], $2::bigint[], $4::uuid[], $5::boolean[], $6::text[], $7::text[], $8::bytea[], $9::bytea[])
  AS g (position, revision, event_id, is_json, stream, type, data, metadata)`

	// The latest events of each named stream, and the latest one of each named
	// metadata stream with its body.
	sqlLoadStates = `
SELECT s.name, e.revision, e.position, e.id, e.is_json, e.data
FROM unnest($1::text[]) AS s (name)
CROSS JOIN LATERAL (
  SELECT revision, position, uuid_send(event_id) AS id, false AS is_json, ''::bytea AS data
  FROM eventlog.events
  WHERE stream = s.name
  ORDER BY revision DESC
  LIMIT 32) e
UNION ALL
SELECT s.name, e.revision, e.position, e.id, e.is_json, e.data
FROM unnest($2::text[]) AS s (name)
CROSS JOIN LATERAL (
  SELECT revision, position, uuid_send(event_id) AS id, is_json, data
  FROM eventlog.events
  WHERE stream = s.name
  ORDER BY revision DESC
  LIMIT 1) e`

	sqlIdentities = `
SELECT revision, position, uuid_send(event_id)
FROM eventlog.events
WHERE stream = $1 AND revision BETWEEN $2 AND $3
ORDER BY revision`
)

// session is the writer's hold on the log: one connection, the advisory lock
// on it, and the statements prepared on it. It is used by the writer goroutine
// only and never repaired: after any error it is closed and a new one is made.
type session struct {
	conn        *sql.Conn
	insert      *sql.Stmt
	states      *sql.Stmt
	identities  *sql.Stmt
	head        int64
	lastCreated int64
	columns     [8]arrayEncoder
}

// openSession connects and takes the lock; ErrLocked if another node has it.
func openSession(ctx context.Context, db *sql.DB) (*session, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect the writer: %w", err)
	}
	s := &session{conn: conn}
	if err := s.take(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) take(ctx context.Context) error {
	var locked bool
	if err := s.conn.QueryRowContext(ctx, sqlTryLock, lockID).Scan(&locked); err != nil {
		return fmt.Errorf("take the writer's lock: %w", err)
	}
	if !locked {
		return ErrLocked
	}
	// Read after the lock: whatever its previous holder committed is visible.
	if err := s.conn.QueryRowContext(ctx, sqlHead).Scan(&s.head, &s.lastCreated); err != nil {
		return fmt.Errorf("read the head of the log: %w", err)
	}
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{{&s.insert, sqlInsertGroup}, {&s.states, sqlLoadStates}, {&s.identities, sqlIdentities}} {
		stmt, err := s.conn.PrepareContext(ctx, p.text)
		if err != nil {
			return fmt.Errorf("prepare the writer's statements: %w", err)
		}
		*p.stmt = stmt
	}
	return nil
}

// close ends the connection itself, not only its place in the pool: the lock
// lives as long as the connection.
func (s *session) close() {
	// Errors don't matter, Postgres frees the lock however the connection ends.
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = s.conn.Close()
}

// write commits a group in one statement, which is one transaction.
func (s *session) write(ctx context.Context, group []*record) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()

	n := len(group)
	c := &s.columns
	for i, oid := range [...]uint32{oidInt8, oidInt8, oidUUID, oidBool, oidText, oidText, oidBytea, oidBytea} {
		c[i].begin(oid, n)
	}
	for _, r := range group {
		c[0].int8(r.position)
		c[1].int8(r.revision)
		c[2].bytes(r.id[:])
		c[3].bool(r.json)
		c[4].text(r.stream)
		c[5].text(r.kind)
		c[6].bytes(r.data)
		c[7].bytes(r.metadata)
	}
	_, err := s.insert.ExecContext(ctx, c[0].buf, c[1].buf, group[0].created,
		c[2].buf, c[3].buf, c[4].buf, c[5].buf, c[6].buf, c[7].buf)
	for i := range c {
		c[i].shrink()
	}
	if err != nil {
		return fmt.Errorf("write a group of %d events: %w", n, err)
	}
	return nil
}

// load reads what the writer must know of streams it has no state for.
func (s *session) load(ctx context.Context, names []string) (map[string]*state, error) {
	found := make(map[string]*state, len(names))
	var plain, meta []string
	for _, name := range names {
		found[name] = &state{last: noStream}
		if isMetaStream(name) {
			meta = append(meta, name)
		} else {
			plain = append(plain, name)
		}
	}
	rows, err := s.states.QueryContext(ctx, encodeTexts(plain), encodeTexts(meta))
	if err != nil {
		return nil, fmt.Errorf("load stream states: %w", err)
	}
	err = eachRow(rows, func() error {
		var (
			name     string
			revision int64
			isJSON   bool
			data     []byte
			id       identity
			raw      []byte
		)
		if err := rows.Scan(&name, &revision, &id.position, &raw, &isJSON, &data); err != nil {
			return err
		}
		id.id = uuid.UUID(raw)
		st := found[name]
		if st.last == noStream { // the first row of a stream is its latest event
			st.last = revision
			st.meta = parseMetadata(isJSON, data)
		}
		if revision != tombstoned {
			st.recent = append(st.recent, id)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load stream states: %w", err)
	}
	for _, st := range found {
		st.oldestFirst()
	}
	return found, nil
}

// placed returns the events at revisions from..to of a stream.
func (s *session) placed(ctx context.Context, stream string, from, to int64) ([]identity, error) {
	rows, err := s.identities.QueryContext(ctx, stream, from, to)
	if err != nil {
		return nil, fmt.Errorf("read event ids of %s: %w", stream, err)
	}
	var ids []identity
	err = eachRow(rows, func() error {
		var (
			id       identity
			revision int64
			raw      []byte
		)
		if err := rows.Scan(&revision, &id.position, &raw); err != nil {
			return err
		}
		id.id = uuid.UUID(raw)
		ids = append(ids, id)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read event ids of %s: %w", stream, err)
	}
	return ids, nil
}

// eachRow calls scan for every row and always closes rows.
func eachRow(rows *sql.Rows, scan func() error) error {
	for rows.Next() {
		if err := scan(); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

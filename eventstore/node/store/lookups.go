package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/lib/pq"
)

const (
	// The latest event of each named stream; of a metadata stream with its body.
	sqlLoadStates = `
SELECT s.name, e.revision, e.is_json, CASE WHEN starts_with(s.name, '$$') THEN e.data ELSE '' END
FROM unnest($1::text[]) AS s (name)
CROSS JOIN LATERAL (
  SELECT revision, is_json, data
  FROM eventlog.events
  WHERE stream = s.name
  ORDER BY revision DESC
  LIMIT 1) e`

	sqlLastIDs = `
SELECT uuid_send(event_id), stream, revision
FROM eventlog.events
WHERE position >= $1
ORDER BY position`

	sqlIdentities = `
SELECT revision, position, uuid_send(event_id)
FROM eventlog.events
WHERE stream = $1 AND revision BETWEEN $2 AND $3
ORDER BY revision`
)

// lookups reads stream states that the writer does not have in memory. It works beside
// the session's connection, so that one group can be decided while another commits. It
// never reads streams of a group in flight: their states are in memory.
type lookups struct {
	states     *sql.Stmt
	lastIDs    *sql.Stmt
	identities *sql.Stmt
}

func prepareLookups(ctx context.Context, db *sql.DB) (*lookups, error) {
	p := preparer{ctx: ctx, on: db}
	prepared := &lookups{states: p.stmt(sqlLoadStates), lastIDs: p.stmt(sqlLastIDs), identities: p.stmt(sqlIdentities)}
	return prepared, p.err
}

// loadStates reads the states of streams that the writer does not have.
func (l *lookups) loadStates(ctx context.Context, names []string) (map[string]*state, error) {
	found := make(map[string]*state, len(names))
	for _, name := range names {
		found[name] = &state{last: NoStream}
	}
	err := eachRow(ctx, l.states, func(rows *sql.Rows) error {
		var (
			name   string
			isJSON bool
			data   []byte
			st     state
		)
		if err := rows.Scan(&name, &st.last, &isJSON, &data); err != nil {
			return err
		}
		st.meta = parseMetadata(isJSON, data)
		found[name] = &st
		return nil
	}, pq.StringArray(names))
	if err != nil {
		return nil, fmt.Errorf("load stream states: %w", err)
	}
	return found, nil
}

// loadIDs reads the last events of a log that ends at head.
func (l *lookups) loadIDs(ctx context.Context, head int64) (*ids, error) {
	held := &ids{first: max(head-idsHeld, 0) + 1, byID: map[uuid.UUID]int64{}, byPlace: map[place]int64{}}
	err := eachRow(ctx, l.lastIDs, func(rows *sql.Rows) error {
		var (
			id sql.RawBytes
			e  placed
		)
		if err := rows.Scan(&id, &e.stream, &e.revision); err != nil {
			return err
		}
		e.id = uuid.UUID(id)
		held.add(e)
		return nil
	}, held.first)
	if err != nil {
		return nil, fmt.Errorf("load the ids of the last events: %w", err)
	}
	return held, nil
}

// identitiesAt returns the events at revisions from..to of a stream.
func (l *lookups) identitiesAt(ctx context.Context, stream string, from, to int64) ([]identity, error) {
	var ids []identity
	err := eachRow(ctx, l.identities, func(rows *sql.Rows) error {
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
	}, stream, from, to)
	if err != nil {
		return nil, fmt.Errorf("read event ids of %s: %w", stream, err)
	}
	return ids, nil
}

// eachRow runs a query and calls scan for every row.
func eachRow(ctx context.Context, query *sql.Stmt, scan func(*sql.Rows) error, args ...any) (err error) {
	rows, err := query.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

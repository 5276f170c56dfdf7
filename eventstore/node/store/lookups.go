package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/lib/pq"
)

const (
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

// lookups reads stream states that the writer does not have in memory. It works beside
// the session's connection, so that one group can be decided while another commits. It
// never reads streams of a group in flight: their states are in memory.
type lookups struct {
	states     *sql.Stmt
	identities *sql.Stmt
}

func prepareLookups(ctx context.Context, db *sql.DB) (*lookups, error) {
	p := preparer{ctx: ctx, on: db}
	prepared := &lookups{states: p.stmt(sqlLoadStates), identities: p.stmt(sqlIdentities)}
	return prepared, p.err
}

// loadStates reads the states of streams that the writer does not have.
func (l *lookups) loadStates(ctx context.Context, names []string) (map[string]*state, error) {
	found := make(map[string]*state, len(names))
	var plain, meta []string
	for _, name := range names {
		found[name] = &state{last: NoStream}
		if IsMetaStream(name) {
			meta = append(meta, name)
		} else {
			plain = append(plain, name)
		}
	}
	rows, err := l.states.QueryContext(ctx, pq.StringArray(plain), pq.StringArray(meta))
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
		if st.last == NoStream { // the first row of a stream is its latest event
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
		slices.Reverse(st.recent) // the oldest first
	}
	return found, nil
}

// identitiesAt returns the events at revisions from..to of a stream.
func (l *lookups) identitiesAt(ctx context.Context, stream string, from, to int64) ([]identity, error) {
	rows, err := l.identities.QueryContext(ctx, stream, from, to)
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

package node

import (
	"context"
	"database/sql"
	"fmt"
	"humanqa/internal/backoff"
	"math"
	"time"

	"github.com/google/uuid"
)

const (
	// A page ends with the row that passes pageBytes, or after pageRows rows.
	pageRows  = 1024
	pageBytes = 2 << 20
	// The first pages of a read of $all are shorter, so that its client has work
	// while the next one is read.
	firstRows = 128
	moreRows  = 4

	readAttempts = 4
	readBackoff  = 50 * time.Millisecond
)

const eventColumns = `position, revision, created, uuid_send(event_id), is_json, stream, type, data, metadata`

// pageSQL reads events in order and stops after a number of bytes. The running
// total sees only the sizes, large values are not fetched for it.
func pageSQL(where, order string) string {
	return `
SELECT ` + eventColumns + `
FROM (
  SELECT *, octet_length(data) + octet_length(metadata) AS size,
    sum(octet_length(data) + octet_length(metadata)) OVER (ORDER BY ` + order + ` ROWS UNBOUNDED PRECEDING) AS total
  FROM eventlog.events
  WHERE ` + where + `
  ORDER BY ` + order + `
  LIMIT $1) page
WHERE total - size < $2
ORDER BY ` + order
}

var (
	sqlAllForward     = pageSQL(`position BETWEEN $3 AND $4`, `position`)
	sqlAllBackward    = pageSQL(`position BETWEEN $3 AND $4`, `position DESC`)
	sqlStreamForward  = pageSQL(`stream = $5 AND revision BETWEEN $3 AND $4 AND created >= $6`, `revision`)
	sqlStreamBackward = pageSQL(`stream = $5 AND revision BETWEEN $3 AND $4 AND created >= $6`, `revision DESC`)
)

// sqlStreamInfo is what a read must know of a stream before its first event:
// its last revision and its metadata, and of a metadata stream whether the
// stream it describes is gone.
const sqlStreamInfo = `
SELECT
  coalesce((SELECT revision FROM eventlog.events WHERE stream = $1 ORDER BY revision DESC LIMIT 1), -1),
  coalesce(m.revision, -1), coalesce(m.is_json, false), coalesce(m.data, '')
FROM (SELECT) AS one
LEFT JOIN LATERAL (
  SELECT revision, is_json, data
  FROM eventlog.events
  WHERE stream = $2
  ORDER BY revision DESC
  LIMIT 1) m ON true`

// pages reads committed events from Postgres. Safe for concurrent use.
type pages struct {
	allForward     *sql.Stmt
	allBackward    *sql.Stmt
	streamForward  *sql.Stmt
	streamBackward *sql.Stmt
	streamInfo     *sql.Stmt
}

func preparePages(ctx context.Context, db *sql.DB) (*pages, error) {
	p := preparer{ctx: ctx, db: db}
	prepared := &pages{
		allForward:     p.stmt(sqlAllForward),
		allBackward:    p.stmt(sqlAllBackward),
		streamForward:  p.stmt(sqlStreamForward),
		streamBackward: p.stmt(sqlStreamBackward),
		streamInfo:     p.stmt(sqlStreamInfo),
	}
	return prepared, p.err
}

// preparer makes statements that live as long as their pool, up to the first
// error.
type preparer struct {
	ctx context.Context
	db  *sql.DB
	err error
}

func (p *preparer) stmt(text string) *sql.Stmt {
	if p.err != nil {
		return nil
	}
	stmt, err := p.db.PrepareContext(p.ctx, text)
	if err != nil {
		p.err = fmt.Errorf("prepare a statement of the log: %w", err)
	}
	return stmt
}

// page is a run of events. complete means that nothing is left of what was
// asked for; otherwise the reader goes on behind the last event.
type page struct {
	events   []*record
	complete bool
}

// last is the position of the last event, which is there.
func (p page) last() int64 { return p.events[len(p.events)-1].position }

// all reads $all between two positions, both inclusive.
func (p *pages) all(ctx context.Context, backward bool, from, to int64, limit int) (page, error) {
	stmt := p.allForward
	if backward {
		stmt = p.allBackward
	}
	return p.read(ctx, stmt, limit, from, to)
}

// stream reads a stream between two revisions, both inclusive.
func (p *pages) stream(ctx context.Context, name string, backward bool, from, to, minCreated int64, limit int) (page, error) {
	stmt := p.streamForward
	if backward {
		stmt = p.streamBackward
	}
	return p.read(ctx, stmt, limit, from, to, name, minCreated)
}

func (p *pages) read(ctx context.Context, stmt *sql.Stmt, limit int, args ...any) (page, error) {
	limit = min(limit, pageRows)
	var out page
	err := retryRead(ctx, func() error {
		out = page{}
		rows, err := stmt.QueryContext(ctx, append([]any{limit, pageBytes}, args...)...)
		if err != nil {
			return err
		}
		bytes := 0
		err = eachRow(rows, func() error {
			r := &record{}
			var id sql.RawBytes
			if err := rows.Scan(&r.position, &r.revision, &r.created, &id, &r.json, &r.stream, &r.kind, &r.data, &r.metadata); err != nil {
				return err
			}
			r.id = uuid.UUID(id)
			bytes += len(r.data) + len(r.metadata)
			out.events = append(out.events, r)
			return nil
		})
		out.complete = len(out.events) < limit && bytes < pageBytes
		return err
	})
	if err != nil {
		return page{}, fmt.Errorf("read a page of the log: %w", err)
	}
	return out, nil
}

// streamInfo is the state of a stream as a reader needs it.
type streamInfo struct {
	last    int64
	meta    metadata
	deleted bool // tombstoned
}

// absent says that the stream reads as not found.
func (i streamInfo) absent() bool { return i.last == noStream || i.meta.deleted() }

func (p *pages) info(ctx context.Context, name string) (streamInfo, error) {
	var (
		info        streamInfo
		otherLast   int64
		otherIsJSON bool
		otherData   []byte
	)
	err := retryRead(ctx, func() error {
		return p.streamInfo.QueryRowContext(ctx, name, companion(name)).
			Scan(&info.last, &otherLast, &otherIsJSON, &otherData)
	})
	if err != nil {
		return streamInfo{}, fmt.Errorf("read the state of %s: %w", name, err)
	}
	info.deleted = info.last == tombstoned
	if isMetaStream(name) {
		info.meta = metaStreamMetadata
		info.deleted = info.deleted || otherLast == tombstoned
	} else {
		info.meta = parseMetadata(otherIsJSON, otherData)
	}
	return info, nil
}

// event reads one event of a stream for a link to it; nil if it can't be read.
func (p *pages) event(ctx context.Context, stream string, revision int64) (*record, error) {
	info, err := p.info(ctx, stream)
	if err != nil || info.deleted || info.absent() {
		return nil, err
	}
	if revision == lastRevision {
		revision = info.last
	}
	minRevision, minCreated := info.meta.limits(info.last, time.Now())
	if revision < minRevision {
		return nil, nil
	}
	found, err := p.stream(ctx, stream, false, revision, revision, minCreated, 1)
	if err != nil || len(found.events) == 0 {
		return nil, err
	}
	return found.events[0], nil
}

// retryRead tries a read again that failed because Postgres restarted: the
// pool may hold several connections that are dead without knowing it.
func retryRead(ctx context.Context, read func() error) error {
	wait := readBackoff
	for attempt := 1; ; attempt++ {
		err := read()
		if err == nil || ctx.Err() != nil || attempt == readAttempts {
			return err
		}
		if backoff.Wait(ctx, wait) != nil {
			return err
		}
		wait *= 3
	}
}

// lastOf turns an unsigned number of the protocol into ours; its maximum means
// the end.
func lastOf(v uint64) int64 {
	if v > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(v)
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/google/uuid"

	"humanqa/internal/backoff"
)

const (
	// A page ends with the row that passes pageBytes, or after pageRows rows.
	PageRows     = 1024
	pageBytes    = 2 << 20
	readAttempts = 4
	readBackoff  = 50 * time.Millisecond
)

// rowSize is what a page counts of an event; names of streams are short.
const rowSize = `octet_length(type) + octet_length(data) + octet_length(metadata)`

// pageSQL reads events in order and stops after a number of bytes. The running
// total sees only the sizes, large values are not fetched for it. Nor are those of an event
// that no message has room for: they are NULL.
func pageSQL(where, order string) string {
	return `
SELECT position, revision, created, uuid_send(event_id), is_json, stream, type,
  CASE WHEN size <= ` + strconv.Itoa(MaxMessage) + ` THEN data END,
  CASE WHEN size <= ` + strconv.Itoa(MaxMessage) + ` THEN metadata END
FROM (
  SELECT *, ` + rowSize + ` AS size,
    sum(` + rowSize + `) OVER (ORDER BY ` + order + ` ROWS UNBOUNDED PRECEDING) AS total
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

// sqlStreamInfo reads the facts of a stream that a read needs before its first event.
// They are its last revision and its metadata, and for a metadata stream whether the
// stream that it describes is gone.
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
	unreadable

	allForward     *sql.Stmt
	allBackward    *sql.Stmt
	streamForward  *sql.Stmt
	streamBackward *sql.Stmt
	streamInfo     *sql.Stmt
}

func preparePages(ctx context.Context, db *sql.DB) (*pages, error) {
	p := preparer{ctx: ctx, on: db}
	prepared := &pages{
		unreadable:     unreadable{stmt: p.stmt(sqlUnreadable), held: map[int64]shown{}},
		allForward:     p.stmt(sqlAllForward),
		allBackward:    p.stmt(sqlAllBackward),
		streamForward:  p.stmt(sqlStreamForward),
		streamBackward: p.stmt(sqlStreamBackward),
		streamInfo:     p.stmt(sqlStreamInfo),
	}
	return prepared, p.err
}

// preparer makes statements that live as long as their pool, or their connection, up to the
// first error.
type preparer struct {
	ctx context.Context
	on  interface {
		PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	}
	err error
}

func (p *preparer) stmt(text string) *sql.Stmt {
	if p.err != nil {
		return nil
	}
	stmt, err := p.on.PrepareContext(p.ctx, text)
	if err != nil {
		p.err = fmt.Errorf("prepare a statement of the log: %w", err)
	}
	return stmt
}

// Page is a run of events. Complete means that no requested event is left; otherwise
// the reader goes on behind the last event.
type Page struct {
	Events   []*Record
	Complete bool
}

// Last is the position of the last event; the page must not be empty.
func (p Page) Last() int64 { return p.Events[len(p.Events)-1].Position }

// ReadAll reads $all between two positions, both inclusive.
func (p *pages) ReadAll(ctx context.Context, backward bool, from, to int64, limit int) (Page, error) {
	stmt := p.allForward
	if backward {
		stmt = p.allBackward
	}
	return p.readPage(ctx, stmt, limit, from, to)
}

// ReadStream reads a stream between two revisions, both inclusive.
func (p *pages) ReadStream(ctx context.Context, name string, backward bool, from, to, minCreated int64, limit int) (Page, error) {
	stmt := p.streamForward
	if backward {
		stmt = p.streamBackward
	}
	return p.readPage(ctx, stmt, limit, from, to, name, minCreated)
}

func (p *pages) readPage(ctx context.Context, stmt *sql.Stmt, limit int, args ...any) (Page, error) {
	limit = min(limit, PageRows)
	var out Page
	err := retryRead(ctx, func() error {
		out = Page{}
		bytes := 0
		err := eachRow(ctx, stmt, func(rows *sql.Rows) error {
			r := &Record{}
			var id sql.RawBytes
			if err := rows.Scan(&r.Position, &r.Revision, &r.Created, &id, &r.JSON, &r.Stream, &r.Type, &r.Data, &r.Metadata); err != nil {
				return err
			}
			r.ID = uuid.UUID(id)
			bytes += len(r.Type) + len(r.Data) + len(r.Metadata)
			if r.Data == nil {
				bytes += MaxMessage
			}
			out.Events = append(out.Events, r)
			return nil
		}, append([]any{limit, pageBytes}, args...)...)
		out.Complete = len(out.Events) < limit && bytes < pageBytes
		return err
	})
	if err != nil {
		return Page{}, fmt.Errorf("read a page of the log: %w", err)
	}
	for i, r := range out.Events {
		if r.Data == nil {
			if out.Events[i], err = p.Unreadable(ctx, r); err != nil {
				return Page{}, err
			}
		}
	}
	return out, nil
}

// StreamInfo is the state of a stream as a reader needs it.
type StreamInfo struct {
	Last    int64
	meta    metadata
	Deleted bool // tombstoned
}

// Readable is the window of a stream that may be read: from a revision on, and of events
// from a creation time on, in microseconds.
func (i StreamInfo) Readable(now time.Time) (minRevision, minCreated int64) {
	minRevision = i.meta.truncateBefore
	if i.meta.maxCount > 0 && i.Last != tombstoned {
		minRevision = max(minRevision, i.Last-i.meta.maxCount+1)
	}
	if i.meta.maxAge > 0 {
		minCreated = now.Add(-i.meta.maxAge).UnixMicro()
	}
	return minRevision, minCreated
}

// Absent says that the stream reads as not found.
func (i StreamInfo) Absent() bool { return i.Last == NoStream || i.meta.deleted() }

func (p *pages) Info(ctx context.Context, name string) (StreamInfo, error) {
	var (
		info        StreamInfo
		otherLast   int64
		otherIsJSON bool
		otherData   []byte
	)
	err := retryRead(ctx, func() error {
		return p.streamInfo.QueryRowContext(ctx, name, companion(name)).
			Scan(&info.Last, &otherLast, &otherIsJSON, &otherData)
	})
	if err != nil {
		return StreamInfo{}, fmt.Errorf("read the state of %s: %w", name, err)
	}
	info.Deleted = info.Last == tombstoned
	if IsMetaStream(name) {
		info.meta = metaStreamMetadata
		info.Deleted = info.Deleted || otherLast == tombstoned
	} else {
		info.meta = parseMetadata(otherIsJSON, otherData)
	}
	return info, nil
}

// Event reads one event of a stream for a link to it; nil if it can't be read.
func (p *pages) Event(ctx context.Context, stream string, revision int64) (*Record, error) {
	info, err := p.Info(ctx, stream)
	if err != nil || info.Deleted || info.Absent() {
		return nil, err
	}
	if revision == LastRevision {
		revision = info.Last
	}
	minRevision, minCreated := info.Readable(time.Now())
	if revision < minRevision {
		return nil, nil
	}
	found, err := p.ReadStream(ctx, stream, false, revision, revision, minCreated, 1)
	if err != nil || len(found.Events) == 0 {
		return nil, err
	}
	return found.Events[0], nil
}

// retryRead tries a read again that failed because Postgres restarted: the
// pool may hold several connections that are dead without knowing it. It does not wait
// again for a Postgres that is silent.
func retryRead(ctx context.Context, read func() error) error {
	wait := readBackoff
	for attempt := 1; ; attempt++ {
		err := read()
		if err == nil || ctx.Err() != nil || attempt == readAttempts || errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if backoff.Wait(ctx, wait) != nil {
			return err
		}
		wait *= 3
	}
}

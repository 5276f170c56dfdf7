package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/eventstore"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Reads reads the account's events that webhooks announce, in the log's order. The events
// of a command are there once the projection has caught up (Supervisor.CatchUp).
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// AccountEvent is an event with its enrichment. Cursor grows with the log; it is opaque
// to clients.
type AccountEvent struct {
	Cursor   string
	Recorded domain.Recorded // as announce.Told gives it
	About    announce.Enrichment
}

// Filter narrows a page. After is a Cursor, empty for the beginning.
type Filter struct {
	After     string
	Types     []string // the log's; none: all
	ProjectID string   // a project-bound key's
	Limit     int
}

var selectEventsSQL = `
SELECT ` + eventColumns + `
FROM readmodel.account_events e
JOIN readmodel.event_streams s USING (stream)
WHERE e.account_id = $1`

var eventColumns = readmodel.Columns[accountEventRow]("e.") + ", s.project_id, s.about"

const orderEventsSQL = `
ORDER BY e.commit_position, e.prepare_position`

var jobEventsSQL = selectEventsSQL + `
  AND e.stream = $2` + orderEventsSQL

const newsSQL = `
SELECT commit_position, prepare_position, account_id
FROM readmodel.account_events
WHERE (commit_position, prepare_position) > ($1, $2)
ORDER BY commit_position, prepare_position
LIMIT $3`

const newestEventSQL = `
SELECT commit_position, prepare_position
FROM readmodel.account_events
ORDER BY commit_position DESC, prepare_position DESC
LIMIT 1`

// readEventRow is an event and its stream.
type readEventRow struct {
	accountEventRow
	ProjectID string                              `json:"project_id"`
	About     readmodel.JSON[announce.Enrichment] `json:"about"`
}

// OfJob gives the events of one job of the account; none for another account's.
func (q *Reads) OfJob(ctx context.Context, accountID, jobID string) ([]AccountEvent, error) {
	return q.read(ctx, false, jobEventsSQL, accountID, domain.JobStream(jobID))
}

// After gives a page of the account's events. A cursor in another format is Invalid, path
// "after". The page ends before an event of a version that this binary does not know, so
// that no reader loses it. A page that begins with such an event is domain.ErrNewer.
func (q *Reads) After(ctx context.Context, accountID string, f Filter) ([]AccountEvent, error) {
	found, held, err := q.Page(ctx, accountID, f)
	if held != nil && len(found) == 0 {
		return nil, held
	}
	return found, err
}

// Page is After; held is the reason if it ends before such an event.
func (q *Reads) Page(ctx context.Context, accountID string, f Filter) (found []AccountEvent, held, err error) {
	after, err := parseCursor(f.After)
	if err != nil {
		return nil, nil, err
	}
	where := f.where(accountID, after)
	query := selectEventsSQL + where.SQL + orderEventsSQL + "\nLIMIT " + where.Param(f.Limit)
	found, err = q.read(ctx, false, query, where.Args...)
	if errors.Is(err, domain.ErrNewer) {
		return found, err, nil
	}
	return found, nil, err
}

var orderNoticesSQL = `
  AND ` + noticed + `
ORDER BY e.commit_position DESC, e.prepare_position DESC`

const streamsSQL = `
SELECT stream
FROM readmodel.event_streams
WHERE account_id = $1
ORDER BY position`

// Streams lists the account's streams in the order in which they began.
func (q *Reads) Streams(ctx context.Context, accountID string) ([]string, error) {
	return pgpool.List[string](ctx, q.db, "the streams of "+accountID, streamsSQL, accountID)
}

const ownSQL = `
SELECT stream
FROM readmodel.event_streams
WHERE account_id = $1
  AND stream = ANY($2)`

// Own gives those of the streams that are the account's.
func (q *Reads) Own(ctx context.Context, accountID string, streams ...string) (map[string]bool, error) {
	return pgpool.Set(ctx, q.db, "the streams of "+accountID, ownSQL, accountID, pq.Array(streams))
}

const momentSQL = `
SELECT time
FROM readmodel.account_events
WHERE account_id = $1
  AND (commit_position, prepare_position) <= ($2, $3)
ORDER BY commit_position DESC, prepare_position DESC
LIMIT 1`

// Moment is the moment of u: at a position, the time of the account's newest event up to
// there, zero before the first.
func (q *Reads) Moment(ctx context.Context, accountID string, u Until) (time.Time, error) {
	if u.Position == (domain.Position{}) {
		return u.Moment, nil
	}
	at, _, err := pgpool.Find[time.Time](ctx, q.db, "the time at a position", momentSQL, accountID, u.Position.Commit, u.Position.Prepare)
	return at, err
}

// ofProjectSQL begins with the project's jobs, not with the account's events.
var ofProjectSQL = `
SELECT ` + eventColumns + `
FROM (
    SELECT '` + domain.JobStreams + `' || id AS stream
    FROM readmodel.jobs
    WHERE account_id = $1
      AND project_id = $2
      AND project_id <> ''
      AND %s) j
JOIN readmodel.event_streams s USING (stream)
JOIN readmodel.account_events e USING (stream)
WHERE %s` + orderEventsSQL

// OfProject gives the announced events of a project's jobs up to u, one by one as they
// come from Postgres.
func (q *Reads) OfProject(ctx context.Context, accountID, projectID string, u Until) iter.Seq2[AccountEvent, error] {
	return func(yield func(AccountEvent, error) bool) {
		err := q.eachOfProject(ctx, accountID, projectID, u, func(e AccountEvent) bool { return yield(e, nil) })
		if err != nil {
			yield(AccountEvent{}, fmt.Errorf("read the events of project %s: %w", projectID, err))
		}
	}
}

// eachOfProject stops when each returns false.
func (q *Reads) eachOfProject(ctx context.Context, accountID, projectID string, u Until, each func(AccountEvent) bool) error {
	where := &readmodel.Where{Args: []any{accountID, projectID}}
	query := fmt.Sprintf(ofProjectSQL, u.Began(where, accountID, "id", "created_at"), u.holds(where))
	rows, err := q.db.QueryxContext(ctx, query, where.Args...) //nolint:sqlclosecheck // it is closed below: the linter does not know sqlx
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var row readEventRow
		if err := rows.StructScan(&row); err != nil {
			return err
		}
		e, err := row.event()
		if err != nil {
			return err
		}
		if !each(e) {
			return nil
		}
	}
	return rows.Err()
}

// Notices gives the account's problems behind a cursor, the newest first, at most
// limit. They are missed time limits, failed jobs, loops with a bad end, disabled
// webhooks, and low credits.
func (q *Reads) Notices(ctx context.Context, accountID, after string, limit int) ([]AccountEvent, error) {
	from, err := parseCursor(after)
	if err != nil {
		return nil, err
	}
	where := Filter{}.where(accountID, from)
	return q.read(ctx, true, selectEventsSQL+where.SQL+orderNoticesSQL+"\nLIMIT "+where.Param(limit), where.Args...)
}

var refusalsSQL = selectEventsSQL + `
  AND ` + refused + `
  AND (e.commit_position, e.prepare_position) < ($2, $3)
ORDER BY e.commit_position DESC, e.prepare_position DESC
LIMIT $4`

// Refusals gives the account's events of refused tests before a cursor, the newest first,
// at most limit. Without a cursor it begins with the newest of all.
func (q *Reads) Refusals(ctx context.Context, accountID, before string, limit int) ([]AccountEvent, error) {
	to, err := parseCursor(cmp.Or(before, fmt.Sprintf("%d-0", int64(math.MaxInt64))))
	if err != nil {
		return nil, err
	}
	return q.read(ctx, true, refusalsSQL, accountID, to.commit, to.prepare, limit)
}

func (f Filter) where(accountID string, after place) *readmodel.Where {
	c := readmodel.WhereAccount(accountID)
	c.SQL += fmt.Sprintf("\n  AND (e.commit_position, e.prepare_position) > (%s, %s)", c.Param(after.commit), c.Param(after.prepare))
	if len(f.Types) > 0 {
		c.And("e.type = ANY(%s)", pq.Array(f.Types))
	}
	if f.ProjectID != "" {
		c.And("s.project_id = %s", f.ProjectID)
	}
	return c
}

// read gives the events of a query. At an event of a version that this binary does not
// know it stops, and returns the events before it and domain.ErrNewer. With without set
// it goes on, and leaves that event out. An event of an unknown type has no Event.
func (q *Reads) read(ctx context.Context, without bool, query string, args ...any) ([]AccountEvent, error) {
	rows, err := pgpool.List[readEventRow](ctx, q.db, "events", query, args...)
	if err != nil {
		return nil, err
	}
	events := make([]AccountEvent, 0, len(rows))
	for _, row := range rows {
		e, err := row.event()
		switch {
		case err == nil:
			events = append(events, e)
		case !without || !errors.Is(err, domain.ErrNewer):
			return events, err
		}
	}
	return events, nil
}

func (r readEventRow) event() (AccountEvent, error) {
	meta, err := json.Marshal(domain.Metadata{AccountID: r.AccountID, Time: r.Time, Schema: r.SchemaVersion})
	if err != nil {
		return AccountEvent{}, fmt.Errorf("encode the metadata of event %s: %w", r.EventID, err)
	}
	id, err := uuid.Parse(r.EventID)
	if err != nil {
		return AccountEvent{}, fmt.Errorf("event id %q: %w", r.EventID, err)
	}
	recorded, err := eventstore.RawEvent{
		ID: id, Stream: r.Stream, Revision: r.Revision, Type: r.Type, Data: r.Data, Meta: meta,
		Position: domain.Position{Commit: r.CommitPosition, Prepare: r.PreparePosition},
	}.Decode()
	if err != nil {
		return AccountEvent{}, err
	}
	return AccountEvent{Cursor: CursorAt(recorded.Position), Recorded: recorded, About: r.About.V}, nil
}

// newsPage bounds what one call of News reads.
const newsPage = 1000

// News names the accounts that have events after a cursor, in no order. next is the
// cursor for the next call.
func (q *Reads) News(ctx context.Context, after string) (accounts []string, next string, err error) {
	from, err := parseCursor(after)
	if err != nil {
		return nil, "", err
	}
	rows, err := pgpool.List[accountEventRow](ctx, q.db, "new events", newsSQL, from.commit, from.prepare, newsPage)
	if err != nil {
		return nil, "", err
	}
	next = after
	for _, r := range rows {
		next = LaterCursor(next, CursorAt(domain.Position{Commit: r.CommitPosition, Prepare: r.PreparePosition}))
		accounts = append(accounts, r.AccountID)
	}
	slices.Sort(accounts)
	return slices.Compact(accounts), next, nil
}

// Newest is the cursor of the newest event of all, empty before the first.
func (q *Reads) Newest(ctx context.Context) (string, error) {
	row, found, err := pgpool.Find[accountEventRow](ctx, q.db, "the newest event", newestEventSQL)
	if err != nil || !found {
		return "", err
	}
	return CursorAt(domain.Position{Commit: row.CommitPosition, Prepare: row.PreparePosition}), nil
}

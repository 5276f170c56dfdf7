package readers

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/internal/pgpool"
	"humanqa/projections/events"
)

const (
	// FellBehindAfter is the age of the first unread event from which on a reader counts
	// as fallen behind. A reader that asks every half hour never does.
	FellBehindAfter = time.Hour
	// counted bounds how many events behind a reader are looked at.
	counted = 10_000
)

// State is the state of a reader.
type State string

// The states.
const (
	Current State = "current"
	Behind  State = "behind"
	Refused State = "refused" // its cursor is not taken
)

// Reader is a reader as its account sees it.
type Reader struct {
	ID
	Cursor string // without a mark; empty: before the first event
	Types  []string
	// EventsBehind counts the events behind its place that it asked for, among the next
	// ten thousand; More says that there are events beyond those.
	EventsBehind int
	More         bool
	// Unread is the time of the first of them, by the account's clock; zero: there is none.
	Unread      time.Time
	Refused     domain.Code
	FirstSeenAt time.Time
	LastSeenAt  time.Time
}

// Lag is the age of the first event that the reader has not read.
func (r Reader) Lag(now time.Time) time.Duration {
	if r.Unread.IsZero() {
		return 0
	}
	return max(now.Sub(r.Unread), 0)
}

// State judges the reader by the account's time.
func (r Reader) State(now time.Time) State {
	switch {
	case r.Refused != "":
		return Refused
	case r.Lag(now) >= FellBehindAfter, r.More:
		return Behind
	}
	return Current
}

type readerRow struct {
	AccountID   string         `db:"account_id"`
	ProjectID   string         `db:"project_id"`
	Name        string         `db:"name"`
	Commit      int64          `db:"commit_position"`
	Prepare     int64          `db:"prepare_position"`
	Types       pq.StringArray `db:"types"`
	Refused     string         `db:"refused"`
	FirstSeenAt time.Time      `db:"first_seen_at"`
	LastSeenAt  time.Time      `db:"last_seen_at"`
	Matched     int            `db:"matched"`
	Looked      int            `db:"looked"`
	Unread      *time.Time     `db:"unread"`
}

func (row readerRow) reader(limit int) Reader {
	r := Reader{
		ID:    ID{AccountID: row.AccountID, ProjectID: row.ProjectID, Name: row.Name},
		Types: row.Types, EventsBehind: row.Matched, More: row.Looked > limit, Refused: domain.Code(row.Refused),
		FirstSeenAt: row.FirstSeenAt.UTC(), LastSeenAt: row.LastSeenAt.UTC(),
	}
	if row.Commit >= 0 {
		at := domain.Position{Commit: uint64(row.Commit), Prepare: uint64(row.Prepare)}
		r.Cursor = events.CursorAt(at)
	}
	if row.Unread != nil {
		r.Unread = row.Unread.UTC()
	}
	return r
}

// The events behind a place are walked by their index, and no more than the limit of
// them: a reader that is years behind costs no more.
const listSQL = `
SELECT r.account_id, r.project_id, r.name, r.commit_position, r.prepare_position, r.types, r.refused, r.first_seen_at, r.last_seen_at,
    behind.matched, behind.looked, behind.unread
FROM event_readers r
CROSS JOIN LATERAL (
    SELECT count(*) AS looked,
        count(*) FILTER (WHERE wanted) AS matched,
        (array_agg(time ORDER BY commit_position, prepare_position) FILTER (WHERE wanted))[1] AS unread
    FROM (
        SELECT e.time, e.commit_position, e.prepare_position,
            (r.types = '{}' OR e.type = ANY (r.types))
            AND (r.project_id = ''
                OR r.project_id = (SELECT s.project_id FROM readmodel.event_streams s WHERE s.stream = e.stream)) AS wanted
        FROM readmodel.account_events e
        WHERE e.account_id = r.account_id
          AND (e.commit_position, e.prepare_position) > (r.commit_position, r.prepare_position)
        ORDER BY e.commit_position, e.prepare_position
        LIMIT $1) next) behind`

const ofAccountSQL = listSQL + `
WHERE r.account_id = $2
  AND ($3 = '' OR r.project_id = $3)
ORDER BY r.name, r.project_id`

// Of lists the account's readers by name; those of a project if one is named.
func (s *Readers) Of(ctx context.Context, accountID, projectID string) ([]Reader, error) {
	return s.list(ctx, counted, ofAccountSQL, counted+1, accountID, projectID)
}

// Brief is Of with a shorter look, for a page that only shows states. It counts up to two
// hundred events behind a reader; the age of the first unread one decides the state.
func (s *Readers) Brief(ctx context.Context, accountID string) ([]Reader, error) {
	list, err := s.list(ctx, lookedAt, ofAccountSQL, lookedAt+1, accountID, "")
	for i := range list {
		list[i].More = false
	}
	return list, err
}

func (s *Readers) list(ctx context.Context, limit int, query string, args ...any) ([]Reader, error) {
	rows, err := pgpool.List[readerRow](ctx, s.db, "the readers of events", query, args...)
	list := make([]Reader, len(rows))
	for i, row := range rows {
		list[i] = row.reader(limit)
	}
	return list, err
}

var errNoReader = domain.NotFound("reader").WithHint("GET /v1/events/readers lists the names")

const forgetSQL = `
DELETE FROM event_readers
WHERE account_id = $1
  AND name = $2
  AND ($3 = '' OR project_id = $3)`

// Forget removes the readers of that name, of the project if one is named. A reader that
// reads on comes back.
func (s *Readers) Forget(ctx context.Context, accountID, projectID, name string) error {
	if !IsName(name) {
		return errNoReader
	}
	if err := pgpool.ExecOne(ctx, s.db, errNoReader, "forget the reader "+name, forgetSQL, accountID, name, projectID); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.notes {
		if id.AccountID == accountID && id.Name == name && (projectID == "" || id.ProjectID == projectID) {
			delete(s.notes, id)
		}
	}
	return nil
}

const eraseSQL = `
DELETE FROM event_readers
WHERE account_id = $1`

// Erase removes all readers of an account, and says how many there were.
func Erase(ctx context.Context, db *sqlx.DB, accountID string) (int, error) {
	return pgpool.ExecCount(ctx, db, "erase the readers of "+accountID, eraseSQL, accountID)
}

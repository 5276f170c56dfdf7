package readers

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/internal/backoff"
	"humanqa/internal/metrics"
	"humanqa/internal/pgpool"
	"humanqa/projections/events"
)

const (
	// PerAccount is how many named readers an account may have.
	PerAccount = 20
	// flushEvery is how often notes are written.
	flushEvery = 3 * time.Second
	// seenEvery is the least time between two writes of a reader that was seen but has
	// not moved.
	seenEvery = 20 * time.Second
	// flushTime bounds one write.
	flushTime = 5 * time.Second
	// known bounds the readers that a process remembers to have a row.
	known = 10_000
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// NameForm describes what a name may be.
const NameForm = "must be 1 to 64 letters, digits, dots, underscores or hyphens, and begin with a letter or digit"

// IsName says whether a reader may have the name.
func IsName(name string) bool { return namePattern.MatchString(name) }

// ID names a reader. A reader with a project-bound key is not the reader of that name of
// the whole account. One without a name is not known, and nothing is noted of it.
type ID struct {
	AccountID, ProjectID, Name string
}

// Note holds the facts that a request tells of its reader.
type Note struct {
	ID
	Cursor  string      // the place, without a mark; empty: before the first event
	Types   []string    // the types that it asked for, by the log's names; none: all
	Refused domain.Code // why its cursor was not taken; empty: it was
}

func (n Note) same(m Note) bool {
	return n.Cursor == m.Cursor && n.Refused == m.Refused && slices.Equal(n.Types, m.Types)
}

// noted is the newest note of a reader, and the one that its row has.
type noted struct {
	note    Note
	at      time.Time
	written Note
	seenAt  time.Time // the time that is written
}

func (n noted) due(now time.Time) bool {
	return !n.note.same(n.written) || n.at.After(n.seenAt) && now.Sub(n.seenAt) >= seenEvery
}

// Readers notes the places of this process's readers, and reads the places of all.
type Readers struct {
	metrics.Found
	db  *sqlx.DB
	now func() time.Time
	log logrus.FieldLogger

	mu    sync.Mutex
	notes map[ID]*noted
}

// New makes the Readers of a process; Run writes their notes.
func New(db *sqlx.DB, now func() time.Time, log logrus.FieldLogger) *Readers {
	return &Readers{db: db, now: now, log: log.WithField("component", "readers"), notes: map[ID]*noted{}}
}

const lockReadersSQL = `
SELECT pg_advisory_xact_lock(hashtext('humanqa.event_readers'), hashtext($1))`

const admitSQL = `
INSERT INTO event_readers AS r (account_id, project_id, name, first_seen_at, last_seen_at)
SELECT $1, $2, $3, $4, $4
WHERE EXISTS (
        SELECT
        FROM event_readers
        WHERE (account_id, project_id, name) = ($1, $2, $3))
   OR (SELECT count(*) FROM event_readers WHERE account_id = $1) < $5
ON CONFLICT (account_id, project_id, name) DO UPDATE
SET last_seen_at = GREATEST(r.last_seen_at, EXCLUDED.last_seen_at)`

var errTooMany = domain.Conflict("the account has %d readers with a name", PerAccount).
	WithHint("forget one that reads no more: POST /v1/events/readers/NAME/forget; or read without a name")

// Admit gives the reader a row, unless the account has too many already.
func (s *Readers) Admit(ctx context.Context, id ID) error {
	s.mu.Lock()
	_, has := s.notes[id]
	s.mu.Unlock()
	if has || id.Name == "" {
		return nil
	}
	now := s.now()
	err := pgpool.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, lockReadersSQL, id.AccountID); err != nil {
			return fmt.Errorf("note the reader %s: %w", id.Name, err)
		}
		return pgpool.ExecOne(ctx, tx, errTooMany, "note the reader "+id.Name, admitSQL,
			id.AccountID, id.ProjectID, id.Name, now, PerAccount)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.notes) >= known {
		s.dropWritten()
	}
	if s.notes[id] == nil {
		s.notes[id] = &noted{note: Note{ID: id}, at: now, written: Note{ID: id}, seenAt: now}
	}
	return nil
}

// dropWritten makes room: a note that was written is found again in its row.
func (s *Readers) dropWritten() {
	for id, n := range s.notes {
		if n.note.same(n.written) {
			delete(s.notes, id)
		}
	}
}

// Note keeps the note of a request, if its reader was admitted.
func (s *Readers) Note(n Note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.notes[n.ID]; of != nil {
		n.Types = slices.Sorted(slices.Values(n.Types))
		if n.Refused != "" { // its place stays the same
			n.Cursor = of.note.Cursor
		}
		of.note, of.at = n, s.now()
	}
}

// Run writes the notes until ctx ends, and those that are left then.
func (s *Readers) Run(ctx context.Context) error {
	for failing := false; backoff.Wait(ctx, flushEvery) == nil; {
		err := s.Flush(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			s.log.WithError(err).Warn("the places of named readers are written later")
		}
		failing = err != nil
	}
	return s.Flush(context.WithoutCancel(ctx))
}

// A late note of one process does not overwrite a newer one of another.
const flushSQL = `
UPDATE event_readers r
SET commit_position = n.commit_position,
    prepare_position = n.prepare_position,
    types = string_to_array(n.types, ','),
    refused = n.refused,
    last_seen_at = n.seen_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::timestamptz[])
    AS n (account_id, project_id, name, commit_position, prepare_position, types, refused, seen_at)
WHERE (r.account_id, r.project_id, r.name) = (n.account_id, n.project_id, n.name)
  AND r.last_seen_at <= n.seen_at
RETURNING r.account_id, r.project_id, r.name`

// Flush writes the notes that are due. A reader without a row was forgotten, and is
// admitted anew by its next request.
func (s *Readers) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	due := s.due()
	if len(due) == 0 {
		return nil
	}
	var accounts, projects, names, types, refused []string
	var commits, prepares []int64
	var seen []time.Time
	for _, n := range due {
		at, _, ok := events.SplitCursor(n.note.Cursor)
		commit, prepare := int64(at.Commit), int64(at.Prepare)
		if !ok {
			commit, prepare = -1, -1
		}
		accounts, projects, names = append(accounts, n.note.AccountID), append(projects, n.note.ProjectID), append(names, n.note.Name)
		commits, prepares = append(commits, commit), append(prepares, prepare)
		types, refused = append(types, strings.Join(n.note.Types, ",")), append(refused, string(n.note.Refused))
		seen = append(seen, n.at)
	}
	var rows []struct {
		AccountID string `db:"account_id"`
		ProjectID string `db:"project_id"`
		Name      string `db:"name"`
	}
	err := s.db.SelectContext(ctx, &rows, flushSQL, pq.Array(accounts), pq.Array(projects), pq.Array(names), pq.Array(commits),
		pq.Array(prepares), pq.Array(types), pq.Array(refused), pq.Array(seen))
	if err != nil {
		return fmt.Errorf("write where the readers are: %w", err)
	}
	written := map[ID]bool{}
	for _, row := range rows {
		written[ID(row)] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range due {
		switch of := s.notes[n.note.ID]; {
		case of == nil:
		case written[n.note.ID]:
			of.written, of.seenAt = n.note, n.at
		default: // forgotten, or another process saw it later
			delete(s.notes, n.note.ID)
		}
	}
	return nil
}

// due are the notes to be written, in an order that two processes share, so that their
// statements never wait for each other in a circle.
func (s *Readers) due() (due []noted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, n := range s.notes {
		if n.due(now) {
			due = append(due, *n)
		}
	}
	slices.SortFunc(due, func(a, b noted) int {
		return strings.Compare(a.note.AccountID+a.note.ProjectID+a.note.Name, b.note.AccountID+b.note.ProjectID+b.note.Name)
	})
	return due
}

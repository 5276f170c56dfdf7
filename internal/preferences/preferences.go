// Package preferences keeps a person's settings of the pages: filters under a name, and
// up to which notice of an account the person has read. None of it is a fact of the log,
// and all of it can be erased. Its tables are in the schema desk.
package preferences

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

const (
	maxViews = 30
	maxName  = 60
	maxQuery = 500
)

// Store keeps them. Many goroutines may use it.
type Store struct {
	db  *sqlx.DB
	now func() time.Time
}

// New makes a Store.
func New(db *sqlx.DB, now func() time.Time) *Store { return &Store{db, now} }

// View is a filter under a name.
type View struct {
	ID    uuid.UUID `db:"id"`
	Name  string    `db:"name"`
	Query string    `db:"query"` // of the page's URL, without the question mark
}

const viewsSQL = `
SELECT id, name, query
FROM desk.views
WHERE account_id = $1
  AND person_id = $2
ORDER BY lower(name), name`

// Views lists what the person keeps in the account, by name.
func (s *Store) Views(ctx context.Context, accountID, personID string) ([]View, error) {
	return pgpool.List[View](ctx, s.db, "saved views", viewsSQL, accountID, personID)
}

// A name that is there keeps its place and gets the new filter.
const keepViewSQL = `
INSERT INTO desk.views (id, person_id, account_id, name, query, created_at)
SELECT $1, $2, $3, $4, $5, $6
WHERE (
    SELECT COUNT(*)
    FROM desk.views
    WHERE person_id = $2
      AND account_id = $3
      AND name <> $4) < $7
ON CONFLICT (person_id, account_id, name) DO UPDATE
SET query = EXCLUDED.query`

// KeepView keeps a filter under the name, in place of the one that had it.
// Invalid, path "name", says what is wrong with the name.
func (s *Store) KeepView(ctx context.Context, accountID, personID, name, query string) error {
	name = strings.Join(strings.Fields(name), " ")
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		return domain.Invalid(domain.Detail{Path: "name", Message: "must not be blank"})
	case n > maxName:
		return domain.Invalid(domain.Detail{Path: "name", Message: fmt.Sprintf("must have at most %d characters", maxName)})
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return domain.Invalid(domain.Detail{Path: "name", Message: "must not have control characters"})
	case len(query) > maxQuery:
		return domain.Invalid(domain.Detail{Path: "query", Message: "is too long to be kept"})
	}
	full := domain.Conflict("you keep %d views already", maxViews).WithHint("drop one of them first")
	return pgpool.ExecOne(ctx, s.db, full, "keep a view", keepViewSQL, uuid.New(), personID, accountID, name, query, s.now(), maxViews)
}

const dropViewSQL = `
DELETE FROM desk.views
WHERE account_id = $1
  AND person_id = $2
  AND id = $3`

// DropView forgets a view; one that is gone is fine.
func (s *Store) DropView(ctx context.Context, accountID, personID string, id uuid.UUID) error {
	return pgpool.Exec(ctx, s.db, "drop a view", dropViewSQL, accountID, personID, id)
}

const seenSQL = `
SELECT cursor
FROM desk.seen
WHERE account_id = $1
  AND person_id = $2`

// Seen is the cursor up to which the person has seen the account's notices;
// empty: none.
func (s *Store) Seen(ctx context.Context, accountID, personID string) (cursor string, err error) {
	cursor, _, err = pgpool.Find[string](ctx, s.db, "how far notices are seen", seenSQL, accountID, personID)
	return cursor, err
}

const markSeenSQL = `
INSERT INTO desk.seen (person_id, account_id, cursor)
VALUES ($1, $2, $3)
ON CONFLICT (person_id, account_id) DO UPDATE
SET cursor = EXCLUDED.cursor`

// MarkSeen moves that cursor.
func (s *Store) MarkSeen(ctx context.Context, accountID, personID, cursor string) error {
	return pgpool.Exec(ctx, s.db, "note how far notices are seen", markSeenSQL, personID, accountID, cursor)
}

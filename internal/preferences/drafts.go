package preferences

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
)

// Draft is a form that a person has filled in and not sent. It never holds a secret.
type Draft struct {
	Fields  url.Values
	SavedAt time.Time
}

const keepDraftSQL = `
INSERT INTO desk.drafts (person_id, account_id, form, fields, saved_at)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (person_id, account_id, form) DO UPDATE
SET fields = EXCLUDED.fields,
    saved_at = EXCLUDED.saved_at`

// KeepDraft keeps the fields of a form in place of an earlier draft of it. The caller
// bounds them, and leaves secrets out.
func (s *Store) KeepDraft(ctx context.Context, accountID, personID, form string, fields url.Values) error {
	return pgpool.Exec(ctx, s.db, "keep a draft", keepDraftSQL, personID, accountID, form, fields.Encode(), s.now())
}

const draftSQL = `
SELECT fields, saved_at
FROM desk.drafts
WHERE account_id = $1
  AND person_id = $2
  AND form = $3`

// Draft is the person's draft of a form in the account; found is false without one.
func (s *Store) Draft(ctx context.Context, accountID, personID, form string) (kept Draft, found bool, err error) {
	row, found, err := pgpool.Find[struct {
		Fields  string    `db:"fields"`
		SavedAt time.Time `db:"saved_at"`
	}](ctx, s.db, "a draft", draftSQL, accountID, personID, form)
	if err != nil || !found {
		return kept, false, err
	}
	kept.SavedAt = row.SavedAt
	if kept.Fields, err = url.ParseQuery(row.Fields); err != nil {
		return kept, false, fmt.Errorf("read a draft: %w", err)
	}
	return kept, true, nil
}

const dropDraftSQL = `
DELETE FROM desk.drafts
WHERE account_id = $1
  AND person_id = $2
  AND form = $3`

// DropDraft forgets a draft; one that is gone is fine.
func (s *Store) DropDraft(ctx context.Context, accountID, personID, form string) error {
	return pgpool.Exec(ctx, s.db, "drop a draft", dropDraftSQL, accountID, personID, form)
}

const accountDraftsSQL = `
SELECT person_id, form, fields
FROM desk.drafts
WHERE account_id = $1`

// EraseDrafts removes the account's drafts that hold a text to be erased.
func EraseDrafts(ctx context.Context, db *sqlx.DB, accountID string, holds func(fields string) bool) error {
	rows, err := pgpool.List[struct {
		PersonID string `db:"person_id"`
		Form     string `db:"form"`
		Fields   string `db:"fields"`
	}](ctx, db, "drafts", accountDraftsSQL, accountID)
	for _, row := range rows {
		if err == nil && holds(row.Fields) {
			err = pgpool.Exec(ctx, db, "erase a draft", dropDraftSQL, accountID, row.PersonID, row.Form)
		}
	}
	return err
}

package mail

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

// Kind says what a notice is about.
type Kind string

// The kinds of notices.
const (
	Report   Kind = "report"
	Question Kind = "question"
	Credits  Kind = "credits"
	Webhook  Kind = "webhook"
)

// Notice is one thing to tell the people of an account.
type Notice struct {
	EventID   uuid.UUID `json:"event_id" db:"event_id"`
	AccountID string    `json:"account_id" db:"account_id"`
	Kind      Kind      `json:"kind" db:"kind"`
	Failed    bool      `json:"failed" db:"failed"`   // a report with failures, or a test that was given up
	Title     string    `json:"title" db:"title"`     // of the test, or of the subject of the notice
	Project   string    `json:"project" db:"project"` // its name; empty: none
	Verdict   string    `json:"verdict" db:"verdict"` // in a few words
	Path      string    `json:"path" db:"path"`       // of the page with the whole story
	At        time.Time `json:"at" db:"at"`
	// Projects are the ids of those whose chats are told.
	Projects []string `json:"projects" db:"-"`
}

const listenersSQL = `
SELECT DISTINCT account_id
FROM mail.choices
WHERE account_id = ANY($1)`

// Listeners gives the accounts of which some person wants notices.
func Listeners(ctx context.Context, db *sqlx.DB, accountIDs []string) (map[string]bool, error) {
	return pgpool.Set(ctx, db, "the accounts with e-mail", listenersSQL, pq.Array(accountIDs))
}

const addNoticesSQL = `
INSERT INTO mail.notices (event_id, person_id, account_id, kind, failed, title, project, verdict, path, at)
SELECT n.event_id, c.person_id, n.account_id, n.kind, n.failed, n.title, n.project, n.verdict, n.path, n.at
FROM json_to_recordset($1) AS n (event_id uuid, account_id text, kind text, failed boolean, title text, project text, verdict text,
    path text, at timestamptz, projects text[])
JOIN mail.choices c ON c.account_id = n.account_id
JOIN mail.people p ON p.person_id = c.person_id
WHERE p.confirmed_at < n.at
  AND CASE WHEN p.account_id IS NULL THEN $2 ELSE p.person_id = ANY(n.projects) END
  AND p.stopped_at IS NULL
  AND c.since < n.at
  AND (n.kind = 'report' AND (c.reports = 'all' OR c.reports = 'failures' AND n.failed)
    OR n.kind = 'question' AND c.questions
    OR n.kind = 'credits' AND c.credits
    OR n.kind = 'webhook' AND c.webhooks)
ON CONFLICT DO NOTHING`

// Add writes a notice for each chat that wants it, and for each person where people is true;
// one of the same event and person is there once.
func Add(ctx context.Context, tx *sqlx.Tx, list []Notice, people bool) error {
	return pgpool.Exec(ctx, tx, "add notices", addNoticesSQL, pgpool.Rows(list), people)
}

const setChatSQL = `
INSERT INTO mail.people (person_id, account_id, address, asked_at, confirmed_at)
VALUES ($1, $2, '', $3, $3)
ON CONFLICT DO NOTHING`

const dropChatSQL = `
WITH choices AS (
    DELETE FROM mail.choices
    WHERE person_id = $1
      AND account_id = $2
), people AS (
    DELETE FROM mail.people
    WHERE person_id = $1
), letters AS (
    DELETE FROM mail.letters
    WHERE person_id = $1
)
DELETE FROM mail.notices
WHERE person_id = $1`

// SetChat has the notices of a project go to its chat from that moment on; reports empty: no
// more, and what waits is forgotten.
func SetChat(ctx context.Context, tx *sqlx.Tx, accountID, projectID string, reports Reports, at time.Time) error {
	if reports == "" {
		return pgpool.Exec(ctx, tx, "drop the chat of project "+projectID, dropChatSQL, projectID, accountID)
	}
	if err := pgpool.Exec(ctx, tx, "choose for the chat of project "+projectID, chooseSQL, projectID, accountID, reports, true, true, true, at); err != nil {
		return err
	}
	return pgpool.Exec(ctx, tx, "add the chat of project "+projectID, setChatSQL, projectID, accountID, at)
}

const eraseAccountSQL = `
WITH choices AS (
    DELETE FROM mail.choices
    WHERE account_id = $1
), chats AS (
    DELETE FROM mail.people
    WHERE account_id = $1
), letters AS (
    DELETE FROM mail.letters
    WHERE account_id = $1
)
DELETE FROM mail.notices
WHERE account_id = $1`

const eraseJobSQL = `
UPDATE mail.notices
SET title = '` + domain.ErasedText + `', verdict = split_part(verdict, ': ', 1)
WHERE account_id = $1
  AND split_part(path, '#', 1) = '/dashboard/jobs/' || $2`

// EraseJob erases the title of a test in every notice of it, and what failed.
func EraseJob(ctx context.Context, tx *sqlx.Tx, accountID, jobID string) error {
	return pgpool.Exec(ctx, tx, "erase the notices of job "+jobID, eraseJobSQL, accountID, jobID)
}

// EraseAccount forgets every notice of an account, the choices of its people, and its chats.
func EraseAccount(ctx context.Context, tx *sqlx.Tx, accountID string) error {
	return pgpool.Exec(ctx, tx, "erase the notices of account "+accountID, eraseAccountSQL, accountID)
}

package jobs

import (
	"context"
	"time"

	"humanqa/domain/job"
	"humanqa/internal/pgpool"
)

// Checklist is the list of a test, without its items.
type Checklist struct {
	JobID     string    `json:"job_id"`
	Title     string    `json:"title"`
	CreatedAt time.Time `json:"created_at"`
	Items     int       `json:"items"`
}

// listsWalked is how many of a project's newest tests are looked at for other lists. A
// pipeline repeats its list with every deploy.
const listsWalked = 50

// Lists are equal whose items have the same keys. A finding is no part of a list, and neither
// a review by the AI nor an erased test has one.
const checklistsSQL = `
WITH lists AS (
    SELECT j.id AS job_id, j.title, j.created_at, COUNT(*) AS items,
           STRING_AGG(i.item ->> 'key', ' ' ORDER BY i.item ->> 'key') AS keys
    FROM (SELECT id, title, created_at, type, items, erased_at
          FROM readmodel.jobs
          WHERE account_id = $1
            AND project_id = $2
            AND project_id <> ''
          ORDER BY created_at DESC, id DESC
          LIMIT $3) AS j
    CROSS JOIN LATERAL jsonb_array_elements(j.items) AS i (item)
    WHERE j.type <> $5
      AND j.erased_at IS NULL
      AND i.item ->> 'id' NOT LIKE 'finding%'
    GROUP BY j.id, j.title, j.created_at)
SELECT job_id, title, created_at, items
FROM (SELECT DISTINCT ON (keys) *
      FROM lists
      ORDER BY keys, created_at DESC, job_id DESC) AS latest
ORDER BY created_at DESC, job_id DESC
LIMIT $4`

// Checklists gives the different lists of a project's newest tests, each by the last test
// that had it, the newest first.
func (q *Reads) Checklists(ctx context.Context, accountID, projectID string, limit int) ([]Checklist, error) {
	return pgpool.List[Checklist](ctx, q.db, "checklists of project "+projectID, checklistsSQL,
		accountID, projectID, listsWalked, limit, job.AIReview)
}

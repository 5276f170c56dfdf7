package overall

import (
	"context"

	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
	"humanqa/projections/retention"
)

// Hold is a hold on evidence of any account.
type Hold struct {
	AccountID string `json:"account_id"`
	retention.Hold
}

const holdsSQL = `
SELECT account_id, kind, id, reason, operator, placed_by, placed_at, count(*) OVER () AS total
FROM readmodel.retention_holds
ORDER BY placed_at DESC, kind, id
LIMIT $1 OFFSET $2`

// Holds lists holds on evidence, the newest first, and says how many there are.
func (q *Reads) Holds(ctx context.Context, page Page) (list []Hold, total int, err error) {
	rows, err := pgpool.List[struct {
		Hold
		Total int `json:"total"`
	}](ctx, q.db, "holds", holdsSQL, page.Limit, page.Offset)
	for _, row := range rows {
		list, total = append(list, row.Hold), row.Total
	}
	return list, total, err
}

const projectAccountSQL = `
SELECT account_id
FROM readmodel.retention_projects
WHERE project_id = $1`

// ProjectAccount gives the id of the project's account.
func (q *Reads) ProjectAccount(ctx context.Context, projectID string) (string, error) {
	return readmodel.Get[string](ctx, q.db, "project", projectAccountSQL, projectID)
}

package overall

import (
	"context"

	"humanqa/projections/readmodel"
	"humanqa/projections/retention"
)

// Hold is a hold on evidence of any account.
type Hold struct {
	AccountID string `json:"account_id"`
	retention.Hold
}

const countHoldsSQL = `
SELECT COUNT(*)
FROM readmodel.retention_holds`

const holdsSQL = `
SELECT account_id, kind, id, reason, operator, placed_by, placed_at
FROM readmodel.retention_holds
ORDER BY placed_at DESC, kind, id
LIMIT $1 OFFSET $2`

// Holds lists holds on evidence, the newest first, and says how many there are.
func (q *Reads) Holds(ctx context.Context, page Page) ([]Hold, int, error) {
	return readmodel.Page[Hold](ctx, q.db, "holds", countHoldsSQL, holdsSQL, nil, page.Limit, page.Offset)
}

const projectAccountSQL = `
SELECT account_id
FROM readmodel.retention_projects
WHERE project_id = $1`

// ProjectAccount gives the id of the project's account.
func (q *Reads) ProjectAccount(ctx context.Context, projectID string) (string, error) {
	return readmodel.Get[string](ctx, q.db, "project", projectAccountSQL, projectID)
}

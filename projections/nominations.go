package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"humanqa/domain/command"
)

// Nominations implements command.Nominations over the read models.
type Nominations struct{ *Reads }

var _ command.Nominations = Nominations{}

// The last condition is implied; it lets the planner use the partial index.
const projectForHostSQL = `
SELECT id
FROM readmodel.projects
WHERE account_id = $1
  AND default_host = $2
  AND default_host <> ''
ORDER BY created_at DESC, id DESC
LIMIT 1`

const testedSQL = `
SELECT EXISTS (
    SELECT 1
    FROM readmodel.job_counts
    WHERE account_id = $1
      AND project_id = $2
      AND jobs > 0)`

// ProjectForHost implements command.Nominations.
func (n Nominations) ProjectForHost(ctx context.Context, accountID, host string) (string, bool, error) {
	var id string
	switch err := n.Projects.db.GetContext(ctx, &id, projectForHostSQL, accountID, host); {
	case errors.Is(err, sql.ErrNoRows):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("look up the project of %s: %w", host, err)
	}
	return id, true, nil
}

// OpenFailures implements command.Nominations.
func (n Nominations) OpenFailures(ctx context.Context, accountID, projectID string, limit int) ([]command.Regression, error) {
	failures, err := n.History.open(ctx, accountID, projectID, limit)
	if err != nil {
		return nil, err
	}
	regressions := make([]command.Regression, len(failures))
	for i, f := range failures {
		regressions[i] = command.Regression{
			Key: f.Key, Description: f.Description, ExpectedOutcome: f.ExpectedOutcome,
			Severity: f.Severity, FailedAt: f.FailedAt,
		}
	}
	return regressions, nil
}

// Tested implements command.Nominations.
func (n Nominations) Tested(ctx context.Context, accountID, projectID string) (tested bool, err error) {
	if err := n.Jobs.db.GetContext(ctx, &tested, testedSQL, accountID, projectID); err != nil {
		return false, fmt.Errorf("look whether project %s was tested: %w", projectID, err)
	}
	return tested, nil
}

package projections

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/projections/jobs"
)

// CommandReads implements command.Reads over the read models.
type CommandReads struct{ *Reads }

var _ command.Reads = CommandReads{}

// ProjectForHost implements command.Reads.
func (n CommandReads) ProjectForHost(ctx context.Context, accountID, host string) (string, bool, error) {
	return n.Projects.ForHost(ctx, accountID, host)
}

// OpenFailures implements command.Reads.
func (n CommandReads) OpenFailures(ctx context.Context, accountID, projectID string, limit int) ([]command.Regression, error) {
	failures, err := n.History.Open(ctx, accountID, projectID, limit)
	if err != nil {
		return nil, err
	}
	regressions := make([]command.Regression, 0, len(failures))
	for _, f := range failures {
		if f.Description == domain.ErasedText {
			continue // without a description a checker would not know where to look
		}
		item := job.Item{Key: f.Key, Description: f.Description, ExpectedOutcome: f.ExpectedOutcome, Severity: f.Severity}
		regressions = append(regressions, command.Regression{Item: item, FailedAt: f.FailedAt})
	}
	return regressions, nil
}

// KnownKeys implements command.Reads.
func (n CommandReads) KnownKeys(ctx context.Context, accountID, projectID string, keys []string) (map[string]string, error) {
	return n.History.KnownKeys(ctx, accountID, projectID, keys)
}

// Tested implements command.Reads.
func (n CommandReads) Tested(ctx context.Context, accountID, projectID string) (bool, error) {
	return n.Jobs.Tested(ctx, accountID, projectID)
}

// Ended implements command.Reads.
func (n CommandReads) Ended(ctx context.Context, accountID string, jobIDs []string) ([]string, error) {
	return n.Jobs.Ended(ctx, accountID, jobIDs)
}

// Waiting implements command.Reads.
func (n CommandReads) Waiting(ctx context.Context, accountID, projectID string, limit int) ([]string, error) {
	page, _, err := n.Jobs.List(ctx, accountID, jobs.Filter{Status: job.StatusPending, ProjectID: projectID, Limit: limit})
	ids := make([]string, len(page))
	for i, j := range page {
		ids[i] = j.ID
	}
	return ids, err
}

// SamePlace implements command.Reads.
func (n CommandReads) SamePlace(ctx context.Context, accountID string, place job.CommitStatus) ([]string, error) {
	return n.Commits.SamePlace(ctx, accountID, place)
}

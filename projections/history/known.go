package history

import (
	"context"
	"slices"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

// failuresAmong bounds the open failures of a project that a search reads.
const failuresAmong = 200

// Claims says which job a checker holds: *command.Service.
type Claims interface {
	LiveClaim(ctx context.Context, checkerID string) (claim command.ClaimedJob, held bool, err error)
}

// KnownTo gives the open failures of the project of the checker's claimed job, the newest
// first. With a text it gives only similar failures, the most similar first. It leaves
// out failures that the list or a finding already covers.
func (q *Reads) KnownTo(ctx context.Context, claims Claims, checkerID, jobID, text string, limit int) ([]OpenFailure, error) {
	c, held, err := claims.LiveClaim(ctx, checkerID)
	switch {
	case err != nil:
		return nil, err
	case !held || c.JobID != jobID:
		return nil, domain.NotFound("job")
	case c.Waiting:
		return nil, job.NotStarted()
	}
	if c.ProjectID == "" {
		return nil, nil
	}
	open, err := q.Open(ctx, c.AccountID, c.ProjectID, failuresAmong)
	if err != nil {
		return nil, err
	}
	told := map[string]bool{}
	for _, items := range [][]job.ReportItem{c.Checklist, c.Findings} {
		for _, i := range items {
			told[i.Key] = true
		}
	}
	open = slices.DeleteFunc(open, func(f OpenFailure) bool { return told[f.Key] })
	if text != "" {
		open = Similar(open, text, limit)
	}
	return open[:min(len(open), limit)], nil
}

package command

import (
	"context"
)

// Retest clones a job of the account.
func (s *Service) Retest(ctx context.Context, cause Cause, jobID string) (SubmittedJob, error) {
	panic("not built yet")
}

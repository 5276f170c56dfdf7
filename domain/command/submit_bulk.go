package command

import (
	"context"
)

// SubmitBulk submits all jobs or none.
func (s *Service) SubmitBulk(ctx context.Context, cause Cause, jobs []SubmitJob) (SubmittedBatch, error) {
	panic("not built yet")
}

package command

import (
	"context"
)

// EstimateJob says what a submission would cost.
func (s *Service) EstimateJob(ctx context.Context, cause Cause, in SubmitJob) (Estimate, error) {
	panic("not built yet")
}

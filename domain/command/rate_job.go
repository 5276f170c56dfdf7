package command

import (
	"context"
	"humanqa/domain"
)

// RateJob records the client's rating of a completed job.
func (s *Service) RateJob(ctx context.Context, cause Cause, jobID string, rating int, note string) (domain.Position, error) {
	panic("not built yet")
}

package command

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// RateJob records the client's rating of a completed job; a later one replaces
// an earlier one.
func (s *Service) RateJob(ctx context.Context, cause Cause, jobID string, rating int, note string) (domain.Position, error) {
	_, at, err := s.OnJob(ctx, cause, jobID, func(st job.State, now time.Time) ([]domain.Event, error) {
		return job.DecideRate(st, rating, note, now)
	})
	return at, err
}

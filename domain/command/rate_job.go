package command

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

// RateJob records the client's rating of a completed job; a later one replaces
// an earlier one.
func (s *Service) RateJob(ctx context.Context, cause Cause, jobID string, rating int, note string) (domain.Position, error) {
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return domain.Position{}, err
	}
	return repository.Decide(ctx, s.jobs, cause, domain.JobStream(jobID), func(st job.State) ([]domain.Event, error) {
		if st.AccountID != cause.AccountID {
			return nil, domain.NotFound("job")
		}
		return job.DecideRate(st, rating, note, now)
	})
}

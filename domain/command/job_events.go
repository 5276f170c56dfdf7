package command

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/job"
)

// JobEvents calls each for every event of the account's job, in order, as the
// log holds it; NotFound for another account's.
func (s *Service) JobEvents(ctx context.Context, accountID, jobID string, each func(domain.Recorded)) error {
	found := false
	err := s.Log.Load(ctx, domain.JobStream(jobID), 0, func(r domain.Recorded) error {
		if created, ok := r.Event.(*job.Created); ok {
			found = created.AccountID == accountID
		}
		if !found {
			return domain.NotFound("job")
		}
		if r.Event != nil { // of a newer binary
			each(r)
		}
		return nil
	})
	if err == nil && !found {
		return domain.NotFound("job")
	}
	return err
}

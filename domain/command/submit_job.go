package command

import (
	"context"
)

// SubmitJob charges the account and submits the job. It fails with
// InsufficientCredits, or NotFound for a project that is not the account's;
// nothing is written then. The same command submits the same job once.
func (s *Service) SubmitJob(ctx context.Context, cause Cause, in SubmitJob) (SubmittedJob, error) {
	inherits, err := s.inherit(ctx, cause.AccountID, in.ProjectID)
	if err != nil {
		return SubmittedJob{}, err
	}
	return again(ctx, s, cause, func(cause Cause) (SubmittedJob, error) {
		return s.submit(ctx, cause, ownJob(cause), newJob{SubmitJob: in, Inherits: inherits})
	})
}

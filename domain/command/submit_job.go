package command

import (
	"context"

	"humanqa/domain"
)

// SubmitJob charges the account and submits the job. It fails with
// InsufficientCredits, or NotFound for a project that is not the account's;
// nothing is written then. The same command submits the same job once.
func (s *Service) SubmitJob(ctx context.Context, cause Cause, in SubmitJob) (SubmittedJob, error) {
	if in.ProjectID != "" {
		if err := s.inherit(ctx, cause.AccountID, &in); err != nil {
			return SubmittedJob{}, err
		}
	}
	jobID := domain.DeriveID(cause.CommandID, "job").String()
	return s.submit(ctx, cause, jobID, submission{SubmitJob: in})
}

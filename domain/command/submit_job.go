package command

import "context"

// SubmitJob charges the account and submits the job. It fails with
// InsufficientCredits, or NotFound for a project that is not the account's;
// nothing is written then. The same command submits the same job once.
func (s *Service) SubmitJob(ctx context.Context, cause Cause, in SubmitJob) (SubmittedJob, error) {
	return again(ctx, s, cause, func(cause Cause) (SubmittedJob, error) {
		sla, err := s.projectSLA(ctx, cause.AccountID, in.ProjectID, ownJob(cause))
		if err != nil {
			return SubmittedJob{}, err
		}
		return s.chargeAndOpen(ctx, cause, ownJob(cause), newJob{SubmitJob: in, DefaultSLA: sla})
	})
}

// projectSLA checks that the project, if there is one, is the account's and takes the jobs,
// and gives its default SLA in minutes; 0: it has none.
func (s *Service) projectSLA(ctx context.Context, accountID, projectID string, jobIDs ...string) (minutes int, err error) {
	if projectID == "" {
		return 0, nil
	}
	p, err := s.openProject(ctx, accountID, projectID, jobIDs...)
	if err == nil && p.DefaultSLAMinutes != nil {
		minutes = *p.DefaultSLAMinutes
	}
	return minutes, err
}

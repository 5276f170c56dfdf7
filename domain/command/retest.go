package command

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/command/claims"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

// Retest submits a job of the account once more: the same submission with the current
// checklist, but in no session, batch or loop. The secrets are sealed again, for the new
// job's stream.
func (s *Service) Retest(ctx context.Context, cause Cause, jobID string) (SubmittedJob, error) {
	type original struct {
		newJob
		sealed job.State // only what the brief needs
		erased bool
	}
	o, err := repository.Read(ctx, s.Jobs, domain.JobStream(jobID), func(st job.State) *original {
		if !st.Exists || st.AccountID != cause.AccountID {
			return nil
		}
		if !st.ErasedAt.IsZero() {
			return &original{erased: true}
		}
		o := &original{
			newJob: newJob{
				SubmitJob:   SubmitJob{Submission: st.Again(jobID)},
				GeneratedBy: st.GeneratedBy, Regressions: st.Regressions,
			},
			sealed: claims.Briefed(st),
		}
		o.sealed.SessionID = "" // a retest has no role in a session
		for _, i := range st.Items {
			if i.Origin != "" {
				o.Regressions = append(o.Regressions, i)
				continue
			}
			o.Items = append(o.Items, NewItem{
				Key: i.Key, Description: i.Description, ExpectedOutcome: i.ExpectedOutcome, Severity: i.Severity,
			})
		}
		return o
	})
	switch {
	case err != nil:
		return SubmittedJob{}, err
	case o == nil:
		return SubmittedJob{}, domain.NotFound("job")
	case o.erased:
		return SubmittedJob{}, domain.Conflict("the job was erased").WithHint("submit a new one")
	}
	secrets, err := s.Brief(ctx, jobID, o.sealed)
	if err != nil {
		return SubmittedJob{}, err
	}
	o.Credentials, o.AccessInstructions = secrets.Credentials, secrets.AccessInstructions
	return again(ctx, s, cause, func(cause Cause) (SubmittedJob, error) {
		return s.chargeAndOpen(ctx, cause, ownJob(cause), o.newJob)
	})
}

package command

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/job"
)

// Retest submits a job of the account once more: everything that was
// submitted, with the list as it stands, but in no session, batch or loop. The
// secrets are sealed again, for the new job's stream.
func (s *Service) Retest(ctx context.Context, cause Cause, jobID string) (SubmittedJob, error) {
	type original struct {
		submission
		sealed job.State // only what the brief needs
	}
	o, err := read(ctx, s.jobs, domain.JobStream(jobID), func(st job.State) *original {
		if !st.Exists || st.AccountID != cause.AccountID {
			return nil
		}
		o := &original{
			submission: submission{
				SubmitJob: SubmitJob{
					ProjectID: st.ProjectID, URL: st.URL, Title: st.Title, Description: st.Description, Feature: st.Feature,
					Type: st.Type, TypeEcho: st.TypeEcho, Urgent: st.Urgent, SLAMinutes: st.SLAMinutes, Target: st.Target,
					Source: "retest", ParentID: jobID,
				},
				HostedApp: st.HostedApp, GeneratedBy: st.GeneratedBy, Regressions: st.Regressions,
			},
			sealed: job.State{
				AccountID: st.AccountID, Credentials: st.Credentials, AccessInstructions: st.AccessInstructions,
			},
		}
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
	}
	secrets, err := s.brief(ctx, jobID, o.sealed)
	if err != nil {
		return SubmittedJob{}, err
	}
	o.Credentials, o.AccessInstructions = secrets.Credentials, secrets.AccessInstructions
	return s.submit(ctx, cause, domain.DeriveID(cause.CommandID, "job").String(), o.submission)
}

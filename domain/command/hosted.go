package command

import (
	"context"
	"fmt"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/project"
)

// TestHosted submits a hosted test: project and type are found by themselves,
// and what failed before, or was said to be fixed, is tested again
// (specification, "POST /v1/hosted/test"). A refusal writes nothing; the same
// command submits the same test once.
func (s *Service) TestHosted(ctx context.Context, cause Cause, in HostedTest) (HostedJob, error) {
	out, _, err := s.testHosted(ctx, cause, domain.DeriveID(cause.CommandID, "job").String(), in, nil)
	return out, err
}

// testHosted submits the test as the job of that id. With the keys of a deploy
// another job that came under one of them may live already: then only its id is
// answered.
func (s *Service) testHosted(
	ctx context.Context, cause Cause, jobID string, in HostedTest, deployKeys []string,
) (out HostedJob, living string, err error) {
	if out, found, err := s.submitted(ctx, cause, jobID); found || err != nil {
		return out, "", err
	}
	ground, err := s.layGround(ctx, cause, in, []string{jobID}, deployKeys)
	if err != nil || ground.living != "" {
		return HostedJob{}, ground.living, err
	}
	job, loopSession := ground.submission(in), ""
	if in.Loop != nil {
		job.Source = "loop"
		job.LoopID, loopSession, err = s.joinLoop(ctx, cause, ground.projectID, *in.Loop, jobID, Price(ground.jobType, in.Urgent))
		if err != nil {
			return HostedJob{}, "", err
		}
	}
	handle, err := s.submit(ctx, cause, jobID, job)
	if err != nil {
		return HostedJob{}, "", s.tellLoop(ctx, cause, ground.projectID, in.Loop, jobID, err)
	}
	return HostedJob{
		SubmittedJob: handle, ProjectID: ground.projectID,
		Type: ground.jobType, TypeEcho: ground.typeEcho, RegressionItems: len(ground.regressions),
		LoopSessionID: loopSession,
	}, "", nil
}

// submission is the test as a job.
func (g ground) submission(in HostedTest) submission {
	description := in.Feature
	if description == "" {
		description = "Test the app as a whole."
	}
	if in.Remark != "" {
		description += "\n\n" + in.Remark
	}
	return submission{
		SubmitJob: SubmitJob{
			ProjectID: g.projectID, URL: in.URL,
			Title: shorten("Hosted test of "+in.Host, maxTitle), Description: description, Feature: in.Feature,
			Type: g.jobType, TypeEcho: g.typeEcho, Urgent: in.Urgent, SLAMinutes: g.slaMinutes,
			AccessInstructions: in.AccessInstructions, Target: in.Target, Source: in.Source,
		},
		HostedApp: in.HostedApp, Regressions: g.regressions, Prepared: g.prepared,
	}
}

// tellLoop passes err on; that of an account without the credits ends the
// agent's loop.
func (s *Service) tellLoop(ctx context.Context, cause Cause, projectID string, step *LoopStep, jobID string, err error) error {
	if step == nil || !domain.IsKind(err, domain.KindPayment) {
		return err
	}
	if failed := s.loopOutOfCredits(ctx, cause, projectID, *step, jobID); failed != nil {
		return failed
	}
	return err
}

// submitted answers a repeat: a job of that id is there already.
func (s *Service) submitted(ctx context.Context, cause Cause, jobID string) (out HostedJob, found bool, err error) {
	loopID := ""
	out, err = read(ctx, s.jobs, domain.JobStream(jobID), func(st job.State) HostedJob {
		if !st.Exists || st.AccountID != cause.AccountID {
			return HostedJob{}
		}
		loopID = st.LoopID
		out := HostedJob{
			SubmittedJob: SubmittedJob{
				JobID: jobID, Status: st.Status, EstimatedMinutes: estimate(st.SLAMinutes, st.Urgent),
				CreditsDeducted: st.Price, ChecklistItemCount: len(st.Items),
			},
			ProjectID: st.ProjectID, Type: st.Type, TypeEcho: st.TypeEcho,
			RegressionItems: len(st.Regressions), // of a list that is still to be written
		}
		for _, item := range st.Items {
			if item.Origin != "" {
				out.RegressionItems++
			}
		}
		return out
	})
	if err != nil || out.JobID == "" {
		return HostedJob{}, false, err
	}
	if loopID != "" {
		if out.LoopSessionID, err = s.loopSession(ctx, loopID, jobID); err != nil {
			return HostedJob{}, false, err
		}
	}
	out.CreditsRemaining, err = s.available(ctx, cause)
	return out, true, err
}

// available is what the account can spend now.
func (s *Service) available(ctx context.Context, cause Cause) (domain.Credits, error) {
	now, err := s.clock(ctx, cause)
	if err != nil {
		return 0, err
	}
	return read(ctx, s.ledgers, domain.CreditsStream(cause.AccountID), func(st credits.State) domain.Credits {
		return st.Available(now)
	})
}

// ownedProject reads a project; one of another account does not exist.
func (s *Service) ownedProject(ctx context.Context, cause Cause, projectID string) (project.State, error) {
	p, err := read(ctx, s.projects, domain.ProjectStream(projectID), func(p project.State) project.State { return p })
	switch {
	case err != nil:
		return project.State{}, fmt.Errorf("read project %s: %w", projectID, err)
	case !p.Exists || p.AccountID != cause.AccountID:
		return project.State{}, domain.NotFound("project")
	}
	return p, nil
}

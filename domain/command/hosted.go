package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/project"
	"humanqa/domain/repository"
)

// TestHosted submits a hosted test. It finds the project and the type. Items that failed
// before, and prepared fixes, are tested again (specification, "POST /v1/hosted/test"). A
// refusal writes nothing; the same command submits the same test once.
func (s *Service) TestHosted(ctx context.Context, cause Cause, in HostedTest) (HostedJob, error) {
	return again(ctx, s, cause, func(cause Cause) (HostedJob, error) {
		out, _, err := s.testHosted(ctx, cause, ownJob(cause), in, nil)
		return out, err
	})
}

// testHosted submits the test as the job of that id. With the keys of a deploy, another
// job of one of these keys may live already: then it gives only the id of that job.
func (s *Service) testHosted(
	ctx context.Context, cause Cause, jobID string, in HostedTest, deployKeys []string,
) (out HostedJob, living string, err error) {
	if out, found, err := s.findSubmitted(ctx, cause, jobID); found || err != nil {
		return out, "", err
	}
	prepared, err := s.prepareTest(ctx, cause, in, []string{jobID}, deployKeys)
	if err != nil || prepared.living != "" {
		return HostedJob{}, prepared.living, err
	}
	test, loopSession := prepared.newJob(in), ""
	if in.Loop != nil {
		test.Source = "loop"
		test.LoopID, loopSession, err = s.joinLoop(ctx, cause, prepared.projectID, *in.Loop, jobID, prepared.jobType.Price(in.Urgent))
		if err != nil {
			return HostedJob{}, "", err
		}
	}
	handle, err := s.chargeAndOpen(ctx, cause, jobID, test)
	if err != nil {
		return HostedJob{}, "", s.tellLoop(ctx, cause, prepared.projectID, in.Loop, jobID, err)
	}
	return HostedJob{
		SubmittedJob: handle, ProjectID: prepared.projectID,
		Type: prepared.jobType, TypeEcho: prepared.typeEcho, RegressionItems: len(prepared.regressions),
		LoopSessionID: loopSession,
	}, "", nil
}

// newJob is the test as a job.
func (g preparation) newJob(in HostedTest) newJob {
	submission := in.Submission
	submission.ProjectID, submission.Type, submission.TypeEcho, submission.SLAMinutes = g.projectID, g.jobType, g.typeEcho, g.slaMinutes
	title := cmp.Or(strings.Join(strings.Fields(in.Feature), " "), "Hosted test of "+in.Host)
	submission.Title, submission.Description = shorten(title, maxTitle), cmp.Or(in.Feature, "Test the app as a whole.")
	items := in.Items
	if g.jobType.Automatic() {
		items = nil
	}
	return newJob{
		SubmitJob: SubmitJob{
			Submission: submission, AccessInstructions: in.AccessInstructions, Items: items, CommitStatus: in.CommitStatus,
		},
		Regressions: g.regressions, Prepared: g.prepared,
	}
}

// tellLoop returns err. If err says that the account lacks credits, it also ends the
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

// findSubmitted answers a repeat: a job of that id is there already.
func (s *Service) findSubmitted(ctx context.Context, cause Cause, jobID string) (out HostedJob, found bool, err error) {
	st, err := s.Job(ctx, jobID)
	if err != nil || !st.Exists || st.AccountID != cause.AccountID {
		return HostedJob{}, false, err
	}
	out = HostedJob{
		SubmittedJob: submittedAs(jobID, st), ProjectID: st.ProjectID, Type: st.Type, TypeEcho: st.TypeEcho,
		RegressionItems: len(st.Regressions), // of a list that is still to be written
	}
	for _, item := range st.Items {
		if item.Origin != "" {
			out.RegressionItems++
		}
	}
	if st.LoopID != "" {
		if out.LoopSessionID, err = s.loopSession(ctx, st.LoopID, jobID); err != nil {
			return HostedJob{}, false, err
		}
	}
	out.CreditsRemaining, err = s.availableCredits(ctx, cause)
	return out, true, err
}

// availableCredits is the amount that the account can spend now.
func (s *Service) availableCredits(ctx context.Context, cause Cause) (domain.Credits, error) {
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return 0, err
	}
	return repository.Read(ctx, s.Ledgers, domain.CreditsStream(cause.AccountID), func(st credits.State) domain.Credits {
		return st.Available(now)
	})
}

// openProject is ownedProject for a new test. An archived project takes none but jobs that a
// repeat of the command finds.
func (s *Service) openProject(ctx context.Context, accountID, projectID string, jobIDs ...string) (project.State, error) {
	p, err := s.ownedProject(ctx, accountID, projectID)
	if err != nil || p.ArchivedAt == nil {
		return p, err
	}
	came := len(jobIDs) > 0
	for _, id := range jobIDs {
		j, err := s.Job(ctx, id)
		if err != nil {
			return p, err
		}
		came = came && j.Exists
	}
	if !came {
		err = p.TakesTests()
	}
	return p, err
}

// ownedProject reads a project; one of another account does not exist.
func (s *Service) ownedProject(ctx context.Context, accountID, projectID string) (project.State, error) {
	p, err := s.Project(ctx, projectID)
	switch {
	case err != nil:
		return project.State{}, fmt.Errorf("read project %s: %w", projectID, err)
	case !p.Exists || p.AccountID != accountID:
		return project.State{}, domain.NotFound("project")
	}
	return p, nil
}

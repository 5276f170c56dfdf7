package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/command/claims"
	"humanqa/domain/credits"
	"humanqa/domain/project"
)

// Retest submits a job of the account once more: the same submission with the current
// checklist, but in no session, batch or loop. The fixes that its project has prepared come
// first, as in a hosted test. The secrets are sealed again, for the new job's stream.
func (s *Service) Retest(ctx context.Context, cause Cause, jobID string) (SubmittedJob, error) {
	o, err := s.original(ctx, cause, jobID)
	if err != nil {
		return SubmittedJob{}, err
	}
	return again(ctx, s, cause, func(cause Cause) (SubmittedJob, error) {
		jobID, test := ownJob(cause), o
		if out, found, err := s.findSubmitted(ctx, cause, jobID); found || err != nil {
			return out.SubmittedJob, err
		}
		if err := s.takePrepared(ctx, cause, jobID, &test); err != nil {
			return SubmittedJob{}, err
		}
		return s.chargeAndOpen(ctx, cause, jobID, test)
	})
}

// RetestBatch submits jobs of the account once more, as one batch of that name: all of them
// or none. It leaves the prepared fixes of their projects to other tests.
func (s *Service) RetestBatch(ctx context.Context, cause Cause, name string, jobIDs []string) (SubmittedBatch, error) {
	tests := make([]newJob, len(jobIDs))
	err := together(len(jobIDs), func(i int) (err error) {
		tests[i], err = s.original(ctx, cause, jobIDs[i])
		tests[i].BatchName = name
		return err
	})
	if err != nil {
		return SubmittedBatch{}, err
	}
	return s.submitAll(ctx, cause, tests)
}

// original is what a retest of the job submits.
func (s *Service) original(ctx context.Context, cause Cause, jobID string) (newJob, error) {
	st, err := s.Job(ctx, jobID)
	switch {
	case err != nil:
		return newJob{}, err
	case !st.Exists || st.AccountID != cause.AccountID:
		return newJob{}, domain.NotFound("job")
	case !st.ErasedAt.IsZero():
		return newJob{}, domain.Conflict("the job was erased").WithHint("submit a new one")
	}
	o := newJob{
		SubmitJob:   SubmitJob{Submission: st.Again(jobID)},
		GeneratedBy: st.GeneratedBy, Regressions: slices.Clone(st.Regressions),
	}
	for _, i := range st.Items {
		if i.Origin != "" {
			o.Regressions = append(o.Regressions, i)
			continue
		}
		i.ID = "" // the new list numbers its items
		o.Items = append(o.Items, i)
	}
	var secrets claims.Brief
	if err := s.OpenSecrets(ctx, jobID, st, &secrets); err != nil {
		return newJob{}, err
	}
	o.Credentials, o.AccessInstructions = secrets.Credentials, secrets.AccessInstructions
	return o, nil
}

// takePrepared puts the fixes that wait in the project's queue in front of the checklist, and
// takes them from the queue for the job. Without credits it takes none.
func (s *Service) takePrepared(ctx context.Context, cause Cause, jobID string, test *newJob) error {
	if test.ProjectID == "" {
		return nil
	}
	p, err := s.openProject(ctx, cause.AccountID, test.ProjectID)
	if err != nil || len(p.Queue) == 0 || test.Type.Automatic() { // a review cannot show whether a bug is gone
		return err
	}
	outcomes, err := s.readOutcomes(ctx, cause, p, nil)
	if err != nil {
		return err
	}
	if err := s.ledger.CheckFunds(ctx, cause, credits.Charge{JobID: jobID, Amount: test.Type.Price(test.Urgent)}); err != nil {
		return err
	}
	var taken preparation
	_, _, err = s.OnProject(ctx, cause, test.ProjectID, func(st project.State, now time.Time) ([]domain.Event, error) {
		write := project.TestCommand{JobIDs: []string{jobID}, At: now}
		taken.regressions, taken.prepared = regressions(nil, st.Waiting(write.JobIDs, outcomes.fix))
		write.Take, write.Forget = taken.prepared, st.Verified(outcomes.fix)
		return project.DecideTest(st, write)
	})
	if err != nil {
		return fmt.Errorf("take the fixes of project %s: %w", test.ProjectID, err)
	}
	test.Prepared, test.Regressions = taken.prepared, append(taken.regressions, test.Regressions...)
	return nil
}

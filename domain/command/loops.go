package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/repository"
)

// LoopID names the loop of an agent's skill on a project.
func LoopID(projectID, skill string) string {
	return domain.CommandIDFor("loop", projectID, skill).String()
}

// joinLoop counts a test into the loop session that runs, or into one that it starts, and
// names the loop and the session. It comes before the charge and the job, and counts a
// job once: a submission that is repeated joins nothing more. RecordLoopOutcome removes
// the test of a submission that is never finished.
func (s *Service) joinLoop(
	ctx context.Context, cause Cause, projectID string, step LoopStep, jobID string, price domain.Credits,
) (loopID, sessionID string, err error) {
	at, err := s.loopSetting(ctx, cause, projectID)
	if err != nil {
		return "", "", err
	}
	loopID = LoopID(projectID, step.Skill)
	sessionID, _, err = repository.Execute(ctx, s.Loops, cause, domain.LoopStream(loopID),
		func(st loop.State) ([]domain.Event, error) {
			return loop.DecideJoin(st, loop.Started{
				SessionID: domain.DeriveID(cause.CommandID, "loop session").String(),
				AccountID: cause.AccountID, ProjectID: projectID, Skill: step.Skill, MaxIterations: step.MaxIterations,
			}, loop.Iterated{JobID: jobID, Iteration: step.Iteration, Credits: price}, at)
		},
		func(st loop.State) string { return st.Jobs[jobID] })
	return loopID, sessionID, err
}

// loopSession is the session that a job was counted into.
func (s *Service) loopSession(ctx context.Context, loopID, jobID string) (sessionID string, err error) {
	return repository.Read(ctx, s.Loops, domain.LoopStream(loopID), func(st loop.State) string { return st.Jobs[jobID] })
}

// loopOutOfCredits ends the running loop session after a test without enough credits.
func (s *Service) loopOutOfCredits(ctx context.Context, cause Cause, projectID string, step LoopStep, jobID string) error {
	at, err := s.loopSetting(ctx, cause, projectID)
	if err != nil {
		return err
	}
	// A separate step: the test may have joined under the command's own id.
	cause, stream := cause.Step("out of credits"), domain.LoopStream(LoopID(projectID, step.Skill))
	_, err = repository.Decide(ctx, s.Loops, cause, stream, func(st loop.State) ([]domain.Event, error) {
		return loop.DecideOutOfCredits(st, jobID, at)
	})
	return err
}

// FinalizeLoop ends a loop session by the agent's order.
func (s *Service) FinalizeLoop(ctx context.Context, cause Cause, loopID, sessionID string, final loop.Status) (domain.Position, error) {
	return s.onLoop(ctx, cause, loopID, func(st loop.State, at loop.Setting) ([]domain.Event, error) {
		if st.Session.AccountID != cause.AccountID {
			return nil, domain.NotFound("loop session")
		}
		return loop.DecideFinalize(st, sessionID, final, at)
	})
}

// AbandonLoop ends the loop's session if its agent has been silent for too
// long.
func (s *Service) AbandonLoop(ctx context.Context, cause Cause, loopID string) (domain.Position, error) {
	return s.onLoop(ctx, cause, loopID, loop.DecideAbandon)
}

// RecordLoopOutcome tells the loop the outcome of a test, once that is known. The outcome
// of a test without a job is known once its charge is settled; until then the call fails.
// A test without a charge is not waited for: no policy would settle it. If its client
// comes back, the test is submitted, and the loop ignores it.
func (s *Service) RecordLoopOutcome(ctx context.Context, cause Cause, loopID, jobID string) (domain.Position, error) {
	test, err := s.Job(ctx, jobID)
	switch {
	case err != nil:
		return domain.Position{}, err
	case test.Status == "": // it has not come
		charged, err := s.isCharged(ctx, loopID, jobID)
		if err != nil {
			return domain.Position{}, err
		}
		if charged {
			return domain.Position{}, fmt.Errorf("job %s of loop %s has not come yet", jobID, loopID)
		}
	case test.Status == job.StatusPending || test.Status == job.StatusClaimed:
		return domain.Position{}, nil // the job's end will call again
	}
	outcome := loop.OutcomeRecorded{JobID: jobID, FailingKeys: []string{}}
	switch {
	case test.Report != nil:
		outcome.Overall, outcome.ReportID = test.Report.OverallStatus, test.Report.ReportID
		for _, i := range test.Report.Items {
			if i.Status == job.ItemFail {
				outcome.FailingKeys = append(outcome.FailingKeys, i.Key)
			}
		}
		slices.Sort(outcome.FailingKeys)
		outcome.FailingKeys = slices.Compact(outcome.FailingKeys)
	case test.Exists:
		outcome.Refund = test.Price
	}
	return s.onLoop(ctx, cause, loopID, func(st loop.State, at loop.Setting) ([]domain.Event, error) {
		if !test.Exists {
			outcome.Refund = st.Session.Open[jobID]
		}
		return loop.DecideRecordOutcome(st, outcome, at)
	})
}

// isCharged says whether a test of the loop was paid for.
func (s *Service) isCharged(ctx context.Context, loopID, jobID string) (bool, error) {
	accountID, err := repository.Read(ctx, s.Loops, domain.LoopStream(loopID), func(st loop.State) string { return st.Session.AccountID })
	if err != nil {
		return false, err
	}
	return repository.Read(ctx, s.Ledgers, domain.CreditsStream(accountID), func(st credits.State) bool {
		_, charged := st.Debit(jobID)
		return charged
	})
}

// onLoop runs a command on an existing loop. Policies and checkers don't know its
// account; the loop does.
func (s *Service) onLoop(
	ctx context.Context, cause Cause, loopID string, decide func(loop.State, loop.Setting) ([]domain.Event, error),
) (domain.Position, error) {
	type owner struct{ accountID, projectID string }
	of, err := repository.Read(ctx, s.Loops, domain.LoopStream(loopID), func(st loop.State) owner {
		return owner{st.Session.AccountID, st.Session.ProjectID}
	})
	switch {
	case err != nil:
		return domain.Position{}, err
	case of.accountID == "":
		return domain.Position{}, domain.NotFound("loop session")
	}
	cause.AccountID = cmp.Or(cause.AccountID, of.accountID)
	at, err := s.loopSetting(ctx, cause, of.projectID)
	if err != nil {
		return domain.Position{}, err
	}
	return repository.Decide(ctx, s.Loops, cause, domain.LoopStream(loopID), func(st loop.State) ([]domain.Event, error) {
		return decide(st, at)
	})
}

// loopSetting reads the facts that decide the end of a session.
func (s *Service) loopSetting(ctx context.Context, cause Cause, projectID string) (loop.Setting, error) {
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return loop.Setting{}, err
	}
	p, err := s.Project(ctx, projectID)
	snoozed := p.LoopAlertsSnoozedUntil != nil && now.Before(*p.LoopAlertsSnoozedUntil)
	return loop.Setting{ProjectName: p.Name, Snoozed: snoozed, Now: now}, err
}

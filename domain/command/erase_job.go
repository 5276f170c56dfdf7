package command

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

// ErasingJob has the facts about a job that decide its erasure.
type ErasingJob struct {
	AccountID string
	Sandbox   bool
	Open      bool // it has not ended
	Erased    bool // the log says so; its texts and files may still be there
	Held      bool // a hold of the job, its project or its account keeps its evidence
}

// ErasingJob looks at a job before its erasure; NotFound without one.
func (s *Service) ErasingJob(ctx context.Context, jobID string) (ErasingJob, error) {
	st, err := s.Job(ctx, jobID)
	switch {
	case err != nil:
		return ErasingJob{}, err
	case !st.Exists:
		return ErasingJob{}, domain.NotFound("job")
	}
	held, err := s.Held(ctx, st.AccountID, st.ProjectID)
	return ErasingJob{
		AccountID: st.AccountID, Sandbox: st.Sandbox, Open: !st.Status.Ended(), Erased: !st.ErasedAt.IsZero(), Held: held || st.Hold != nil,
	}, err
}

// EraseJob records in the log that the job is erased. A job that has not ended fails
// first, with a refund. The caller destroys the key of its texts, and everything derived
// from them.
func (s *Service) EraseJob(ctx context.Context, cause Cause, jobID, by, reason string) (domain.Position, error) {
	of, err := s.ErasingJob(ctx, jobID)
	if err != nil {
		return domain.Position{}, err
	}
	cause.AccountID, cause.Sandbox = of.AccountID, of.Sandbox
	if of.Open {
		if _, err := s.FailJob(ctx, cause, jobID, job.FailOperator); err != nil && !domain.IsKind(err, domain.KindConflict) {
			return domain.Position{}, err
		}
	}
	return repository.Decide(ctx, s.Jobs, cause, domain.JobStream(jobID), func(st job.State) ([]domain.Event, error) {
		return job.DecideErase(st, by, reason, s.Now())
	})
}

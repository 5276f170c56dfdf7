package command

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

// CancelJob ends a pending job of the account and gives its credits back. A
// repeat answers the same and refunds nothing more. reason is client or
// operator.
func (s *Service) CancelJob(ctx context.Context, cause Cause, jobID, reason string) (EndedJob, error) {
	return s.endJob(ctx, cause, jobID, job.StatusCancelled, func(st job.State, now time.Time) ([]domain.Event, error) {
		if st.AccountID != cause.AccountID {
			return nil, domain.NotFound("job")
		}
		return job.DecideCancel(st, reason, now)
	})
}

// CancelJobs ends those of the jobs that wait, each by itself, and leaves the others as they
// are. It counts the jobs that are cancelled then, by this command or before it.
func (s *Service) CancelJobs(ctx context.Context, cause Cause, jobIDs []string, reason string) (out CancelledJobs, err error) {
	for _, id := range jobIDs {
		one, err := s.CancelJob(ctx, cause.Step("cancel "+id), id, reason)
		switch {
		case domain.IsKind(err, domain.KindConflict):
			continue
		case err != nil:
			return out, err
		}
		out.add(CancelledJobs{1, one.CreditsRefunded, one.CreditsExpired, one.Position})
	}
	return out, nil
}

func (c *CancelledJobs) add(more CancelledJobs) {
	c.Cancelled += more.Cancelled
	c.CreditsRefunded += more.CreditsRefunded
	c.CreditsExpired += more.CreditsExpired
	c.Position = c.Position.Max(more.Position)
}

// RefundJob refunds the debit of an ended job, once.
func (s *Service) RefundJob(ctx context.Context, cause Cause, jobID, reason string) (domain.Position, error) {
	back, err := s.ledger.Refund(ctx, cause, jobID, reason)
	return back.At, err
}

// VoidJob settles a debit without a job. It closes the job's stream, so that a late
// job.created loses, and refunds the credits. A job that did come is left alone.
func (s *Service) VoidJob(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	came, written, err := repository.Execute(ctx, s.Jobs, cause, domain.JobStream(jobID),
		func(st job.State) ([]domain.Event, error) {
			if st.Exists {
				return nil, nil
			}
			return job.DecideVoid(st, cause.AccountID, s.Now())
		},
		func(st job.State) bool { return st.Exists })
	if err != nil || came {
		return written, err
	}
	return s.RefundJob(ctx, cause, jobID, "job_never_created")
}

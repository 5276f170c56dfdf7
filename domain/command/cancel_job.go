package command

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
)

// CancelJob ends a pending job of the account and gives its credits back. A
// repeat answers the same and refunds nothing more. reason is client or
// operator.
func (s *Service) CancelJob(ctx context.Context, cause Cause, jobID, reason string) (CancelledJob, error) {
	out := CancelledJob{JobID: jobID, Status: job.Cancelled}
	written, err := s.jobs.execute(ctx, cause, domain.JobStream(jobID), func(st job.State) ([]domain.Event, error) {
		if !st.Exists || st.AccountID != cause.AccountID {
			return nil, domain.NotFound("job")
		}
		out.CreditsRefunded = st.Price
		return job.DecideCancel(st, reason, s.Now())
	})
	if err != nil {
		return CancelledJob{}, err
	}
	refunded, remaining, err := s.refund(ctx, cause, jobID, reason)
	if err != nil {
		return CancelledJob{}, err
	}
	out.CreditsRemaining = remaining
	out.Position = written.Position.Max(refunded)
	return out, nil
}

// RefundJob gives the debit of an ended job back, once.
func (s *Service) RefundJob(ctx context.Context, cause Cause, jobID, reason string) (domain.Position, error) {
	position, _, err := s.refund(ctx, cause, jobID, reason)
	return position, err
}

// VoidJob settles a debit whose job may never have come: it closes the job's
// stream, so that a late job.created loses, and gives the credits back. A job
// that did come is left alone.
func (s *Service) VoidJob(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	came := false
	written, err := s.jobs.execute(ctx, cause, domain.JobStream(jobID), func(st job.State) ([]domain.Event, error) {
		came = st.Exists
		if came {
			return nil, nil
		}
		return job.DecideVoid(st, cause.AccountID, s.Now())
	})
	if err != nil || came {
		return written.Position, err
	}
	return s.RefundJob(ctx, cause, jobID, "job_never_created")
}

func (s *Service) refund(ctx context.Context, cause Cause, jobID, reason string) (at domain.Position, remaining domain.Credits, err error) {
	written, err := s.ledgers.execute(ctx, cause, domain.CreditsStream(cause.AccountID), func(st credits.State) ([]domain.Event, error) {
		now := s.Now()
		events, err := credits.DecideRefund(st, jobID, reason, now)
		remaining = balanceAfter(st, events, now)
		return events, err
	})
	return written.Position, remaining, err
}

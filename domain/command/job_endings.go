package command

import (
	"cmp"
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/command/settings"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

// A failed job is refunded like a cancelled one: first the job, then the ledger. After a
// crash in between, every repeat makes the refund that is still missing.

// MissSLA puts a job back into the queue after the end of its SLA, or fails it. A job
// that is not due any more is left alone. A timer belongs to the SLA that it was set for:
// fired again, however late, it must not end the next SLA. In an archived project no job
// waits again.
func (s *Service) MissSLA(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	projectID := ""
	ended, err := s.endJob(ctx, cause, jobID, job.StatusFailed, func(st job.State, now time.Time) ([]domain.Event, error) {
		projectID = st.ProjectID
		if due := cause.NotBefore; !due.IsZero() && due.Before(st.DueAt) {
			return nil, nil
		}
		return job.DecideMissSLA(st, now)
	})
	if err != nil || ended.Status != job.StatusPending || projectID == "" {
		return ended.Position, err
	}
	out, err := s.cancelArchived(ctx, cause.Step("archived"), projectID, []string{jobID})
	return ended.Position.Max(out.Position), err
}

// ReportUntestable ends the claim with the checker's report that the job cannot be
// tested. The job is pending again after the first checker's report, and failed after the
// second's. The checker acts for no account. The report may refund the job's account, so
// the events carry that account.
func (s *Service) ReportUntestable(
	ctx context.Context, cause Cause, claim Claim, reason, note string,
) (job.Status, domain.Position, error) {
	accountID, err := repository.Read(ctx, s.Jobs, domain.JobStream(claim.JobID), func(st job.State) string { return st.AccountID })
	if err != nil {
		return "", domain.Position{}, err
	}
	hidden, err := s.HiddenFrom(ctx, claim.CheckerID)
	switch {
	case err != nil:
		return "", domain.Position{}, err
	case hidden(accountID):
		return "", domain.Position{}, domain.NotFound("job")
	}
	cause.AccountID = accountID
	ended, err := s.endJob(ctx, cause, claim.JobID, job.StatusFailed, func(st job.State, now time.Time) ([]domain.Event, error) {
		return job.DecideUntestable(st, job.UntestableReported{
			CheckerID: claim.CheckerID, Token: claim.Token, Reason: reason, Note: note, At: now,
		})
	})
	return ended.Status, ended.Position, err
}

// FailJob ends a job with a full refund, by the operator's order. reason is untestable or
// operator.
func (s *Service) FailJob(ctx context.Context, cause Cause, jobID, reason string) (EndedJob, error) {
	return s.endJob(ctx, cause, jobID, job.StatusFailed, func(st job.State, now time.Time) ([]domain.Event, error) {
		if st.AccountID != cause.AccountID {
			return nil, domain.NotFound("job")
		}
		return job.DecideFail(st, reason, now)
	})
}

// endJob runs a decision that may end the job without a report, at its account's time. If the
// job ends so, endJob refunds the account.
func (s *Service) endJob(
	ctx context.Context, cause Cause, jobID string, as job.Status, decide func(job.State, time.Time) ([]domain.Event, error),
) (EndedJob, error) {
	expired, err := s.ledger.ExpiringRefund(ctx, cause, jobID)
	if err != nil {
		return EndedJob{}, err
	}
	decideAll := func(st job.State, now time.Time) ([]domain.Event, error) {
		events, err := decide(st, now)
		return foretold(events, expired), err
	}
	st, written, err := settings.Execute(ctx, s.Commands, s.Jobs, cause, domain.JobStream(jobID), decideAll, job.State.Clone)
	out := EndedJob{JobID: jobID, Status: st.Status, Position: written}
	if err != nil || st.Status != as {
		return out, err
	}
	back, err := s.ledger.Refund(ctx, cause, jobID, cmp.Or(st.FailReason, st.CancelReason))
	out.CreditsRefunded, out.CreditsExpired = st.Refund-back.Expired, back.Expired
	out.CreditsRemaining, out.Position = back.Remaining, out.Position.Max(back.At)
	return out, err
}

// ReleaseSilent ends a claim without a sign of life for too long. The claimant's next
// call finds the claim ended.
func (s *Service) ReleaseSilent(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	return s.onJob(ctx, cause, jobID, func(st job.State, now time.Time) ([]domain.Event, error) {
		if due := cause.NotBefore; !due.IsZero() && due.Before(st.SignOfLife.Add(job.SilentAfter)) {
			return nil, nil // a sign of life came after this timer was set: another timer watches now
		}
		return job.DecideReleaseSilent(st, now)
	})
}

// ExpireQuestion closes a question without an answer in time, and skips its item. A timer
// belongs to the question that it was set for: fired again, it must not close the next
// question early.
func (s *Service) ExpireQuestion(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	return s.onJob(ctx, cause, jobID, job.DecideExpireQuestion)
}

// foretold fills in, in the events that end a job, the part of the refund that will be
// lost.
func foretold(events []domain.Event, expired domain.Credits) []domain.Event {
	for _, e := range events {
		switch e := e.(type) {
		case *job.Cancelled:
			e.RefundExpired = expired
		case *job.Failed:
			e.RefundExpired = expired
		case *job.SLAMissed:
			if !e.Requeued {
				e.RefundExpired = expired
			}
		}
	}
	return events
}

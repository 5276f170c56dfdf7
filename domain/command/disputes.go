package command

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
)

// DisputeVerdict disputes the verdict on an item of the account's report. Its id derives
// from the command.
func (s *Service) DisputeVerdict(ctx context.Context, cause Cause, jobID, itemID, reason string) (*job.Dispute, domain.Position, error) {
	id := domain.DeriveID(cause.CommandID, "dispute").String()
	st, at, err := s.OnJob(ctx, cause, jobID, func(st job.State, now time.Time) ([]domain.Event, error) {
		return job.DecideDispute(st, id, itemID, reason, now)
	})
	return st.Dispute(id), at, err
}

// AnswerDispute is the answer of the checker who tested. A job that is hidden from the
// checker is not found.
func (s *Service) AnswerDispute(
	ctx context.Context, cause Cause, claim Claim, disputeID, text string,
) (*job.Dispute, domain.Position, error) {
	st, at, err := s.Run(ctx, cause, claim, func(st job.State) ([]domain.Event, error) {
		return job.DecideAnswerDispute(st, claim.CheckerID, disputeID, text, s.Now())
	})
	return st.Dispute(disputeID), at, err
}

// RuleDispute decides a dispute, by the operator's order. A new test, or a refund, follows
// (SettleDispute). An archived project takes no new test.
func (s *Service) RuleDispute(ctx context.Context, cause Cause, jobID, disputeID string, ruling job.Ruling) (domain.Position, error) {
	if ruling == job.Retested {
		st, err := s.Job(ctx, jobID)
		if err == nil && st.ProjectID != "" && st.MadeGood() == nil {
			_, err = s.openProject(ctx, st.AccountID, st.ProjectID)
		}
		if err != nil {
			return domain.Position{}, err
		}
	}
	_, at, err := s.OnJob(ctx, cause, jobID, func(st job.State, now time.Time) ([]domain.Event, error) {
		return job.DecideRule(st, disputeID, ruling, now)
	})
	return at, err
}

// SettleDispute makes the job good as the decision says, and notes that in the job. The ids
// of the new test and of the lot derive from the job's. So a repeat after a crash finds what
// is there, and a job is made good once. An erased job gets its refund, but no new test.
//
// The refund is a lot of its own: a close may have left the debit of a completed job behind.
func (s *Service) SettleDispute(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	st, err := s.Job(ctx, jobID)
	d := st.MadeGood()
	if err != nil || d == nil || d.Settled != nil {
		return domain.Position{}, err
	}
	cause.AccountID, cause.Sandbox = st.AccountID, st.Sandbox
	retestID := ""
	if d.Decision() == job.Retested {
		retestID, err = s.retestFree(ctx, cause, jobID)
	} else {
		_, _, err = s.ledger.Execute(ctx, cause, func(st credits.State, now time.Time) ([]domain.Event, error) {
			return credits.DecideGrant(st, credits.DisputeLot(jobID), d.Decided.Refund, nil, "dispute of job "+jobID, now)
		})
	}
	if err != nil {
		return domain.Position{}, err
	}
	return s.onJob(ctx, cause.Step("settled"), jobID, func(st job.State, now time.Time) ([]domain.Event, error) {
		return job.DecideSettleDispute(st, retestID, now)
	})
}

// retestFree is Retest that costs nothing, and leaves prepared fixes to other tests. It
// has one job, whichever command asks.
func (s *Service) retestFree(ctx context.Context, cause Cause, jobID string) (string, error) {
	if _, err := s.ExistingAccount(ctx, cause.AccountID); err != nil {
		return "", err
	}
	o, err := s.original(ctx, cause, jobID)
	if err != nil {
		return "", err
	}
	o.Free = true
	cause.CommandID = domain.CommandIDFor("dispute", jobID)
	out, err := again(ctx, s, cause, func(cause Cause) (SubmittedJob, error) {
		if out, found, err := s.findSubmitted(ctx, cause, ownJob(cause)); found || err != nil {
			return out.SubmittedJob, err
		}
		return s.chargeAndOpen(ctx, cause, ownJob(cause), o)
	})
	return out.JobID, err
}

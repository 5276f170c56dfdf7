package claims

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

// Record gives the account of the job that the claimant continues to record. It is a sign
// of life. A checker without the claim is refused. But the checker that completed the job
// may still send the rest of the recording.
func (s *Claims) Record(ctx context.Context, cause domain.Cause, claim Claim) (accountID string, err error) {
	st, _, err := s.Run(ctx, cause, claim, func(st job.State) ([]domain.Event, error) {
		return job.DecideRecord(st, claim.CheckerID, claim.Token, s.now())
	})
	return st.AccountID, err
}

// HoldsClaim says that the claim is alive.
func (s *Claims) HoldsClaim(ctx context.Context, claim Claim) (bool, error) {
	return repository.Read(ctx, s.Jobs, domain.JobStream(claim.JobID), func(st job.State) bool {
		return st.Holds(claim.CheckerID, claim.Token)
	})
}

// AttachRecording adds a complete recording to the job.
func (s *Claims) AttachRecording(ctx context.Context, cause domain.Cause, jobID string, r job.Recording) (domain.Position, error) {
	return repository.Decide(ctx, s.Jobs, cause, domain.JobStream(jobID), func(st job.State) ([]domain.Event, error) {
		return job.DecideAttachRecording(st, r, s.now())
	})
}

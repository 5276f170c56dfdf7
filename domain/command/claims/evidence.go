package claims

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/job"
)

// CollectEvidence gives the account of the job to which the claimant adds evidence. It is
// a sign of life. A checker without the claim is refused.
func (s *Claims) CollectEvidence(ctx context.Context, cause domain.Cause, claim Claim) (accountID string, err error) {
	st, _, err := s.Run(ctx, cause, claim, func(st job.State) ([]domain.Event, error) {
		return job.DecideHeartbeat(st, claim.CheckerID, claim.Token, s.now())
	})
	return st.AccountID, err
}

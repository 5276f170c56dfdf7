package command

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/job"
)

// CollectEvidence says whose job the claimant is about to add evidence to. It
// is a sign of life; who does not hold the claim is refused like everywhere.
func (s *Service) CollectEvidence(ctx context.Context, cause Cause, claim Claim) (accountID string, err error) {
	accountID, _, err = claimant(ctx, s, cause, claim, func(st job.State, accountID *string) ([]domain.Event, error) {
		*accountID = st.AccountID
		return job.DecideHeartbeat(st, claim.CheckerID, claim.Token, s.Now())
	})
	return accountID, err
}

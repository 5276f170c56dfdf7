package claims

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/job"
)

// CollectEvidence gives the account of the job to which the claimant adds evidence. It is
// a sign of life. A checker without the claim is refused.
func (s *Claims) CollectEvidence(ctx context.Context, cause domain.Cause, claim Claim) (accountID string, err error) {
	accountID, _, err = Run(ctx, s, cause, claim, func(st job.State, accountID *string) ([]domain.Event, error) {
		*accountID = st.AccountID
		return job.DecideHeartbeat(st, claim.CheckerID, claim.Token, s.Now())
	})
	return accountID, err
}

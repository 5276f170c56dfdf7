package command

import (
	"cmp"
	"context"

	"humanqa/domain"
	"humanqa/domain/credits"
)

// EstimateJob says what a submission would cost, and writes nothing.
func (s *Service) EstimateJob(ctx context.Context, cause Cause, in SubmitJob) (Estimate, error) {
	minutes := in.SLAMinutes
	if in.ProjectID != "" {
		p, err := s.defaults(ctx, cause.AccountID, in.ProjectID)
		if err != nil {
			return Estimate{}, err
		}
		minutes = cmp.Or(minutes, p.slaMinutes)
	}
	minutes = cmp.Or(minutes, defaultSLAMinutes)
	now, err := s.clock(ctx, cause)
	if err != nil {
		return Estimate{}, err
	}
	available, err := read(ctx, s.ledgers, domain.CreditsStream(cause.AccountID), func(st credits.State) domain.Credits {
		return st.Available(now)
	})
	return Estimate{
		CreditsRequired: Price(in.Type, in.Urgent), CreditsAvailable: available,
		EstimatedMinutes: estimate(minutes, in.Urgent), SLAMinutes: minutes,
	}, err
}

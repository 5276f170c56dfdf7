package command

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/credits"
)

// EstimateJob says what a submission would cost, and writes nothing.
func (s *Service) EstimateJob(ctx context.Context, cause Cause, in SubmitJob) (Estimate, error) {
	if in.ProjectID != "" {
		if err := s.inherit(ctx, cause.AccountID, &in); err != nil {
			return Estimate{}, err
		}
	}
	if in.SLAMinutes == 0 {
		in.SLAMinutes = defaultSLAMinutes
	}
	now, err := s.clock(ctx, cause)
	if err != nil {
		return Estimate{}, err
	}
	available, err := read(ctx, s.ledgers, domain.CreditsStream(cause.AccountID), func(st credits.State) domain.Credits {
		return st.Available(now)
	})
	return Estimate{
		CreditsRequired: Price(in.Type, in.Urgent), CreditsAvailable: available,
		EstimatedMinutes: estimate(in.SLAMinutes, in.Urgent), SLAMinutes: in.SLAMinutes,
	}, err
}

package command

import (
	"cmp"
	"context"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/repository"
)

// EstimateJob gives the cost of a submission, and writes nothing.
func (s *Service) EstimateJob(ctx context.Context, cause Cause, in SubmitJob) (Estimate, error) {
	sla, err := s.projectSLA(ctx, cause.AccountID, in.ProjectID)
	if err != nil {
		return Estimate{}, err
	}
	minutes := cmp.Or(in.SLAMinutes, sla, defaultSLAMinutes)
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return Estimate{}, err
	}
	available, err := repository.Read(ctx, s.Ledgers, domain.CreditsStream(cause.AccountID), func(st credits.State) domain.Credits {
		return st.Available(now)
	})
	return Estimate{
		CreditsRequired: in.Type.Price(in.Urgent), CreditsAvailable: available,
		EstimatedMinutes: estimate(minutes, in.Urgent), SLAMinutes: minutes,
	}, err
}

// estimate says in how many minutes a job should be done: the SLA, half of it
// when urgent, never less than five (decisions,
// "estimatedCompletionMinutes").
func estimate(slaMinutes int, urgent bool) int {
	if urgent {
		slaMinutes /= 2
	}
	return max(slaMinutes, 5)
}

package command

import (
	"cmp"
	"context"
)

// EstimateJob gives the cost of a submission, and writes nothing.
func (s *Service) EstimateJob(ctx context.Context, cause Cause, in SubmitJob) (Estimate, error) {
	sla, err := s.projectSLA(ctx, cause.AccountID, in.ProjectID)
	if err != nil {
		return Estimate{}, err
	}
	minutes := cmp.Or(in.SLAMinutes, sla, defaultSLAMinutes)
	available, err := s.availableCredits(ctx, cause)
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

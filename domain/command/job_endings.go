package command

import (
	"context"
	"humanqa/domain"
	"humanqa/domain/job"
)

// MissSLA puts a job whose SLA has ended back into the queue, or fails it.
func (s *Service) MissSLA(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	panic("not built yet")
}

// ReportUntestable ends the claim with the checker's word that the job cannot
// be tested.
func (s *Service) ReportUntestable(ctx context.Context, cause Cause, claim Claim, reason, note string) (job.Status, domain.Position, error) {
	panic("not built yet")
}

// FailJob ends a job with a full refund, at the operator's word. reason is
// untestable or operator.
func (s *Service) FailJob(ctx context.Context, cause Cause, jobID, reason string) (domain.Position, error) {
	panic("not built yet")
}

// ReleaseSilent takes a claim back that nothing was heard of for too long.
func (s *Service) ReleaseSilent(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	panic("not built yet")
}

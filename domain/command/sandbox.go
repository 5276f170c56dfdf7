package command

import (
	"context"
	"humanqa/domain"
	"humanqa/domain/job"
	"time"
)

// AdvanceClock moves a sandbox account's time and answers its new time.
func (s *Service) AdvanceClock(ctx context.Context, cause Cause, by time.Duration) (now time.Time, at domain.Position, err error) {
	panic("not built yet")
}

// PlayJob has a robot checker claim, check and complete a sandbox job. Items
// that are not named pass.
func (s *Service) PlayJob(ctx context.Context, cause Cause, jobID string, results []PlayResult, summary string) (job.CompletedWith, domain.Position, error) {
	panic("not built yet")
}

package command

import (
	"context"
	"humanqa/domain"
)

// WriteChecklist gives a job that was submitted without one its checklist.
func (s *Service) WriteChecklist(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	panic("not built yet")
}

// AnalyseJob has the AI analyse a completed job's report.
func (s *Service) AnalyseJob(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	panic("not built yet")
}

// ReviewJob has the AI do an AI review, and completes it.
func (s *Service) ReviewJob(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	panic("not built yet")
}

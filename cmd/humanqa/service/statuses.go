package service

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

// readableStatuses sets a commit status once a client can read what it tells: the read models
// show the log's newest position, which lies behind the verdict.
type readableStatuses struct {
	command.Statuses
	head       func(context.Context) (domain.Position, error)
	awaitReads func(context.Context, domain.Position) error
}

// Set implements command.Statuses.
func (s readableStatuses) Set(ctx context.Context, to job.CommitStatus, token string, is command.StatusUpdate) error {
	head, err := s.head(ctx)
	if err != nil {
		return err
	}
	if err := s.awaitReads(ctx, head); err != nil {
		return err
	}
	return s.Statuses.Set(ctx, to, token, is)
}

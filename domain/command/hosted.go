package command

import (
	"context"
	"humanqa/domain"
)

// TestHosted submits a hosted test.
func (s *Service) TestHosted(ctx context.Context, cause Cause, in HostedTest) (HostedJob, error) {
	panic("not built yet")
}

// Deploy submits the test of a deploy, once for each of its keys while the job
// lives.
func (s *Service) Deploy(ctx context.Context, cause Cause, projectID string, in Deploy) (HostedJob, error) {
	panic("not built yet")
}

// PrepareNext queues fixes for the project's next test.
func (s *Service) PrepareNext(ctx context.Context, cause Cause, projectID string, fixes []PreparedFix) (domain.Position, error) {
	panic("not built yet")
}

package settings

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

// AccountTime is the account's time: the service's time, or that of the sandbox's own
// clock (decisions, "Sandbox clock").
func (s *Commands) AccountTime(ctx context.Context, cause domain.Cause) (time.Time, error) {
	now := s.now()
	if cause.Sandbox {
		ahead, err := repository.Read(ctx, s.Accounts, domain.AccountStream(cause.AccountID), func(st account.State) time.Duration {
			return st.Ahead
		})
		if err != nil {
			return now, err
		}
		now = now.Add(ahead)
	}
	if now.Before(cause.NotBefore) {
		return cause.NotBefore, nil
	}
	return now, nil
}

// Execute is repository.Execute with a decision at the account's time.
func Execute[S, R any](
	ctx context.Context, s *Commands, of *repository.Repository[S], cause domain.Cause, stream string,
	decide func(S, time.Time) ([]domain.Event, error), see func(S) R,
) (R, domain.Position, error) {
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return *new(R), domain.Position{}, err
	}
	return repository.Execute(ctx, of, cause, stream, func(st S) ([]domain.Event, error) { return decide(st, now) }, see)
}

// OnJob runs a decision on a job of the cause's account, at the account's time, and gives
// the job after it.
func (s *Commands) OnJob(
	ctx context.Context, cause domain.Cause, jobID string, decide func(job.State, time.Time) ([]domain.Event, error),
) (job.State, domain.Position, error) {
	return Execute(ctx, s, s.Jobs, cause, domain.JobStream(jobID), func(st job.State, now time.Time) ([]domain.Event, error) {
		if !st.Exists || st.AccountID != cause.AccountID {
			return nil, domain.NotFound("job")
		}
		return decide(st, now)
	}, job.State.Clone)
}

// AdvanceClock moves a sandbox account's time. Actions that become due by it happen
// soon after, automatically.
func (s *Commands) AdvanceClock(ctx context.Context, cause domain.Cause, by time.Duration) (AdvancedClock, error) {
	advanceID := domain.DeriveID(cause.CommandID, "advance").String()
	ahead, written, err := repository.Execute(ctx, s.Accounts, cause, domain.AccountStream(cause.AccountID),
		func(st account.State) ([]domain.Event, error) { return account.DecideAdvance(st, advanceID, by) },
		func(st account.State) time.Duration { return st.Advances[advanceID] })
	return AdvancedClock{Now: s.now().Add(ahead), Ahead: ahead, Position: written}, err
}

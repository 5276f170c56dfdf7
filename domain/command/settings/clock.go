package settings

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
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

// AdvanceClock moves a sandbox account's time. Actions that become due by it happen
// soon after, automatically.
func (s *Commands) AdvanceClock(ctx context.Context, cause domain.Cause, by time.Duration) (AdvancedClock, error) {
	advanceID := domain.DeriveID(cause.CommandID, "advance").String()
	ahead, written, err := repository.Execute(ctx, s.Accounts, cause, domain.AccountStream(cause.AccountID),
		func(st account.State, ahead *time.Duration) ([]domain.Event, error) {
			events, err := account.DecideAdvance(st, advanceID, by)
			*ahead = st.Advances[advanceID] // a repeat
			if advanced, ok := domain.Last[*account.ClockAdvanced](events); ok {
				*ahead = time.Duration(advanced.OffsetSeconds) * time.Second
			}
			return events, err
		})
	return AdvancedClock{Now: s.now().Add(ahead), Ahead: ahead, Position: written}, err
}

package command

import (
	"context"
	"fmt"
	"slices"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/job"
	"humanqa/domain/session"
)

// ReadySlots has robot checkers claim slots of a sandbox session and wait in its lobby;
// no slots means all of them. The last slot that becomes ready starts the session.
func (s *Service) ReadySlots(ctx context.Context, cause Cause, sessionID string, slots []int) (CheckerSession, error) {
	st, err := s.Session(ctx, sessionID)
	switch {
	case err != nil:
		return CheckerSession{}, err
	case !st.Exists || st.AccountID != cause.AccountID:
		return CheckerSession{}, domain.NotFound("session")
	case !st.Sandbox:
		return CheckerSession{}, account.ErrNoSandbox
	}
	taken, err := slotsNamed(st, slots)
	if err != nil {
		return CheckerSession{}, err
	}
	var own CheckerSession
	for _, slot := range taken {
		if _, err := s.onJob(ctx, cause, slot.JobID, job.DecideRobotClaim); err != nil {
			return CheckerSession{}, err
		}
		own, err = s.enterSession(ctx, cause.Step(fmt.Sprintf("slot %d", slot.Slot)), sessionID, st, slot, job.Player)
		if err != nil {
			return CheckerSession{}, err
		}
	}
	return own, nil
}

func slotsNamed(st session.State, numbers []int) ([]session.Slot, error) {
	if len(numbers) == 0 {
		return st.Slots, nil
	}
	var (
		named []session.Slot
		wrong domain.Wrong
	)
	for n, number := range numbers {
		at := slices.IndexFunc(st.Slots, func(slot session.Slot) bool { return slot.Slot == number })
		if at < 0 {
			wrong.Add(fmt.Sprintf("slots[%d]", n), "is no slot of the session")
			continue
		}
		named = append(named, st.Slots[at])
	}
	return named, wrong.Refusal()
}

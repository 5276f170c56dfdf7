package command

import (
	"cmp"
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/repository"
	"humanqa/domain/session"
)

// SettleSession does every due step of the session. The steps are the end of the lobby,
// the start of the slots' clocks, the cancellation and refund of dropped slots, and the
// end of the session. It may be called at any time, any number of times: every step
// checks whether it is due.
func (s *Service) SettleSession(ctx context.Context, cause Cause, sessionID string) (domain.Position, error) {
	st, err := s.Session(ctx, sessionID)
	if err != nil || !st.Exists {
		return domain.Position{}, err
	}
	cause.AccountID, cause.Sandbox = st.AccountID, st.Sandbox
	st, ended, err := s.advanceSession(ctx, cause.Step("deadline"), sessionID, st, session.DecideDeadline)
	if err != nil {
		return domain.Position{}, err
	}
	work, err := s.slotWork(ctx, st)
	if err != nil {
		return domain.Position{}, err
	}
	settled, err := s.settleSlots(ctx, cause, st, st.GivenUp(work))
	if err != nil {
		return domain.Position{}, err
	}
	_, done, err := s.advanceSession(ctx, cause.Step("complete"), sessionID, st, session.DecideComplete)
	return ended.Max(settled).Max(done), err
}

// advanceSession takes an automatic step of the session, if it is due.
func (s *Service) advanceSession(
	ctx context.Context, cause Cause, sessionID string, st session.State,
	decide func(session.State, []session.Work, time.Time) []domain.Event,
) (session.State, domain.Position, error) {
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return st, domain.Position{}, err
	}
	work, err := s.slotWork(ctx, st)
	if err != nil {
		return st, domain.Position{}, err
	}
	// The time is that before the look at the work: after a deadline, the work has every checker
	// who was ready in time.
	return s.onSession(ctx, cause, sessionID, func(st session.State, _ time.Time) ([]domain.Event, error) {
		return decide(st, work, now), nil
	})
}

// slotWork reads the facts about its jobs that the session's decisions need, in the
// slots' order.
func (s *Service) slotWork(ctx context.Context, st session.State) ([]session.Work, error) {
	work := make([]session.Work, len(st.Slots))
	for i, slot := range st.Slots {
		j, err := s.Job(ctx, slot.JobID)
		if err != nil {
			return nil, err
		}
		work[i].Claim = session.Claim{CheckerID: j.CheckerID, Token: j.Token}
		switch j.Status {
		case job.StatusCompleted:
			work[i].Ended, work[i].OverallStatus = true, j.Report.OverallStatus
		case job.StatusCancelled, job.StatusFailed, job.StatusVoided:
			work[i].Ended, work[i].Cancelled = true, j.Status == job.StatusCancelled
		case job.StatusPending, job.StatusClaimed:
		}
	}
	return work, nil
}

// settleSlots starts, cancels or refunds the jobs as the state of their session says.
// givenUp says that the session is being cancelled. It leaves alone a job that has ended
// or was settled before.
func (s *Service) settleSlots(ctx context.Context, cause Cause, st session.State, givenUp bool) (domain.Position, error) {
	var last domain.Position
	for _, slot := range st.Slots {
		var at domain.Position
		var err error
		switch {
		case st.Status == session.StatusExpired, !st.Live(slot.Slot):
			at, err = s.dropSlot(ctx, cause, slot, job.CancelSessionExpired)
		case st.Status == session.StatusCancelled, st.Status == session.StatusActive && givenUp:
			at, err = s.dropSlot(ctx, cause, slot, job.CancelSessionCancelled)
		case st.Status == session.StatusActive:
			at, err = s.startSlot(ctx, cause, slot, st)
		}
		if err != nil {
			return domain.Position{}, err
		}
		last = last.Max(at)
	}
	return last, nil
}

func (s *Service) startSlot(ctx context.Context, cause Cause, slot session.Slot, st session.State) (domain.Position, error) {
	return repository.Decide(ctx, s.Jobs, cause.Step("start"), domain.JobStream(slot.JobID), func(j job.State) ([]domain.Event, error) {
		return job.DecideStartSlot(j, st.DueAt, st.StartedAt)
	})
}

// dropSlot cancels the slot's job and refunds it. It also refunds a failed job without a
// refund. A crash between the session and its jobs can leave a job missing. Its stream is
// closed, as by VoidJob.
func (s *Service) dropSlot(ctx context.Context, cause Cause, slot session.Slot, reason string) (domain.Position, error) {
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return domain.Position{}, err
	}
	expired, err := s.ledger.ExpiringRefund(ctx, cause, slot.JobID)
	if err != nil {
		return domain.Position{}, err
	}
	st, written, err := repository.Execute(ctx, s.Jobs, cause.Step("drop"), domain.JobStream(slot.JobID),
		func(j job.State) ([]domain.Event, error) {
			switch {
			case j.Status == job.StatusCompleted, j.Status == job.StatusFailed:
				return nil, nil
			case !j.Exists:
				return job.DecideVoid(j, cause.AccountID, now)
			}
			events, err := job.DecideCancel(j, reason, now)
			return foretold(events, expired), err
		}, job.State.Clone)
	if err != nil || st.Status == job.StatusCompleted {
		return written, err
	}
	back, err := s.ledger.Refund(ctx, cause.Step("refund "+slot.JobID), slot.JobID, cmp.Or(st.FailReason, reason))
	return written.Max(back.At), err
}

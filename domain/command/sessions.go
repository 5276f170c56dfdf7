package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/domain/command/settings"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/repository"
	"humanqa/domain/session"
)

// CreateSession opens a session's lobby; every slot becomes a job with the same checklist
// (specification, "POST /v1/hosted/sessions"). A refusal writes nothing. The charge of
// all slots is one append. The session is written before its jobs. A crash in between
// leaves charges without jobs, which are settled like any other. A repeat of the command
// completes the session. If a slot's charge was refunded by then, the repeat starts a new
// session.
func (s *Service) CreateSession(ctx context.Context, cause Cause, in NewSession) (CreatedSession, error) {
	return anew(cause,
		func(cause Cause) (CreatedSession, error) { return s.createSession(ctx, cause, in) },
		func(cause Cause) (Cause, bool, error) {
			givenUp, err := s.sessionGivenUp(ctx, cause, len(in.Slots))
			return cause.Step("again"), givenUp, err
		})
}

func (s *Service) createSession(ctx context.Context, cause Cause, in NewSession) (CreatedSession, error) {
	sessionID, jobIDs := ownSession(cause, len(in.Slots))
	begun, err := s.Session(ctx, sessionID)
	if err != nil {
		return CreatedSession{}, err
	}
	if begun.Exists {
		whole, err := s.isWhole(ctx, begun)
		if err != nil {
			return CreatedSession{}, err
		}
		if !whole && begun.Closed() {
			givenUp, err := s.sessionGivenUp(ctx, cause, len(in.Slots))
			switch {
			case err != nil:
				return CreatedSession{}, err
			case givenUp:
				return CreatedSession{}, errGivenBack
			}
		}
		if whole || begun.Closed() {
			remaining, err := s.availableCredits(ctx, cause)
			return handleOf(sessionID, begun, remaining), err
		}
		// The first round's project and type hold, even if another search would find
		// others now.
		in.Test.ProjectID, in.Test.Type, in.Test.TypeEcho = begun.ProjectID, begun.Type, begun.TypeEcho
	}
	handle, err := s.openSession(ctx, cause, sessionID, jobIDs, in)
	if domain.IsKind(err, domain.KindConflict) {
		return CreatedSession{}, s.abandonSession(ctx, cause, sessionID, err)
	}
	return handle, err
}

// openSession charges the slots and writes the missing parts of the session.
func (s *Service) openSession(ctx context.Context, cause Cause, sessionID string, jobIDs []string, in NewSession) (CreatedSession, error) {
	drafts, err := s.draftSlots(ctx, cause, sessionID, jobIDs, in)
	if err != nil {
		return CreatedSession{}, err
	}
	charges := make([]credits.Charge, len(jobIDs))
	for i, id := range jobIDs {
		charges[i] = credits.Charge{JobID: id, Amount: drafts[i].Price}
	}
	remaining, err := s.ledger.Debit(ctx, cause, charges...)
	if err != nil {
		return CreatedSession{}, err
	}
	if err := s.stillCharged(ctx, cause, jobIDs); err != nil {
		return CreatedSession{}, err
	}
	opened, written, err := repository.Create(ctx, s.Sessions, cause, domain.SessionStream(sessionID),
		func(st session.State) ([]domain.Event, error) {
			if st.Exists {
				return nil, nil // the id derives from the command: a repeat
			}
			return session.DecideCreate(st, lobbyOf(in, jobIDs, drafts[0]))
		}, session.State.Clone)
	if err != nil {
		return CreatedSession{}, err
	}
	handle := handleOf(sessionID, opened, remaining)
	handle.Position = written
	for i, id := range jobIDs {
		j, err := s.openJob(ctx, cause, id, drafts[i], nil)
		if err != nil {
			return CreatedSession{}, err
		}
		handle.Position = handle.Position.Max(j.Position)
	}
	return handle, nil
}

// stillCharged looks at the slots before their session begins. If the orphan policy was
// faster and refunded a charge, all other charges without jobs are refunded too. The
// read models ignore events of a slot before its session, and the session would then
// wait for that slot.
func (s *Service) stillCharged(ctx context.Context, cause Cause, jobIDs []string) error {
	if late, err := s.anyVoided(ctx, jobIDs); err != nil || !late {
		return err
	}
	for _, id := range jobIDs {
		if _, err := s.VoidJob(ctx, cause.Step("give up "+id), id); err != nil {
			return err
		}
	}
	return errGivenBack
}

// anyVoided says whether one of the jobs was given up before it came.
func (s *Service) anyVoided(ctx context.Context, jobIDs []string) (bool, error) {
	for _, id := range jobIDs {
		voided, err := repository.Read(ctx, s.Jobs, domain.JobStream(id), func(j job.State) bool { return j.Status == job.StatusVoided })
		if err != nil || voided {
			return voided, err
		}
	}
	return false, nil
}

// abandonSession cancels a session that cannot become whole, because the charge of a slot
// with a late job has been refunded. It returns the error that stopped the session.
func (s *Service) abandonSession(ctx context.Context, cause Cause, sessionID string, stopped error) error {
	_, err := s.CancelSession(ctx, cause.Step("abandon"), sessionID)
	var refusal *domain.Error
	if err != nil && (!errors.As(err, &refusal) || refusal.Kind == domain.KindUnavailable) {
		return err
	}
	return stopped
}

// wasAbandoned says whether abandonSession cancelled the session: the log names the
// command of each event.
func (s *Service) wasAbandoned(ctx context.Context, cause Cause, sessionID string) (own bool, err error) {
	err = s.Log.Load(ctx, domain.SessionStream(sessionID), 0, func(r domain.Recorded) error {
		if _, ok := r.Event.(*session.Cancelled); ok {
			own = r.Meta.CommandID == cause.Step("abandon").CommandID
		}
		return nil
	})
	if err != nil {
		return false, domain.Unavailable(fmt.Errorf("read session %s: %w", sessionID, err))
	}
	return own, nil
}

// isWhole says that no job of the session is missing.
func (s *Service) isWhole(ctx context.Context, st session.State) (bool, error) {
	missing, err := s.slotOf(ctx, st, func(j job.State) bool { return !j.Exists })
	return missing.Slot == 0, err
}

// draftSlots settles the project and drafts the event of every slot's job. The checklist
// is written once and at once, because the answer counts its items. A repeat takes it
// from the first job, if that exists.
func (s *Service) draftSlots(ctx context.Context, cause Cause, sessionID string, jobIDs []string, in NewSession) ([]job.Created, error) {
	prepared, err := s.prepareTest(ctx, cause, in.Test, jobIDs, nil)
	if err != nil {
		return nil, err
	}
	slot := prepared.newJob(in.Test)
	slot.Source, slot.SessionID, slot.Wait = "session", sessionID, true
	common, err := s.draftJob(ctx, cause, slot)
	if err != nil {
		return nil, err
	}
	first, err := s.Job(ctx, jobIDs[0])
	if err != nil {
		return nil, err
	}
	if len(first.Items) > 0 {
		common.Items, common.GeneratedBy = first.Items, first.GeneratedBy
	}
	drafts := make([]job.Created, len(jobIDs))
	for i, id := range jobIDs {
		drafts[i] = common
		drafts[i].SessionSlot, drafts[i].Target = i+1, in.Slots[i].Target
		if err := s.sealSecrets(ctx, &drafts[i], id, slot.SubmitJob); err != nil {
			return nil, err
		}
	}
	return drafts, nil
}

func lobbyOf(in NewSession, jobIDs []string, j job.Created) session.Created {
	c := session.Created{
		Submission: session.Submission{
			AccountID: j.AccountID, ProjectID: j.ProjectID, URL: j.URL, Feature: j.Feature,
			ScenarioBrief: in.ScenarioBrief, VoiceEnabled: in.VoiceEnabled,
			Type: j.Type, TypeEcho: j.TypeEcho, Urgent: j.Urgent, SLAMinutes: j.SLAMinutes,
			SlotPrice: j.Price, ItemCount: len(j.Items), Sandbox: j.Sandbox,
		},
		ReadyDeadline: j.CreatedAt.Add(session.LobbyTime), At: j.CreatedAt,
	}
	for i, slot := range in.Slots {
		label := cmp.Or(slot.RoleLabel, fmt.Sprintf("Checker %d", i+1))
		c.Slots = append(c.Slots, session.Slot{Slot: i + 1, RoleLabel: label, JobID: jobIDs[i], Target: slot.Target})
	}
	return c
}

func handleOf(sessionID string, st session.State, remaining domain.Credits) CreatedSession {
	return CreatedSession{
		SessionID: sessionID, ProjectID: st.ProjectID, Status: st.Status, Slots: st.Slots,
		CreditsDeducted: st.SlotPrice * domain.Credits(len(st.Slots)), CreditsRemaining: remaining,
		ChecklistItemCount: st.ItemCount, Type: st.Type, TypeEcho: st.TypeEcho, ReadyDeadline: st.ReadyDeadline,
	}
}

// CancelSession ends a session of the account and refunds the slots that have not
// ended. A repeat answers the same and refunds nothing more. A session is completed
// when all its jobs have ended, even before that is recorded. The same holds if the
// last job ends meanwhile. A crash after the first job was cancelled leaves the rest to
// the policy.
func (s *Service) CancelSession(ctx context.Context, cause Cause, sessionID string) (CancelledSession, error) {
	known, err := s.Session(ctx, sessionID)
	if err != nil {
		return CancelledSession{}, err
	}
	if !known.Exists || known.AccountID != cause.AccountID {
		return CancelledSession{}, domain.NotFound("session")
	}
	if _, _, err := s.advanceSession(ctx, cause.Step("complete"), sessionID, known, session.DecideComplete); err != nil {
		return CancelledSession{}, err
	}
	st, cancelled, err := s.onSession(ctx, cause, sessionID, func(st session.State, now time.Time) ([]domain.Event, error) {
		return session.DecideCancel(st, session.CancelClient, now)
	})
	if err != nil {
		return CancelledSession{}, err
	}
	at, err := s.settleSlots(ctx, cause, st, true)
	if err != nil {
		return CancelledSession{}, err
	}
	st, ended, err := s.advanceSession(ctx, cause.Step("end"), sessionID, st, session.DecideComplete)
	switch {
	case err != nil:
		return CancelledSession{}, err
	case st.Status != session.StatusCancelled: // the last of its jobs ended first
		_, err := session.DecideCancel(st, session.CancelClient, s.Now())
		return CancelledSession{}, err
	}
	out := CancelledSession{SessionID: sessionID, Status: st.Status, Position: cancelled.Max(at).Max(ended)}
	if out.CreditsRefunded, out.CreditsExpired, err = s.refundsOf(ctx, cause, st); err != nil {
		return CancelledSession{}, err
	}
	out.CreditsRemaining, err = s.availableCredits(ctx, cause)
	return out, err
}

// refundsOf adds up the refunds of the session's slots: the amount that came back, and the
// amount that was lost.
func (s *Service) refundsOf(ctx context.Context, cause Cause, st session.State) (back, expired domain.Credits, err error) {
	debits, err := repository.Read(ctx, s.Ledgers, domain.CreditsStream(cause.AccountID), func(ledger credits.State) []*credits.Debit {
		debits := make([]*credits.Debit, len(st.Slots))
		for i, slot := range st.Slots {
			if !ledger.LeftBehind(slot.JobID) {
				d, _ := ledger.Debit(slot.JobID)
				debits[i] = &d
			}
		}
		return debits
	})
	if err != nil {
		return 0, 0, err
	}
	for i, d := range debits {
		if d == nil {
			if d, err = s.ledger.PastDebit(ctx, cause.AccountID, st.Slots[i].JobID); err != nil {
				return 0, 0, err
			}
		}
		if d != nil && d.Refunded {
			// The stream of a voided job does not have its price.
			amount := max(d.Amount, st.SlotPrice)
			back, expired = back+amount-d.Expired, expired+d.Expired
		}
	}
	return back, expired, nil
}

// onSession runs a decision on a session, at its account's time, and gives the state after it.
func (s *Service) onSession(
	ctx context.Context, cause Cause, sessionID string, decide func(session.State, time.Time) ([]domain.Event, error),
) (session.State, domain.Position, error) {
	return settings.Execute(ctx, s.Commands, s.Sessions, cause, domain.SessionStream(sessionID), decide, session.State.Clone)
}

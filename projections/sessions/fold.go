package sessions

import (
	"fmt"
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/projections/readmodel"
)

// fold applies one event. It skips a job without a session, and a session without a row
// (an operator skipped its session.created).
func (f *sessionsFold) fold(r domain.Recorded) error {
	id := sessionOf(r)
	if e, ok := r.Event.(*session.Created); ok {
		return f.create(id, e)
	}
	if id != "" {
		if s := f.sessions[id]; s != nil {
			s.changed = true
			s.move(r.Event)
		}
		return nil
	}
	jobID := readmodel.JobOf(r)
	if s := f.sessions[f.ofJob[jobID]]; s != nil {
		s.changed = true
		s.work(jobID, r.Event)
	}
	return nil
}

func (f *sessionsFold) create(id string, e *session.Created) error {
	if f.sessions[id] != nil {
		return fmt.Errorf("session %s was created before", id)
	}
	s := &foldedSession{isNew: true, changed: true}
	s.row = Session{
		ID: id, AccountID: e.AccountID, ProjectID: e.ProjectID, Status: session.StatusLobby,
		URL: e.URL, Feature: e.Feature, ScenarioBrief: e.ScenarioBrief, VoiceEnabled: e.VoiceEnabled,
		Type: e.Type, TypeEcho: e.TypeEcho, ItemCount: e.ItemCount,
		CreditsCharged: e.SlotPrice * domain.Credits(len(e.Slots)),
		ReadyDeadline:  readmodel.Moment(e.ReadyDeadline), CreatedAt: readmodel.Moment(e.At), Marks: []Mark{},
	}
	for _, slot := range e.Slots {
		s.row.Slots = append(s.row.Slots, Slot{
			Slot: slot.Slot, RoleLabel: slot.RoleLabel, JobID: slot.JobID, Target: slot.Target, Status: SlotWaiting,
			JobStatus: job.StatusPending, // or about to be
		})
		f.ofJob[slot.JobID] = id
		f.jobs = append(f.jobs, sessionJobRow{JobID: slot.JobID, SessionID: id})
	}
	f.sessions[id] = s
	f.order = append(f.order, s)
	return nil
}

// move applies an event of the session's own.
func (s *foldedSession) move(e domain.Event) {
	switch e := e.(type) {
	case *session.SlotReady:
		s.put(e.Slot, SlotReady, readmodel.MomentPtr(e.At))
	case *session.SlotLeft:
		s.put(e.Slot, SlotWaiting, nil)
	case *session.Started:
		s.row.Status, s.row.StartedAt = session.StatusActive, readmodel.MomentPtr(e.At)
		for i := range s.row.Slots {
			switch slot := &s.row.Slots[i]; {
			case slot.Status == SlotEnded:
			case slices.Contains(e.Dropped, slot.Slot):
				slot.Status = SlotDropped
			default:
				slot.Status = SlotActive
			}
		}
	case *session.Marked:
		s.row.Marks = append(s.row.Marks, Mark{Slot: e.Slot, Note: e.Note, At: readmodel.Moment(e.At)})
	case *session.Completed:
		s.row.PassCount, s.row.FailCount = e.PassCount, e.FailCount
		s.close(session.StatusCompleted, "completed", e.At)
	case *session.Expired:
		s.close(session.StatusExpired, "expired", e.At)
	case *session.Cancelled:
		s.close(session.StatusCancelled, e.Reason, e.At)
	}
}

func (s *foldedSession) put(slot int, status string, readyAt *time.Time) {
	for i := range s.row.Slots {
		if s.row.Slots[i].Slot == slot {
			s.row.Slots[i].ReadyAt = readyAt
			if s.row.Slots[i].Status != SlotEnded {
				s.row.Slots[i].Status = status
			}
		}
	}
}

func (s *foldedSession) close(to session.Status, reason string, at time.Time) {
	s.row.Status, s.row.CloseReason, s.row.ClosedAt = to, reason, readmodel.MomentPtr(at)
}

// work applies an event of a slot's job, or the refund of it.
func (s *foldedSession) work(jobID string, e domain.Event) {
	slot := &s.row.Slots[slices.IndexFunc(s.row.Slots, func(slot Slot) bool { return slot.JobID == jobID })]
	switch e := e.(type) {
	case *job.Claimed:
		slot.JobStatus = job.StatusClaimed
	case *job.Released, *job.SLAMissed, *job.UntestableReported:
		slot.JobStatus = job.StatusPending
		if slot.Status == SlotReady { // a checker who releases the claim waits no more
			slot.Status, slot.ReadyAt = SlotWaiting, nil
		}
	case *job.Completed:
		slot.ReportID = e.ReportID
		slot.end(job.StatusCompleted)
	case *job.DisputeDecided: // an open session counts its jobs when it ends
		if s.row.Status == session.StatusCompleted {
			s.row.PassCount += e.Shift(job.OverallPass)
			s.row.FailCount += e.Shift(job.OverallFail)
		}
	case *job.Failed:
		slot.end(job.StatusFailed)
	case *job.Cancelled, *job.Voided:
		slot.end(job.StatusCancelled)
	case *credits.Refunded:
		s.row.CreditsRefunded += e.Amount - e.Expired
		s.row.CreditsExpired += e.Expired
	}
}

// end sets the slot's end, but keeps the status of a dropped slot, which says more.
func (s *Slot) end(status job.Status) {
	s.JobStatus = status
	if s.Status != SlotDropped {
		s.Status = SlotEnded
	}
}

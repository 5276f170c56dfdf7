package audit

import (
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/session"
)

// sessionRecord is the audit's record of a session.
type sessionRecord struct {
	status   session.Status
	slots    []session.Slot
	dropped  []int
	closedAt time.Time // when it expired or was cancelled: its jobs must end soon after
}

// seeSession checks that only legal transitions happen and that ends absorb (invariant
// 8). It also checks that a session completes only after its jobs have ended.
func (a *Audit) seeSession(r domain.Recorded, sessionID string) {
	g := a.sessions[sessionID]
	if e, ok := r.Event.(*session.Created); ok {
		if g != nil {
			a.find(8, r.Stream, "is created again")
			return
		}
		a.sessions[sessionID] = &sessionRecord{status: session.StatusLobby, slots: e.Slots}
		return
	}
	if g == nil {
		a.find(8, r.Stream, "%s before its creation", r.Type)
		return
	}
	from, to := []session.Status{session.StatusLobby}, g.status
	switch e := r.Event.(type) {
	case *session.SlotReady, *session.SlotLeft:
	case *session.Marked:
		from = append(from, session.StatusActive)
	case *session.Started:
		to, g.dropped = session.StatusActive, e.Dropped
		if len(e.Ready) < session.MinSlots || len(e.Ready)+len(e.Dropped) != len(g.slots) {
			a.find(8, r.Stream, "started with %v and without %v of %d slots", e.Ready, e.Dropped, len(g.slots))
		}
	case *session.Completed:
		from, to = []session.Status{session.StatusActive}, session.StatusCompleted
		for _, slot := range g.slots {
			if !slices.Contains(g.dropped, slot.Slot) && !a.ended(slot.JobID) {
				a.find(8, r.Stream, "completed before slot %d's job ended", slot.Slot)
			}
		}
	case *session.Expired:
		to, g.closedAt = session.StatusExpired, r.Meta.Time
	case *session.Cancelled:
		from, to, g.closedAt = append(from, session.StatusActive), session.StatusCancelled, r.Meta.Time
	default:
		return
	}
	if !slices.Contains(from, g.status) {
		a.find(8, r.Stream, "%s while it is %s", r.Type, g.status)
	}
	g.status = to
}

// ended says that the job exists and has ended.
func (a *Audit) ended(jobID string) bool {
	j := a.jobs[jobID]
	return j != nil && j.status != job.StatusPending && j.status != job.StatusClaimed
}

// openSlots gives the slots of the session whose jobs outlived it.
func (a *Audit) openSlots(g *sessionRecord, now time.Time) (open []int) {
	if g.closedAt.IsZero() || now.Sub(g.closedAt) <= settledWithin {
		return nil
	}
	for _, slot := range g.slots {
		if !a.ended(slot.JobID) {
			open = append(open, slot.Slot)
		}
	}
	return open
}

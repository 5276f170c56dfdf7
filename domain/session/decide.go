package session

import (
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// Every decision returns the events to write, none for a harmless repeat, or the refusal.
// The caller has checked the right to see the session.

const (
	// MinSlots and MaxSlots bound a session (specification, "Limits").
	MinSlots = 2
	MaxSlots = 10
	// LobbyTime is how long the lobby waits for the checkers (decisions, "Session
	// states").
	LobbyTime = 15 * time.Minute
	// quorum is the least number of ready checkers that a session starts with.
	quorum = 2
	// MaxMarks bounds the marked moments of a session.
	MaxMarks = 200
)

// Outlook is the result of the deadline for a lobby.
type Outlook struct {
	Starts   bool
	Refunded int // slots whose charge comes back
}

// AtDeadline gives the result of the deadline for a lobby with so many ready of so many
// slots.
func AtDeadline(ready, slots int) Outlook {
	if ready < quorum {
		return Outlook{Refunded: slots}
	}
	return Outlook{Starts: true, Refunded: slots - ready}
}

// The reasons for which a session is cancelled.
const (
	CancelClient   = "client"
	CancelOperator = "operator"
)

// Work has the facts about a slot's job that the session's decisions need. The jobs are
// streams of their own, so it may be a moment old.
type Work struct {
	// Claim is the claim that holds the job, or that completed it; without a claim its
	// checker is empty.
	Claim
	// Ended says that the job has ended.
	Ended bool
	// Cancelled says that the job was cancelled, which only its session can do.
	Cancelled bool
	// OverallStatus is the report's; it is empty without a report.
	OverallStatus string
}

// DecideCreate opens the lobby.
func DecideCreate(s State, c Created) ([]domain.Event, error) {
	switch n := len(c.Slots); {
	case s.Exists:
		return nil, domain.Conflict("the session exists already")
	case n < MinSlots || n > MaxSlots:
		return nil, domain.InvalidAt("slots", "must have %d to %d entries", MinSlots, MaxSlots)
	}
	return []domain.Event{&c}, nil
}

// DecideReady records that the checker waits in the slot. The checker must hold the
// slot's job (slot 0: the checker holds no job of the session). work is that of all
// slots, in their order: a checker who released the claim after being ready waits no
// more. The last slot to become ready starts the session in the same append, so exactly
// one command starts it.
//
// At the deadline the lobby is closed, even if the log does not say so yet.
func DecideReady(s State, slot int, checkerID string, work []Work, now time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("session")
	case s.Closed():
		return nil, errClosed()
	case s.claimOf(slot, work).CheckerID != checkerID:
		return nil, errNotHeld()
	case !s.Live(slot):
		return nil, domain.Conflict("the session started without this slot").WithHint("claim another job")
	case s.Status == StatusActive:
		return nil, nil // the session has begun: a repeat, or a checker who took a released slot
	case !now.Before(s.ReadyDeadline):
		return nil, domain.Conflict("the time to get ready is over").WithHint("claim another job")
	}
	ready, events := s.present(work, now)
	if _, there := ready[slot]; !there {
		claim := s.claimOf(slot, work)
		ready[slot] = claim
		events = append(events, &SlotReady{Slot: slot, CheckerID: claim.CheckerID, Token: claim.Token, At: now})
	}
	if len(ready) == len(s.Slots) {
		events = append(events, s.startedEvent(ready, now))
	}
	return events, nil
}

// DecideLeave takes the checker out of the lobby. After the start of the session it
// changes nothing: the checker only releases the job.
func DecideLeave(s State, slot int, checkerID string, now time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("session")
	case s.Closed():
		return nil, errClosed()
	case slot == 0:
		return nil, errNotHeld()
	case s.Status == StatusLobby && s.Ready[slot].CheckerID == checkerID:
		return []domain.Event{&SlotLeft{Slot: slot, CheckerID: checkerID, At: now}}, nil
	}
	return nil, nil
}

// DecideDeadline ends the lobby once its time is over: with two or more ready slots the
// session starts without the others, with fewer it expires.
func DecideDeadline(s State, work []Work, now time.Time) []domain.Event {
	if s.Status != StatusLobby || now.Before(s.ReadyDeadline) {
		return nil
	}
	ready, events := s.present(work, now)
	if !AtDeadline(len(ready), len(s.Slots)).Starts {
		return append(events, &Expired{ReadyCount: len(ready), At: now})
	}
	return append(events, s.startedEvent(ready, now))
}

// DecideComplete ends a session that has started once every live slot's job has ended.
// The counts are jobs; a job without a report is in neither. If a job of the session was
// cancelled, the session is cancelled.
func DecideComplete(s State, work []Work, now time.Time) []domain.Event {
	if s.Status != StatusActive {
		return nil
	}
	if s.GivenUp(work) {
		for i, slot := range s.Slots {
			if s.Live(slot.Slot) && !work[i].Ended {
				return nil
			}
		}
		return []domain.Event{&Cancelled{Reason: CancelClient, At: now}}
	}
	done := &Completed{At: now}
	for i, slot := range s.Slots {
		switch {
		case !s.Live(slot.Slot):
		case !work[i].Ended:
			return nil
		case work[i].OverallStatus == job.OverallPass:
			done.PassCount++
		case work[i].OverallStatus == job.OverallFail:
			done.FailCount++
		}
	}
	return []domain.Event{done}
}

// GivenUp says that a started session is being cancelled: the job of a live slot was
// cancelled.
func (s State) GivenUp(work []Work) bool {
	if s.Status != StatusActive {
		return false
	}
	for i, slot := range s.Slots {
		if s.Live(slot.Slot) && work[i].Cancelled {
			return true
		}
	}
	return false
}

// DecideCancel ends the lobby. A second cancellation is a repeat. It does not end a
// session that has started: its jobs are cancelled first, and DecideComplete then ends
// it. If all jobs have ended before a cancellation, the session is completed.
func DecideCancel(s State, reason string, now time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("session")
	case s.Status == StatusCancelled, s.Status == StatusActive:
		return nil, nil
	case s.Closed():
		return nil, errClosed()
	}
	return []domain.Event{&Cancelled{Reason: reason, At: now}}, nil
}

// DecideMark records a moment. A checker marks in the slot of the job that the checker
// holds or has completed (slot 0: there is no such job). A person of the account marks
// without a slot. The same id is a repeat.
func DecideMark(s State, m Marked) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("session")
	case slices.Contains(s.Marks, m.ID):
		return nil, nil
	case s.Closed():
		return nil, errClosed()
	case m.CheckerID != "" && m.Slot == 0:
		return nil, errNotHeld()
	case m.CheckerID != "" && !s.Live(m.Slot):
		return nil, domain.Conflict("the session started without this slot").WithHint("claim another job")
	case len(s.Marks) >= MaxMarks:
		return nil, domain.Conflict("the session has %d marks, the most it holds", MaxMarks).WithHint("say the rest in your report")
	}
	return []domain.Event{&m}, nil
}

// claimOf is the claim that holds the slot's job.
func (s State) claimOf(slot int, work []Work) Claim {
	for i, known := range s.Slots {
		if known.Slot == slot && !work[i].Ended {
			return work[i].Claim
		}
	}
	return Claim{}
}

// present gives the claims of ready checkers who still hold them, and SlotLeft events for
// the others.
func (s State) present(work []Work, now time.Time) (map[int]Claim, []domain.Event) {
	ready := make(map[int]Claim, len(s.Slots))
	var left []domain.Event
	for i, slot := range s.Slots {
		claim, there := s.Ready[slot.Slot]
		switch {
		case !there:
		case work[i].Claim == claim:
			ready[slot.Slot] = claim
		default:
			left = append(left, &SlotLeft{Slot: slot.Slot, CheckerID: claim.CheckerID, At: now})
		}
	}
	return ready, left
}

func (s State) startedEvent(ready map[int]Claim, now time.Time) *Started {
	e := &Started{Ready: []int{}, Dropped: []int{}, DueAt: now.Add(s.SLA()), At: now}
	for _, slot := range s.Slots {
		if _, ok := ready[slot.Slot]; ok {
			e.Ready = append(e.Ready, slot.Slot)
		} else {
			e.Dropped = append(e.Dropped, slot.Slot)
		}
	}
	return e
}

func errClosed() error {
	return domain.Conflict("the session is closed").WithHint("open another session")
}

func errNotHeld() error {
	return domain.Conflict("you hold none of the session's slots").WithHint("claim one of its jobs first")
}

package session

import (
	"maps"
	"slices"
	"time"

	"humanqa/domain"
)

// State is a session after some events. It belongs to its fold: Evolve changes
// map and list in place, so a state that was passed to Evolve must not be used
// again.
type State struct {
	Exists bool
	Status Status

	// The submission (see Created).
	Submission
	ReadyDeadline time.Time

	// Ready holds, by slot, the claim of the checker who waits in it. After the start
	// these are the claims that the session started with.
	Ready map[int]Claim
	// Dropped are the slots that the session started without.
	Dropped   []int
	StartedAt time.Time // zero before the start, like DueAt
	DueAt     time.Time // when the slots' SLA ends
	// Marks are the ids of the moments that were marked.
	Marks []string
}

// Claim is a claim of a slot's job: a checker who releases it and claims again holds
// another claim.
type Claim struct {
	CheckerID string
	Token     int
}

// SLA is how long the slots have once the session has started.
func (s State) SLA() time.Duration { return time.Duration(s.SLAMinutes) * time.Minute }

// Closed says that the session has ended.
func (s State) Closed() bool {
	return s.Status == StatusCompleted || s.Status == StatusExpired || s.Status == StatusCancelled
}

// Clone gives a state that its fold no longer changes.
func (s State) Clone() State {
	s.Ready, s.Marks = maps.Clone(s.Ready), slices.Clone(s.Marks)
	return s
}

// Live says whether the slot takes part. After the start only the slots that the session
// started with do.
func (s State) Live(slot int) bool { return !slices.Contains(s.Dropped, slot) }

// Evolve folds one event into the state and takes the old state over (see
// State). Events of other aggregates change nothing.
func Evolve(s State, e domain.Event) State {
	switch e := e.(type) {
	case *Created:
		s.Exists, s.Status = true, StatusLobby
		s.Submission, s.ReadyDeadline = e.Submission, e.ReadyDeadline
		s.Ready = make(map[int]Claim, len(e.Slots))
	case *SlotReady:
		s.Ready[e.Slot] = Claim{CheckerID: e.CheckerID, Token: e.Token}
	case *SlotLeft:
		delete(s.Ready, e.Slot)
	case *Started:
		s.Status, s.Dropped, s.StartedAt, s.DueAt = StatusActive, e.Dropped, e.At, e.DueAt
	case *Marked:
		s.Marks = append(s.Marks, e.ID)
	case *Completed:
		s.Status = StatusCompleted
	case *Expired:
		s.Status = StatusExpired
	case *Cancelled:
		s.Status = StatusCancelled
	}
	return s
}

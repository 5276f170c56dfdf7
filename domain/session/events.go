// Package session is the life of a synchronized test: a lobby, 2 to 10 slots with a job
// each, a common start, and an end. Everything here is pure: time and ids come in with
// the command.
package session

import (
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// Status is the state of a session (decisions, "Session states").
type Status string

// The states. StatusCompleted, StatusExpired and StatusCancelled are ends and absorb.
const (
	StatusLobby     Status = "lobby"
	StatusActive    Status = "active"
	StatusCompleted Status = "completed"
	StatusExpired   Status = "expired"
	StatusCancelled Status = "cancelled"
)

// Slot is one checker's place. Slot counts from 1.
type Slot struct {
	Slot      int        `json:"slot"`
	RoleLabel string     `json:"roleLabel"`
	JobID     string     `json:"jobId"`
	Target    job.Target `json:"target,omitzero"`
}

// Submission is the request: in the event, the state and the read model.
type Submission struct {
	AccountID     string         `json:"accountId"`
	ProjectID     string         `json:"projectId"`
	URL           string         `json:"url"`
	Feature       string         `json:"feature,omitempty"`
	ScenarioBrief string         `json:"scenarioBrief,omitempty"`
	VoiceEnabled  bool           `json:"voiceEnabled"`
	Type          job.Type       `json:"type"`
	TypeEcho      string         `json:"typeEcho"`
	Urgent        bool           `json:"urgent,omitempty"`
	SLAMinutes    int            `json:"slaMinutes"`
	SlotPrice     domain.Credits `json:"slotPrice"`
	ItemCount     int            `json:"itemCount"` // of each slot's checklist
	Sandbox       bool           `json:"sandbox,omitempty"`
	Slots         []Slot         `json:"slots"`
}

// Created opens the lobby. The jobs of the slots were charged earlier, and follow.
type Created struct {
	Submission
	ReadyDeadline time.Time `json:"readyDeadline"`
	At            time.Time `json:"at"`
}

// SlotReady records that the slot's checker waits in the lobby. The checker holds the
// slot's job by the claim of that token.
type SlotReady struct {
	Slot      int       `json:"slot"`
	CheckerID string    `json:"checkerId"`
	Token     int       `json:"token"`
	At        time.Time `json:"at"`
}

// SlotLeft ends the readiness of a slot.
type SlotLeft struct {
	Slot      int       `json:"slot"`
	CheckerID string    `json:"checkerId"`
	At        time.Time `json:"at"`
}

// Started begins the test with the slots that are ready. The jobs of the other slots
// are cancelled and refunded.
type Started struct {
	Ready   []int     `json:"ready"`
	Dropped []int     `json:"dropped"`
	DueAt   time.Time `json:"dueAt"` // when the slots' SLA ends
	At      time.Time `json:"at"`
}

// Marked keeps a moment for all participants. The checker of a slot or a person of the
// account marked it.
type Marked struct {
	ID        string    `json:"id"`
	Slot      int       `json:"slot,omitempty"`      // the checker's; 0: of the account
	CheckerID string    `json:"checkerId,omitempty"` // empty: of the account
	PersonID  string    `json:"personId,omitempty"`  // empty: a checker
	Note      string    `json:"note,omitempty"`
	At        time.Time `json:"at"`
}

// Completed ends the session once every live slot's job has ended. The counts are jobs.
type Completed struct {
	PassCount int       `json:"passCount"`
	FailCount int       `json:"failCount"`
	At        time.Time `json:"at"`
}

// Expired ends a lobby with fewer than two ready slots at the deadline.
type Expired struct {
	ReadyCount int       `json:"readyCount"`
	At         time.Time `json:"at"`
}

// Cancelled ends the session by order of the client or an operator.
type Cancelled struct {
	Reason string    `json:"reason"` // client, operator
	At     time.Time `json:"at"`
}

func (*Created) EventType() string   { return "session.created" }
func (*SlotReady) EventType() string { return "session.slot_ready" }
func (*SlotLeft) EventType() string  { return "session.slot_left" }
func (*Started) EventType() string   { return "session.started" }
func (*Marked) EventType() string    { return "session.marked" }
func (*Completed) EventType() string { return "session.completed" }
func (*Expired) EventType() string   { return "session.expired" }
func (*Cancelled) EventType() string { return "session.cancelled" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return domain.Specs(
		&Created{}, &SlotReady{}, &SlotLeft{}, &Started{}, &Marked{}, &Completed{}, &Expired{}, &Cancelled{},
	)
}

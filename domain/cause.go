package domain

import (
	"strings"
	"time"

	"github.com/google/uuid"
)

// Cause identifies a command and its actor. The same CommandID always has the same
// effect: all ids of a command derive from it.
type Cause struct {
	CommandID     uuid.UUID
	CorrelationID string // x-request-id
	CausationID   string // id of the event that a policy reacts to
	Trace         string // the traceparent that the command goes on from; empty: no trace
	Actor         string // key:<id>, checker:<id>, operator, policy:<name>
	AccountID     string // whose data the command is about
	// Sandbox says that the account is one: its time is its own (see
	// account.ClockAdvanced).
	Sandbox bool
	// NotBefore is an instant that has come, whatever this machine's clock says:
	// the due time of the timer that a policy acts on.
	NotBefore time.Time
	// AskedAt is the time of the first request, equal for every repeat; zero if it is
	// unknown. A charge that was asked for after its ledger was closed needs no look at
	// what the close left behind.
	AskedAt time.Time
}

// RequestedBy names the person or the API key of the command. Both are empty for a
// command without a request.
func (c Cause) RequestedBy() (userID *string, keyID string) {
	kind, id, _ := strings.Cut(c.Actor, ":")
	switch kind {
	case "person":
		return &id, ""
	case "key":
		return nil, id
	}
	return nil, ""
}

// Step is a part of the command that is told apart from the others in the log.
func (c Cause) Step(name string) Cause {
	c.CommandID = DeriveID(c.CommandID, name)
	return c
}

// NewCommandID makes the id of a command without repeats.
func NewCommandID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

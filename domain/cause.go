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
	AccountID     string // the account of the data that the command is about
	ProjectID     string // the project that the caller's key is bound to; empty: to none
	// Sandbox says that the account is a sandbox with its own clock (see
	// account.ClockAdvanced).
	Sandbox bool
	// NotBefore is the due time of the timer that a policy acts on. That instant has
	// passed, even if this machine's clock is behind.
	NotBefore time.Time
	// AskedAt is the time of the first request, equal for every repeat; zero if it is
	// unknown. A charge that was asked for after the last close of its ledger needs no
	// search for debits that the close left behind.
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

// Step gives the cause of a part of the command, with an id of its own in the log.
func (c Cause) Step(name string) Cause {
	c.CommandID = DeriveID(c.CommandID, name)
	return c
}

// NewCommandID makes the id of a command without repeats.
func NewCommandID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

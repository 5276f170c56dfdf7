// Package origin holds what a log says of itself: its name, for what was
// projected from one log must never go on with another, and the parts of events
// that are too large for one append. Everything here is pure.
package origin

import (
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
)

// Stream holds the log's name as its first event; the first one counts.
const Stream = "log-origin"

// Named says which log this is. A new log begins with it; one that is older
// than this event type is named when a service first runs on it.
type Named struct {
	LogID string    `json:"logId"`
	At    time.Time `json:"at"`
	// AuditKey is as in KeyBound. Logs that are older than that have none.
	AuditKey string `json:"auditKey,omitempty"`
}

// EventType implements domain.Event.
func (*Named) EventType() string { return "log.named" }

// KeyBound says by which key the log's checkpoints are signed, and that every event of
// the service carries a MAC from here on. A service appends it to a log that is older
// than that, and an operator who accepts a log whose audit has findings.
type KeyBound struct {
	// AuditKey is the SHA-256, in hex, of what checkpoints are verified by.
	AuditKey string    `json:"auditKey"`
	At       time.Time `json:"at"`
	// Reason is the operator's.
	Reason string `json:"reason,omitempty"`
}

// EventType implements domain.Event.
func (*KeyBound) EventType() string { return "log.key_bound" }

// Part is a piece of the data of an event that follows elsewhere (package
// eventstore).
type Part struct {
	Data []byte `json:"part"`
}

// EventType implements domain.Event.
func (*Part) EventType() string { return "log.part" }

// PartStream holds the parts of an event, in their order.
func PartStream(eventID uuid.UUID) string { return "part-" + eventID.String() }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return []domain.EventSpec{
		{New: func() domain.Event { return new(Named) }},
		{New: func() domain.Event { return new(KeyBound) }},
		{New: func() domain.Event { return new(Part) }},
	}
}

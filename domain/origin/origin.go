// Package origin holds the log's statements about itself. They are its name, because
// rows of one log must never continue with another log, and the parts of events too
// large for one append. Everything here is pure.
package origin

import (
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
)

// Stream holds the log's name as its first event; the first one counts.
const Stream = "log-origin"

// Named gives the log its name. A new log begins with it. An older log gets it when a
// service first runs on it.
type Named struct {
	LogID string    `json:"logId"`
	At    time.Time `json:"at"`
	// AuditKey is as in KeyBound. Older logs have none.
	AuditKey string `json:"auditKey,omitempty"`
}

func (*Named) EventType() string { return "log.named" }

// KeyBound names the key that signs the log's checkpoints. Every event of the service
// carries a MAC from here on. A service appends it to a log from before MACs. An
// operator appends it to accept a log with findings of the audit.
type KeyBound struct {
	// AuditKey is the SHA-256, in hex, of the public key of checkpoints.
	AuditKey string    `json:"auditKey"`
	At       time.Time `json:"at"`
	// Reason is the operator's.
	Reason string `json:"reason,omitempty"`
}

func (*KeyBound) EventType() string { return "log.key_bound" }

// Part is a piece of the data of an event that follows elsewhere (package eventstore).
type Part struct {
	Data []byte `json:"part"`
}

func (*Part) EventType() string { return "log.part" }

// PartStream holds the parts of an event, in their order.
func PartStream(eventID uuid.UUID) string { return "part-" + eventID.String() }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return domain.Specs(&Named{}, &KeyBound{}, &Restored{}, &Trimmed{}, &Part{})
}

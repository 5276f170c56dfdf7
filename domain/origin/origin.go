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
// operator appends it to accept a key that was made anew.
type KeyBound struct {
	// AuditKey is the SHA-256, in hex, of the public key of checkpoints.
	AuditKey string    `json:"auditKey"`
	At       time.Time `json:"at"`
	// Reason is the operator's.
	Reason string `json:"reason,omitempty"`
}

func (*KeyBound) EventType() string { return "log.key_bound" }

// AuditJudged is an operator's word about a finding of the audit: about one event that is
// not proved to be the service's, or about findings that name no event.
type AuditJudged struct {
	// EventID is the event's, and Sum the SHA-256 of its bytes in hex: after another change
	// it is a finding again. Both are empty for the other findings.
	EventID string `json:"eventId,omitempty"`
	Sum     string `json:"sum,omitempty"`
	// Disowned says that the event counts for nothing. Otherwise it counts as if the service
	// had written it.
	Disowned bool      `json:"disowned,omitempty"`
	At       time.Time `json:"at"`
	Reason   string    `json:"reason"`
}

func (*AuditJudged) EventType() string { return "log.audit_judged" }

// Part is a piece of the data of an event that follows elsewhere (package eventstore).
type Part struct {
	Data []byte `json:"part"`
}

func (*Part) EventType() string { return "log.part" }

// PartStream holds the parts of an event, in their order.
func PartStream(eventID uuid.UUID) string { return "part-" + eventID.String() }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return domain.Specs(&Named{}, &KeyBound{}, &AuditJudged{}, &Restored{}, &Trimmed{}, &Part{})
}

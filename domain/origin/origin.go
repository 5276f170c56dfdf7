// Package origin is a log's name for itself: what was projected from one log
// must never go on with another. Everything here is pure.
package origin

import (
	"time"

	"humanqa/domain"
)

// Stream holds the log's name as its first event; the first one counts.
const Stream = "log-origin"

// Named says which log this is. A new log begins with it; one that is older
// than this event type is named when a service first runs on it.
type Named struct {
	LogID string    `json:"logId"`
	At    time.Time `json:"at"`
}

// EventType implements domain.Event.
func (*Named) EventType() string { return "log.named" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return []domain.EventSpec{{New: func() domain.Event { return new(Named) }}}
}

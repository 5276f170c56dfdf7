// Package host remembers the project of the hosted tests of a host. The log decides
// between two simultaneous first tests: one links the host, and the other finds the link.
// Everything here is pure.
package host

import (
	"time"

	"humanqa/domain"
)

// Linked binds a host of the account to a project, for good. Host is in the form of
// identity.Site; older versions kept other forms.
type Linked struct {
	AccountID string    `json:"accountId"`
	Host      string    `json:"host"`
	ProjectID string    `json:"projectId"`
	At        time.Time `json:"at"`
}

func (*Linked) EventType() string { return "host.linked" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return domain.Specs(&Linked{})
}

// State is a host after some events.
type State struct {
	ProjectID string // empty: not linked
}

// Evolve folds one event into the state.
func Evolve(s State, e domain.Event) State {
	if e, ok := e.(*Linked); ok {
		s.ProjectID = e.ProjectID
	}
	return s
}

// DecideLink binds the host to the project, unless it is bound: the first link
// stands.
func DecideLink(s State, link Linked) ([]domain.Event, error) {
	if s.ProjectID != "" {
		return nil, nil
	}
	return []domain.Event{&link}, nil
}

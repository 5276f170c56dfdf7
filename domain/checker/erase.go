package checker

import (
	"time"

	"humanqa/domain"
)

// Erased removes the checker's name, profile and key for good, by an operator's order
// (decisions, "Erasure of one subject"). The key of the texts is destroyed after this
// event.
type Erased struct {
	By     string    `json:"by"` // the operator's name
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

func (*Erased) EventType() string { return "checker.erased" }

func errErased() error { return domain.Conflict("the checker was erased") }

// DecideErase erases a checker. A repeat changes nothing.
func DecideErase(s State, by, reason string, now time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("checker")
	case !s.ErasedAt.IsZero():
		return nil, nil
	}
	if err := domain.OrderOfErasure(by, reason); err != nil {
		return nil, err
	}
	return []domain.Event{&Erased{By: by, Reason: reason, At: now}}, nil
}

// erase does not change data that the state shares with events.
func (s *State) erase(e *Erased) {
	s.ErasedAt = e.At
	s.Name, s.Hash, s.Prefix, s.Languages, s.Devices = domain.Erased(s.Name), "", "", nil, nil
}

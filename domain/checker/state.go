package checker

import (
	"time"

	"humanqa/domain"
)

// State is a checker after some events. Evolve copies what it changes, so a state may be
// kept.
type State struct {
	Exists   bool
	Name     string
	Hash     string
	Prefix   string
	Accounts []string // the accounts the checker belongs to
	PersonID string   // the person who works as this checker; empty: the holder of the key
	// The checker's own profile.
	Languages []string
	Devices   []string
	// Held are the reservations that were left when the last one was taken,
	// oldest first. Some may be void by now (see ClaimTaken).
	Held []Reservation
	// ErasedAt is when the checker was erased; zero: the checker was not erased.
	ErasedAt time.Time
}

// Evolve folds one event into the state. Events of other aggregates change nothing.
func Evolve(s State, e domain.Event) State {
	switch e := e.(type) {
	case *Created:
		s.Exists, s.Name, s.Hash, s.Prefix, s.Accounts = true, e.Name, e.Hash, e.Prefix, e.Accounts
	case *ClaimTaken:
		s.Held = e.Held
	case *Bound:
		s.PersonID = e.PersonID
	case *Profiled:
		s.Languages, s.Devices = e.Languages, e.Devices
	case *Erased:
		s.erase(e)
	}
	return s
}

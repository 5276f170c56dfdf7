package account

import (
	"maps"
	"time"

	"humanqa/domain"
	"humanqa/domain/retention"
)

// State is an account after some events. It belongs to its fold: Evolve
// changes the maps in place, so a state that was passed to Evolve must not be
// used again.
type State struct {
	Exists    bool
	Name      string
	Sandbox   bool
	Suspended bool   // also once it is erased
	PoolID    string // only this pool's checkers get its tests; empty: any checker
	// Erased is final. Finished says that no erasable data are left.
	Erased, Finished bool
	// Keep is how long evidence is kept. Hold suspends that; nil: there is no hold.
	Keep retention.Keep
	Hold *retention.Hold
	// Ahead is how far the account's clock is ahead; zero but in a sandbox. Advances has
	// that distance after each call, by the call's id.
	Ahead    time.Duration
	Advances map[string]time.Duration
	Keys     map[string]Key // by key id, revoked ones too
}

// Key is an API key as the account knows it.
type Key struct {
	ID        string
	Hash      string
	Prefix    string
	Scope     Scope
	ProjectID string
	ExpiresAt *time.Time
	Revoked   bool
}

// Clone gives a state that its fold no longer changes.
func (s State) Clone() State {
	s.Advances, s.Keys = maps.Clone(s.Advances), maps.Clone(s.Keys)
	return s
}

// Evolve folds one event into the state and takes the old state over (see
// State). Events of other aggregates change nothing.
func Evolve(s State, e domain.Event) State {
	switch e := e.(type) {
	case *Created:
		s.Exists, s.Name, s.Sandbox = true, e.Name, e.Sandbox
	case *Suspended:
		s.Suspended = true
	case *Reinstated:
		s.Suspended = false
	case *PoolChosen:
		s.PoolID = e.PoolID
	case *RetentionChanged:
		s.Keep = e.Keep
	case *HoldPlaced:
		s.Hold = e.Hold()
	case *HoldReleased:
		s.Hold = nil
	case *Erased:
		s.Erased, s.Suspended = true, true
	case *ErasureFinished:
		s.Finished = true
	case *KeyIssued:
		if s.Keys == nil {
			s.Keys = make(map[string]Key)
		}
		s.Keys[e.KeyID] = Key{
			ID: e.KeyID, Hash: e.Hash, Prefix: e.Prefix,
			Scope: e.Scope, ProjectID: e.ProjectID, ExpiresAt: e.ExpiresAt,
		}
	case *ClockAdvanced:
		s.Ahead = time.Duration(e.OffsetSeconds) * time.Second
		if s.Advances == nil {
			s.Advances = make(map[string]time.Duration)
		}
		s.Advances[e.AdvanceID] = s.Ahead
	case *KeyRevoked:
		if k, ok := s.Keys[e.KeyID]; ok {
			k.Revoked = true
			s.Keys[e.KeyID] = k
		}
	}
	return s
}

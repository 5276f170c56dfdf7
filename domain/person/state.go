package person

import (
	"slices"

	"humanqa/domain"
)

// State is a person after some events. Evolve copies what it changes, so a
// state may be kept.
type State struct {
	Exists   bool
	Joined   bool
	Disabled bool
	Grants   []Grant // in the order in which they were given
}

// Has says that the person holds the grant.
func (s State) Has(g Grant) bool { return slices.Contains(s.Grants, g) }

// CheckerID is the checker the person tests as; empty: none.
func (s State) CheckerID() string {
	for _, g := range s.Grants {
		if g.Role == Checker {
			return g.CheckerID
		}
	}
	return ""
}

// BelongsTo says that the person has a role in the account.
func (s State) BelongsTo(accountID string) bool {
	return slices.ContainsFunc(s.Grants, func(g Grant) bool { return g.Role.OfAccount() && g.AccountID == accountID })
}

// Evolve folds one event into the state. Events of other aggregates change
// nothing.
func Evolve(s State, e domain.Event) State {
	switch e := e.(type) {
	case *Invited:
		s.Exists = true
		s.Grants = s.with(e.Grant)
	case *Joined:
		s.Joined = true
	case *RoleGranted:
		s.Grants = s.with(e.Grant)
	case *RoleRevoked:
		s.Grants = s.without(func(g Grant) bool { return g == e.Grant })
	case *Disabled:
		s.Disabled = true
	}
	return s
}

// with adds a grant. It replaces a grant of the same account.
func (s State) with(g Grant) []Grant {
	return append(s.without(func(old Grant) bool {
		return old == g || g.Role.OfAccount() && old.Role.OfAccount() && old.AccountID == g.AccountID
	}), g)
}

func (s State) without(gone func(Grant) bool) []Grant {
	return slices.DeleteFunc(slices.Clone(s.Grants), gone)
}

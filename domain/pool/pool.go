// Package pool is a group of checkers to which an account's tests may be kept
// (decisions, "Pools"). Everything here is pure.
package pool

import (
	"slices"
	"strings"
	"unicode"

	"humanqa/domain"
)

// MaxName bounds a pool's name, in characters.
const MaxName = 80

// Created makes a pool. A pool of an account holds that account's own checkers, and no
// other account may use it.
type Created struct {
	Name      string `json:"name"`
	AccountID string `json:"accountId,omitempty"`
}

// CheckerAdded adds a checker to the pool.
type CheckerAdded struct {
	CheckerID string `json:"checkerId"`
}

// CheckerRemoved removes a checker from the pool. The checker may finish their claimed
// jobs.
type CheckerRemoved struct {
	CheckerID string `json:"checkerId"`
}

func (*Created) EventType() string        { return "pool.created" }
func (*CheckerAdded) EventType() string   { return "pool.checker_added" }
func (*CheckerRemoved) EventType() string { return "pool.checker_removed" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return domain.Specs(&Created{}, &CheckerAdded{}, &CheckerRemoved{})
}

// State is a pool after some events. Evolve copies what it changes, so a state
// may be kept.
type State struct {
	Exists    bool
	Name      string
	AccountID string   // empty: any account may ask for it
	Checkers  []string // in the order in which they came
}

// Has reports whether the checker is in the pool.
func (s State) Has(checkerID string) bool { return slices.Contains(s.Checkers, checkerID) }

// Serves reports whether the account may use the pool.
func (s State) Serves(accountID string) bool {
	return s.Exists && (s.AccountID == "" || s.AccountID == accountID)
}

// Evolve folds one event into the state. Events of other aggregates change
// nothing.
func Evolve(s State, e domain.Event) State {
	switch e := e.(type) {
	case *Created:
		s.Exists, s.Name, s.AccountID = true, e.Name, e.AccountID
	case *CheckerAdded:
		s.Checkers = append(slices.Clone(s.Checkers), e.CheckerID)
	case *CheckerRemoved:
		s.Checkers = slices.DeleteFunc(slices.Clone(s.Checkers), func(id string) bool { return id == e.CheckerID })
	}
	return s
}

// DecideCreate makes the pool. The same request again is a repeat.
func DecideCreate(s State, c Created) ([]domain.Event, error) {
	c.Name = strings.TrimSpace(c.Name)
	switch {
	case s.Exists && s.Name == c.Name && s.AccountID == c.AccountID:
		return nil, nil
	case s.Exists:
		return nil, domain.Conflict("the pool exists already")
	case c.Name == "" || len([]rune(c.Name)) > MaxName || strings.ContainsFunc(c.Name, unicode.IsControl):
		return nil, domain.InvalidAt("name", "must have 1 to 80 characters, none of which cannot be seen")
	}
	return []domain.Event{&c}, nil
}

// DecideAdd adds a checker. A second addition is a repeat.
func DecideAdd(s State, checkerID string) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("pool")
	case s.Has(checkerID):
		return nil, nil
	}
	return []domain.Event{&CheckerAdded{CheckerID: checkerID}}, nil
}

// DecideRemove removes a checker. A second removal is a repeat.
func DecideRemove(s State, checkerID string) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("pool")
	case !s.Has(checkerID):
		return nil, nil
	}
	return []domain.Event{&CheckerRemoved{CheckerID: checkerID}}, nil
}

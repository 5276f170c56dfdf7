// Package pool is a circle of checkers that an account's tests may be kept to
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

// Created makes a pool. One of an account holds that account's own checkers, and
// no other may ask for it.
type Created struct {
	Name      string `json:"name"`
	AccountID string `json:"accountId,omitempty"`
}

// CheckerAdded takes a checker in.
type CheckerAdded struct {
	CheckerID string `json:"checkerId"`
}

// CheckerRemoved takes a checker out; what they have claimed they may finish.
type CheckerRemoved struct {
	CheckerID string `json:"checkerId"`
}

func (*Created) EventType() string        { return "pool.created" }
func (*CheckerAdded) EventType() string   { return "pool.checker_added" }
func (*CheckerRemoved) EventType() string { return "pool.checker_removed" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return []domain.EventSpec{
		{New: func() domain.Event { return new(Created) }},
		{New: func() domain.Event { return new(CheckerAdded) }},
		{New: func() domain.Event { return new(CheckerRemoved) }},
	}
}

// State is a pool after some events. Evolve copies what it changes, so a state
// may be kept.
type State struct {
	Exists    bool
	Name      string
	AccountID string   // empty: any account may ask for it
	Checkers  []string // in the order in which they came
}

// Has says that the checker belongs to the pool.
func (s State) Has(checkerID string) bool { return slices.Contains(s.Checkers, checkerID) }

// Serves says that the account may ask for the pool.
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

// DecideCreate makes the pool. The same words again are a repeat.
func DecideCreate(s State, c Created) ([]domain.Event, error) {
	c.Name = strings.TrimSpace(c.Name)
	switch {
	case s.Exists && s.Name == c.Name && s.AccountID == c.AccountID:
		return nil, nil
	case s.Exists:
		return nil, domain.Conflict("the pool exists already")
	case c.Name == "" || len([]rune(c.Name)) > MaxName || strings.ContainsFunc(c.Name, unicode.IsControl):
		return nil, domain.Invalid(domain.Detail{Path: "name", Message: "must have 1 to 80 characters, none of which cannot be seen"})
	}
	return []domain.Event{&c}, nil
}

// DecideAdd takes a checker in. One who is in is a repeat.
func DecideAdd(s State, checkerID string) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("pool")
	case s.Has(checkerID):
		return nil, nil
	}
	return []domain.Event{&CheckerAdded{CheckerID: checkerID}}, nil
}

// DecideRemove takes a checker out. One who is not in is a repeat.
func DecideRemove(s State, checkerID string) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("pool")
	case !s.Has(checkerID):
		return nil, nil
	}
	return []domain.Event{&CheckerRemoved{CheckerID: checkerID}}, nil
}

// Package checker is a human tester: their key, and which job's claim they
// took last. Everything here is pure.
package checker

import (
	"time"

	"humanqa/domain"
)

// Created registers a checker. Only the SHA-256 of the key is kept.
type Created struct {
	Name   string `json:"name"`
	Hash   string `json:"hash"`
	Prefix string `json:"prefix"`
	// Accounts the checker belongs to; their jobs are never shown to them.
	Accounts []string `json:"accounts,omitempty"`
}

// Reservation is one of the checker's places, held for a job. Token is how
// many claims the job had seen when it was reserved: a later one tells that
// the claim this reservation was for has been decided.
type Reservation struct {
	JobID string    `json:"jobId"`
	Token int       `json:"token"`
	At    time.Time `json:"at"`
}

// ClaimTaken reserves one of the checker's places for a job, before the job
// itself is asked. A reservation is void once its claim was lost, released or
// ended, or was never made (we crashed between the two writes): whoever takes
// the next claim looks at the job and drops it. Held is every reservation that
// is left, oldest first, the new one last.
type ClaimTaken struct {
	Held []Reservation `json:"held"`
}

// Bound says which person works as this checker; it is theirs for good. They
// get no job of an account they have a role in.
type Bound struct {
	PersonID string `json:"personId"`
}

// Profiled is what a checker says of themselves: the languages they speak, and
// what they can test on. It takes the place of what they said before.
type Profiled struct {
	Languages []string `json:"languages"`
	Devices   []string `json:"devices"` // in their own words, such as "iPhone 15, iOS 18"
}

func (*Created) EventType() string    { return "checker.created" }
func (*ClaimTaken) EventType() string { return "checker.claim_taken" }
func (*Bound) EventType() string      { return "checker.bound" }
func (*Profiled) EventType() string   { return "checker.profiled" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return []domain.EventSpec{
		{New: func() domain.Event { return new(Created) }},
		{New: func() domain.Event { return new(ClaimTaken) }},
		{New: func() domain.Event { return new(Bound) }},
		{New: func() domain.Event { return new(Profiled) }},
	}
}

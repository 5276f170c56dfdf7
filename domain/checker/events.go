// Package checker is a human tester: their key, and the job of their latest claim.
// Everything here is pure.
package checker

import (
	"time"

	"humanqa/domain"
)

// Created registers a checker. Only the SHA-256 of the key is kept.
type Created struct {
	Name   string `json:"name" sealed:"text"`
	Hash   string `json:"hash"`
	Prefix string `json:"prefix"`
	// Accounts of the checker; their jobs are never shown to the checker.
	Accounts []string `json:"accounts,omitempty"`
}

// Reservation is one of the checker's places, held for a job. Token is the number of
// claims that the job had seen at that time. A later number shows that the claim of
// this reservation has been decided.
type Reservation struct {
	JobID string    `json:"jobId"`
	Token int       `json:"token"`
	At    time.Time `json:"at"`
}

// ClaimTaken reserves one of the checker's places for a job, before the command asks
// the job itself. A reservation is void once its claim was lost, released or ended. It
// is also void if the claim was never made, because of a crash between the two writes.
// The next claim of the checker looks at the job and drops a void reservation. Held
// lists every reservation that is left, oldest first, the new one last.
type ClaimTaken struct {
	Held []Reservation `json:"held"`
}

// Bound names the person behind this checker, for good. The person gets no job of an
// account in which they have a role.
type Bound struct {
	PersonID string `json:"personId"`
}

// Profiled is a checker's own profile: languages and test devices. It replaces the
// earlier profile.
type Profiled struct {
	Languages []string `json:"languages" sealed:"text"`
	Devices   []string `json:"devices" sealed:"text"` // in their own words, such as "iPhone 15, iOS 18"
}

func (*Created) EventType() string    { return "checker.created" }
func (*ClaimTaken) EventType() string { return "checker.claim_taken" }
func (*Bound) EventType() string      { return "checker.bound" }
func (*Profiled) EventType() string   { return "checker.profiled" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return append(domain.Specs(&ClaimTaken{}, &Bound{}, &Erased{}), domain.WithSealedTexts(&Created{}, &Profiled{})...)
}

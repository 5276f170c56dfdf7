// Package checker is a human tester: their key, and which job's claim they
// took last. Everything here is pure.
package checker

import "humanqa/domain"

// Created registers a checker. Only the SHA-256 of the key is kept.
type Created struct {
	Name   string `json:"name"`
	Hash   string `json:"hash"`
	Prefix string `json:"prefix"`
	// Accounts the checker belongs to; their jobs are never shown to them.
	Accounts []string `json:"accounts,omitempty"`
}

// ClaimTaken reserves one of the checker's places for a job, before the job
// itself is asked. A reservation whose job is not claimed by this checker (the
// claim lost a race, ended, or we crashed between the two writes) is void:
// whoever takes the next claim looks at the job and drops it. Held is every
// live reservation after this one, oldest first, the new one last.
type ClaimTaken struct {
	JobID string   `json:"jobId"`
	Held  []string `json:"held"`
}

func (*Created) EventType() string    { return "checker.created" }
func (*ClaimTaken) EventType() string { return "checker.claim_taken" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return []domain.EventSpec{
		{New: func() domain.Event { return new(Created) }},
		{New: func() domain.Event { return new(ClaimTaken) }},
	}
}

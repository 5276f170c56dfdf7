// Package account is the life of a customer's account: created, suspended,
// reinstated, erased, and the API keys issued for it. Everything here is pure; time
// and ids come in with the command.
package account

import (
	"time"

	"humanqa/domain"
)

// Scope says what an API key may do.
type Scope string

// The scopes of an API key.
const (
	ScopeFull Scope = "full"
	ScopeRead Scope = "read"
)

// Created opens an account.
type Created struct {
	Name    string `json:"name"` // sealed in the log, with the account's key
	Sandbox bool   `json:"sandbox,omitempty"`
}

// Suspended stops every key of the account until Reinstated.
type Suspended struct {
	Reason string `json:"reason,omitempty"`
}

// Reinstated ends a suspension.
type Reinstated struct{}

// KeyIssued says that an API key exists. Only its SHA-256 is kept; the token
// itself was shown once.
type KeyIssued struct {
	KeyID     string     `json:"keyId"`
	Hash      string     `json:"hash"`   // lower-case hex SHA-256 of the token
	Prefix    string     `json:"prefix"` // the first characters, to recognise it by
	Scope     Scope      `json:"scope"`
	ProjectID string     `json:"projectId,omitempty"` // bound to one project
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
}

// KeyRevoked ends an API key for good.
type KeyRevoked struct {
	KeyID string `json:"keyId"`
}

// ClockAdvanced moves the time of a sandbox account; OffsetSeconds is how far
// it is ahead in all (decisions, "Sandbox clock"). AdvanceID is one a call: a call
// that is repeated moves it once.
type ClockAdvanced struct {
	AdvanceID     string `json:"advanceId"`
	Seconds       int64  `json:"seconds"`
	OffsetSeconds int64  `json:"offsetSeconds"`
}

// PoolChosen keeps the account's tests to the checkers of a pool; without an id any
// checker may take them again (decisions, "Pools").
type PoolChosen struct {
	PoolID string `json:"poolId,omitempty"`
}

// Erased ends an account for good, at an operator's word (decisions,
// "Erasure"). Nothing is done for it any more; what of it can be erased is from
// here on.
type Erased struct {
	By     string `json:"by"` // the operator's name
	Reason string `json:"reason"`
}

// ErasureFinished says that nothing is left of the account that can be erased.
type ErasureFinished struct{}

func (*Created) EventType() string    { return "account.created" }
func (*Suspended) EventType() string  { return "account.suspended" }
func (*Reinstated) EventType() string { return "account.reinstated" }
func (*KeyIssued) EventType() string  { return "account.key_issued" }
func (*KeyRevoked) EventType() string { return "account.key_revoked" }

func (*ClockAdvanced) EventType() string { return "account.clock_advanced" }
func (*PoolChosen) EventType() string    { return "account.pool_chosen" }

func (*Erased) EventType() string          { return "account.erased" }
func (*ErasureFinished) EventType() string { return "account.erasure_finished" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return []domain.EventSpec{
		{New: func() domain.Event { return new(Created) }},
		{New: func() domain.Event { return new(Suspended) }},
		{New: func() domain.Event { return new(Reinstated) }},
		{New: func() domain.Event { return new(KeyIssued) }},
		{New: func() domain.Event { return new(KeyRevoked) }},
		{New: func() domain.Event { return new(ClockAdvanced) }},
		{New: func() domain.Event { return new(PoolChosen) }},
		{New: func() domain.Event { return new(Erased) }},
		{New: func() domain.Event { return new(ErasureFinished) }},
	}
}

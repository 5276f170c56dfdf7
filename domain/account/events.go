// Package account is the life of a customer's account: created, suspended, reinstated,
// erased, and the API keys issued for it. Everything here is pure: time and ids come in
// with the command.
package account

import (
	"time"

	"humanqa/domain"
	"humanqa/domain/retention"
)

// Scope is the set of rights of an API key.
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

// MaxKeyName bounds the name of an API key, in characters.
const MaxKeyName = 80

// KeyIssued issues an API key. Only its SHA-256 is kept; the token itself was shown
// once.
type KeyIssued struct {
	Name      string     `json:"name,omitempty"` // sealed in the log, with the account's key
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

// ClockAdvanced moves the time of a sandbox account. OffsetSeconds is its whole
// distance from real time (decisions, "Sandbox clock"). Each call has its own
// AdvanceID, so a repeated call moves the clock once.
type ClockAdvanced struct {
	AdvanceID     string `json:"advanceId"`
	Seconds       int64  `json:"seconds"`
	OffsetSeconds int64  `json:"offsetSeconds"`
}

// PoolChosen keeps the account's tests to the checkers of a pool. Without an id any
// checker may take them (decisions, "Pools").
type PoolChosen struct {
	PoolID string `json:"poolId,omitempty"`
}

// RetentionChanged replaces the settings of how long evidence of the account is kept
// (decisions, "What is kept").
type RetentionChanged struct {
	retention.Keep
	At time.Time `json:"at"`
}

// HoldPlaced stops retention in the whole account.
type HoldPlaced struct{ retention.HoldPlaced }

// HoldReleased ends the account's hold.
type HoldReleased struct{ retention.HoldReleased }

// SubmissionsRefused sums tests of the account that one process has refused. Others may
// have refused some at the same time (decisions, "Refusals").
type SubmissionsRefused struct {
	From    time.Time      `json:"from"` // of the first of them, by the account's clock
	To      time.Time      `json:"to"`
	Counts  []RefusedCount `json:"counts"`            // of equal reasons, the largest first
	Samples []RefusedTest  `json:"samples,omitempty"` // a few different ones
}

// RefusedCount is a number of tests that were refused for one reason.
type RefusedCount struct {
	Reason    domain.Code `json:"reason"` // INSUFFICIENT_CREDITS, RATE_LIMITED or ACCOUNT_SUSPENDED
	Source    string      `json:"source"` // as of a job: api, bulk, hosted, session, retest or deploy
	ProjectID string      `json:"projectId,omitempty"`
	KeyID     string      `json:"keyId,omitempty"` // absent: a deploy hook
	Tests     int         `json:"tests"`
}

// MaxSamples bounds the samples of an event.
const MaxSamples = 10

// RefusedTest is a test for which there were no credits.
type RefusedTest struct {
	Source      string `json:"source"`
	ProjectID   string `json:"projectId,omitempty"`
	URL         string `json:"url" sealed:"text"` // without its fragment
	Title       string `json:"title,omitempty" sealed:"text"`
	Commit      string `json:"commitSha,omitempty"`
	Branch      string `json:"branch,omitempty" sealed:"text"`
	Environment string `json:"environment,omitempty" sealed:"text"`
	Urgent      bool   `json:"urgent,omitempty"`
	Whole       bool   `json:"whole,omitempty"` // a deploy that asked for nothing that is not here
}

// Erased ends an account for good, by an operator's order (decisions, "Erasure"). The
// service does nothing for it any more, and begins to erase its data.
type Erased struct {
	By     string `json:"by"` // the operator's name
	Reason string `json:"reason"`
}

// ErasureFinished records that no erasable data of the account are left.
type ErasureFinished struct{}

func (*Created) EventType() string    { return "account.created" }
func (*Suspended) EventType() string  { return "account.suspended" }
func (*Reinstated) EventType() string { return "account.reinstated" }
func (*KeyIssued) EventType() string  { return "account.key_issued" }
func (*KeyRevoked) EventType() string { return "account.key_revoked" }

func (*ClockAdvanced) EventType() string { return "account.clock_advanced" }
func (*PoolChosen) EventType() string    { return "account.pool_chosen" }

func (*RetentionChanged) EventType() string { return "account.retention_changed" }
func (*HoldPlaced) EventType() string       { return "account.hold_placed" }
func (*HoldReleased) EventType() string     { return "account.hold_released" }

func (*SubmissionsRefused) EventType() string { return "account.submissions_refused" }

func (*Erased) EventType() string          { return "account.erased" }
func (*ErasureFinished) EventType() string { return "account.erasure_finished" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	specs := domain.Specs(
		&SubmissionsRefused{}, &Created{}, &Suspended{}, &Reinstated{}, &KeyIssued{}, &KeyRevoked{}, &ClockAdvanced{}, &PoolChosen{},
		&RetentionChanged{}, &HoldPlaced{}, &HoldReleased{}, &Erased{}, &ErasureFinished{},
	)
	specs[0].Sealed = domain.SealedFields(&SubmissionsRefused{}) // since its first version
	return specs
}

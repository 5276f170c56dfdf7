// Package project groups jobs: default settings, the webhook and its signing
// secret, the deploy hook. Everything here is pure; time and ids come in with
// the command, secrets come in sealed.
package project

import (
	"time"

	"humanqa/domain"
)

// Created opens a project of an account.
type Created struct {
	AccountID         string  `json:"accountId"`
	Name              string  `json:"name"`
	Description       *string `json:"description,omitempty"`
	DefaultURL        *string `json:"defaultUrl,omitempty"`
	DefaultJobType    *string `json:"defaultJobType,omitempty"` // as submitted
	DefaultSLAMinutes *int    `json:"defaultSlaMinutes,omitempty"`
	// HookHash is the lower-case hex SHA-256 of the deploy hook's token, which
	// was shown once.
	HookHash string    `json:"hookHash"`
	At       time.Time `json:"at"`
}

// SettingsChanged replaces the plain settings; each field holds the value
// after the change, nil where it is cleared.
type SettingsChanged struct {
	Name              string    `json:"name"`
	Description       *string   `json:"description,omitempty"`
	DefaultURL        *string   `json:"defaultUrl,omitempty"`
	DefaultJobType    *string   `json:"defaultJobType,omitempty"`
	DefaultSLAMinutes *int      `json:"defaultSlaMinutes,omitempty"`
	At                time.Time `json:"at"`
}

// WebhookSet points the project's webhook at a URL and (re-)enables it.
// Events nil means every kind; empty means none.
type WebhookSet struct {
	URL    string    `json:"url"`
	Events *[]string `json:"events"`
	At     time.Time `json:"at"`
}

// WebhookCleared removes the URL and the list; the secret is kept.
type WebhookCleared struct {
	At time.Time `json:"at"`
}

// SecretSet gives the project its signing secret, or replaces it. Sealed is
// the ciphertext (vault, bound to the project's stream); Fingerprint is the
// vault's keyed hash, by which the same secret is known again without being
// opened. Rotated is false for the first secret of a project.
type SecretSet struct {
	SecretID    string    `json:"secretId"`
	Sealed      string    `json:"sealed"`
	Fingerprint string    `json:"fingerprint"`
	At          time.Time `json:"at"`
	UserID      *string   `json:"userId"`
	Rotated     bool      `json:"rotated"`
}

// WebhookDisabled stops deliveries after the last retry of one failed
// (specification, "Delivery rules" 3).
type WebhookDisabled struct {
	DeliveryID string    `json:"deliveryId,omitempty"`
	Reason     string    `json:"reason"`
	At         time.Time `json:"at"`
}

// WebhookEnabled ends that.
type WebhookEnabled struct {
	At time.Time `json:"at"`
}

func (*Created) EventType() string         { return "project.created" }
func (*SettingsChanged) EventType() string { return "project.settings_changed" }
func (*WebhookSet) EventType() string      { return "project.webhook_set" }
func (*WebhookCleared) EventType() string  { return "project.webhook_cleared" }
func (*SecretSet) EventType() string       { return "project.webhook_secret_set" }
func (*WebhookDisabled) EventType() string { return "project.webhook_disabled" }
func (*WebhookEnabled) EventType() string  { return "project.webhook_enabled" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return []domain.EventSpec{
		{New: func() domain.Event { return new(Created) }},
		{New: func() domain.Event { return new(SettingsChanged) }},
		{New: func() domain.Event { return new(WebhookSet) }},
		{New: func() domain.Event { return new(WebhookCleared) }},
		{New: func() domain.Event { return new(SecretSet) }},
		{New: func() domain.Event { return new(WebhookDisabled) }},
		{New: func() domain.Event { return new(WebhookEnabled) }},
	}
}

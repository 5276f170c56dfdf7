package project

import (
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/retention"
)

const (
	// KeptRotations is how many rotations of the signing secret a project shows.
	KeptRotations = 5
	// KeptPrepared bounds the queue of prepared fixes, attached ones included. It is the
	// limit of one call of prepare-next, too. When the queue is full, the oldest fixes
	// leave.
	KeptPrepared = 100
	// KeptDeploys is how many deploys are kept to recognise a repeat.
	KeptDeploys = 50
)

// State is a project after some events.
type State struct {
	Exists            bool
	AccountID         string
	Name              string
	Description       *string
	DefaultURL        *string
	DefaultJobType    *string
	DefaultSLAMinutes *int
	HookHash          string
	// HookSignature is the signature that a call of the deploy hook needs beside its
	// token; HookSignatureID is the change that set it.
	HookSignature   HookSignature
	HookSignatureID string
	HookID          string // of the newest replacement of the first token; empty: it was not replaced
	CreatedAt       time.Time
	UpdatedAt       time.Time
	ArchivedAt      *time.Time // nil: it is in use

	// WebhookURL is empty when no webhook is configured. Events nil means
	// every kind, empty means none.
	WebhookURL string
	Events     *[]string
	// Disabled stops deliveries; DisabledBy is the delivery that failed for good, empty
	// if a person disabled the webhook.
	Disabled       bool
	DisabledBy     string
	DisabledReason string

	// Secret outlives the webhook's URL. Its ID is empty while there is none.
	Secret Secret
	// Rotations are the KeptRotations most recent ones, the newest last. The
	// first secret is no rotation.
	Rotations       []Rotation
	SecretRotatedAt *time.Time
	// PreviousUntil is the end of the time in which the previous secret signs too, by the
	// wall's clock; nil: it does not sign.
	PreviousUntil *time.Time

	// Headers are the client's own headers for deliveries to HeadersOrigin; see
	// SentHeaders.
	Headers       []OwnHeader
	HeadersOrigin string

	Chat   Chat
	ChatID string // the change that set it

	// LoopAlertsSnoozedUntil holds loop_session.ended back; nil: it does not.
	LoopAlertsSnoozedUntil *time.Time
	// QuestionMinutes is how long a checker's question waits; nil: as long as usual, 0: it
	// may not be asked.
	QuestionMinutes *int
	// Keep is how long the project's evidence is kept. Hold suspends that; nil: there is
	// no hold.
	Keep retention.Keep
	Hold *retention.Hold
	// Queue holds the prepared fixes, the newest last, one a key: those that
	// wait and those that a test has taken along (see Fix).
	Queue []Fix
	// Deploys are the KeptDeploys most recent ones, the newest last.
	Deploys []DeployReceived
}

// Secret is the sealed signing secret.
type Secret struct {
	ID          string
	Sealed      string
	Fingerprint string
}

// Rotation is one replacement of the secret: by the person UserID, or else by
// the API key KeyID.
type Rotation struct {
	At       time.Time `json:"at"`
	UserID   *string   `json:"userId"`
	KeyID    string    `json:"keyId,omitempty"`
	SecretID string    `json:"secretId,omitempty"`
}

// Evolve folds one event into the state. It leaves the old state as it is, so that a
// decision may fold its own events. Events of other aggregates change nothing.
func Evolve(s State, e domain.Event) State {
	switch e := e.(type) {
	case *Created:
		s = State{
			Exists: true, AccountID: e.AccountID, HookHash: e.HookHash,
			Name: e.Name, Description: e.Description, DefaultURL: e.DefaultURL,
			DefaultJobType: e.DefaultJobType, DefaultSLAMinutes: e.DefaultSLAMinutes,
			CreatedAt: e.At, UpdatedAt: e.At,
		}
	case *SettingsChanged:
		s.Name, s.Description, s.DefaultURL = e.Name, e.Description, e.DefaultURL
		s.DefaultJobType, s.DefaultSLAMinutes = e.DefaultJobType, e.DefaultSLAMinutes
		s.LoopAlertsSnoozedUntil, s.QuestionMinutes, s.UpdatedAt = e.LoopAlertsSnoozedUntil, e.QuestionMinutes, e.At
		s.Keep = e.Keep
	case *WebhookSet:
		s.WebhookURL, s.Events, s.UpdatedAt = e.URL, e.Events, e.At
		s.Disabled, s.DisabledBy, s.DisabledReason = false, "", ""
	case *WebhookCleared:
		s.WebhookURL, s.Events, s.UpdatedAt = "", nil, e.At
		s.Disabled, s.DisabledBy, s.DisabledReason = false, "", ""
	case *WebhookDisabled:
		s.Disabled, s.DisabledBy, s.DisabledReason, s.UpdatedAt = true, e.DeliveryID, e.Reason, e.At
	case *WebhookEnabled:
		s.Disabled, s.DisabledBy, s.DisabledReason, s.UpdatedAt = false, "", "", e.At
	case *SecretSet:
		s = s.withSecret(e)
	case *WebhookHeadersSet:
		s.Headers, s.HeadersOrigin, s.UpdatedAt = e.Headers, e.Origin, e.At
	case *RotationFinished:
		s.UpdatedAt, s.PreviousUntil = e.At, nil
	case *HookRotated:
		s.HookID, s.HookHash, s.UpdatedAt = e.HookID, e.HookHash, e.At
	case *HookSignatureSet:
		s.HookSignature, s.HookSignatureID = e.HookSignature, e.ChangeID
	case *ChatSet:
		s.Chat, s.ChatID, s.UpdatedAt = e.Chat, e.ChangeID, e.At
	case *Archived:
		s.ArchivedAt, s.UpdatedAt = &e.At, e.At
	case *Restored:
		s.ArchivedAt, s.UpdatedAt = nil, e.At
	case *HoldPlaced:
		s.Hold = e.Hold()
	case *HoldReleased:
		s.Hold = nil
	case *RegressionsPrepared:
		s.Queue = queued(s.Queue, e)
	case *RegressionsAttached:
		s.Queue = attached(s.Queue, e)
	case *DeployReceived:
		s.Deploys = newest(KeptDeploys, s.Deploys, *e)
	}
	return s
}

func (s State) withSecret(e *SecretSet) State {
	s.Secret = Secret{ID: e.SecretID, Sealed: e.Sealed, Fingerprint: e.Fingerprint}
	s.UpdatedAt, s.PreviousUntil = e.At, e.PreviousUntil
	if e.Rotated {
		s.Rotations = newest(KeptRotations, s.Rotations, Rotation{At: e.At, UserID: e.UserID, KeyID: e.KeyID, SecretID: e.SecretID})
		s.SecretRotatedAt = &e.At
	}
	return s
}

// newest gives, in a slice of its own, the last of old and more, at most limit
// of them.
func newest[T any](limit int, old []T, more ...T) []T {
	all := slices.Concat(old, more)
	return all[max(0, len(all)-limit):]
}

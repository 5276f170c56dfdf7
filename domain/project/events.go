// Package project groups jobs: default settings, the webhook and its signing secret,
// the deploy hook. Everything here is pure: time and ids come in with the command.
// Secrets come in sealed.
package project

import (
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/retention"
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
	HookHash string `json:"hookHash"`
	// Host is set on a project that a hosted test opened.
	Host string    `json:"host,omitempty"`
	At   time.Time `json:"at"`
}

// SettingsChanged replaces the plain settings. Each field holds the value after the
// change, nil for a cleared one.
type SettingsChanged struct {
	Name              string  `json:"name"`
	Description       *string `json:"description,omitempty"`
	DefaultURL        *string `json:"defaultUrl,omitempty"`
	DefaultJobType    *string `json:"defaultJobType,omitempty"`
	DefaultSLAMinutes *int    `json:"defaultSlaMinutes,omitempty"`
	// LoopAlertsSnoozedUntil suppresses loop_session.ended until then.
	LoopAlertsSnoozedUntil *time.Time `json:"loopAlertsSnoozedUntil,omitempty"`
	// QuestionMinutes is how long a checker's question waits; 0: no questions.
	QuestionMinutes *int      `json:"questionMinutes,omitempty"`
	retention.Keep            // of the project's evidence
	At              time.Time `json:"at"`
}

// HoldPlaced stops retention in the project.
type HoldPlaced struct{ retention.HoldPlaced }

// HoldReleased ends the project's hold.
type HoldReleased struct{ retention.HoldReleased }

// Prepared is a fix to verify with the next test. BugID is the failed item that it
// fixes, empty for a fix in plain words. Key is the item's key.
type Prepared struct {
	ID              string       `json:"id"`
	BugID           string       `json:"bugId,omitempty"`
	Key             string       `json:"key"`
	Description     string       `json:"description"`
	ExpectedOutcome string       `json:"expectedOutcome,omitempty"`
	Severity        job.Severity `json:"severity"`
}

// RegressionsPrepared queues fixes (specification, "POST /v1/hosted/prepare-next"). It
// replaces a queued fix with the same key.
type RegressionsPrepared struct {
	BatchID string     `json:"batchId"` // one a call
	Items   []Prepared `json:"items"`
	At      time.Time  `json:"at"`
}

// RegressionsAttached takes fixes out of the queue for a test. JobIDs is one job, or
// the slots of a session. The fixes count as queued again once every one of these jobs
// has ended without a report. Forgotten are verified fixes of earlier tests, which
// leave for good.
type RegressionsAttached struct {
	JobIDs    []string  `json:"jobIds"`
	Items     []string  `json:"items"` // ids of Prepared
	Forgotten []string  `json:"forgotten,omitempty"`
	At        time.Time `json:"at"`
}

// DeployReceived remembers the job of a deploy, by each key of the deploy ("key:…",
// "commit:…").
type DeployReceived struct {
	Keys  []string `json:"keys"`
	JobID string   `json:"jobId"`
	// CommitSHA is the commit of a deploy with a key of another kind.
	CommitSHA string    `json:"commitSha,omitempty"`
	At        time.Time `json:"at"`
}

// DeploymentKey begins a key that is a platform's id of a deployment. Such a deployment
// is tested once, also when its job has ended.
const DeploymentKey = "deployment:"

// Commit is the one that was deployed; empty where the deploy did not say.
func (e *DeployReceived) Commit() string {
	if e.CommitSHA != "" {
		return e.CommitSHA
	}
	for _, key := range e.Keys {
		if commit, found := strings.CutPrefix(key, "commit:"); found {
			return commit
		}
	}
	return ""
}

// HookRotated replaces the deploy hook's token. The old token opens nothing any more.
type HookRotated struct {
	// HookID and the project give the new token.
	HookID   string    `json:"hookId"`
	HookHash string    `json:"hookHash"`
	At       time.Time `json:"at"`
	UserID   *string   `json:"userId"` // the person; nil without a signed-in person
}

// WebhookSet points the project's webhook at a URL and enables it. Events nil means
// every kind; empty means none.
type WebhookSet struct {
	URL    string    `json:"url"`
	Events *[]string `json:"events"`
	At     time.Time `json:"at"`
}

// WebhookCleared removes the URL and the list; the secret is kept.
type WebhookCleared struct {
	At time.Time `json:"at"`
}

// SecretSet gives the project its signing secret, or replaces it. Sealed is the
// ciphertext (vault, bound to the project's stream). Fingerprint is the vault's keyed
// hash, which recognises the same secret without opening it. Rotated is false for the
// first secret of a project.
type SecretSet struct {
	SecretID    string    `json:"secretId"`
	Sealed      string    `json:"sealed"`
	Fingerprint string    `json:"fingerprint"`
	At          time.Time `json:"at"`
	// UserID is the person that rotated, KeyID the API key. Both are empty if
	// neither did.
	UserID  *string `json:"userId"`
	KeyID   string  `json:"keyId,omitempty"`
	Rotated bool    `json:"rotated"`
	// PreviousUntil ends the overlap, in which the previous secret also signs. It is
	// wall-clock time, like the dispatcher's. At is the account's time, which a
	// sandbox moves. Nil: the old secret ended at once.
	PreviousUntil *time.Time `json:"previousValidUntil,omitempty"`
}

// ByReceiver is the RotationFinished.By of a rotation that its receiver ended. The
// receiver accepted the new secret after it had refused the previous one.
const ByReceiver = "receiver"

// RotationFinished ends the overlap early, because the receiver knows the new secret. A
// person or an API key ordered it, or By is ByReceiver.
type RotationFinished struct {
	At     time.Time `json:"at"`
	UserID *string   `json:"userId"`
	KeyID  string    `json:"keyId,omitempty"`
	By     string    `json:"by,omitempty"`
}

// WebhookHeadersSet replaces the client's own headers of deliveries. They are sent only while
// the webhook's URL has that Origin.
type WebhookHeadersSet struct {
	Headers []OwnHeader `json:"headers"` // empty: none any more
	Origin  string      `json:"origin"`
	At      time.Time   `json:"at"`
	// UserID is the person that set them, KeyID the API key.
	UserID *string `json:"userId"`
	KeyID  string  `json:"keyId,omitempty"`
}

// WebhookDisabled stops deliveries after the last retry of one failed (specification,
// "Delivery rules" 3).
type WebhookDisabled struct {
	DeliveryID string    `json:"deliveryId,omitempty"`
	Reason     string    `json:"reason"`
	At         time.Time `json:"at"`
}

// WebhookEnabled resumes deliveries.
type WebhookEnabled struct {
	At time.Time `json:"at"`
}

func (*Created) EventType() string           { return "project.created" }
func (*SettingsChanged) EventType() string   { return "project.settings_changed" }
func (*WebhookSet) EventType() string        { return "project.webhook_set" }
func (*WebhookCleared) EventType() string    { return "project.webhook_cleared" }
func (*SecretSet) EventType() string         { return "project.webhook_secret_set" }
func (*RotationFinished) EventType() string  { return "project.webhook_rotation_finished" }
func (*WebhookHeadersSet) EventType() string { return "project.webhook_headers_set" }
func (*WebhookDisabled) EventType() string   { return "project.webhook_disabled" }
func (*WebhookEnabled) EventType() string    { return "project.webhook_enabled" }

func (*RegressionsPrepared) EventType() string { return "project.regressions_prepared" }
func (*RegressionsAttached) EventType() string { return "project.regressions_attached" }
func (*DeployReceived) EventType() string      { return "project.deploy_received" }
func (*HookRotated) EventType() string         { return "project.hook_rotated" }
func (*HoldPlaced) EventType() string          { return "project.hold_placed" }
func (*HoldReleased) EventType() string        { return "project.hold_released" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return domain.Specs(
		&Created{}, &SettingsChanged{}, &WebhookSet{}, &WebhookCleared{}, &SecretSet{}, &RotationFinished{},
		&WebhookHeadersSet{}, &WebhookDisabled{}, &WebhookEnabled{}, &RegressionsPrepared{}, &RegressionsAttached{},
		&DeployReceived{}, &HookRotated{}, &HookSignatureSet{}, &HoldPlaced{}, &HoldReleased{}, &Archived{}, &Restored{}, &ChatSet{},
	)
}

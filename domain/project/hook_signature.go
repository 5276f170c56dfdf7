package project

import (
	"time"

	"humanqa/domain"
)

// The schemes by which hosting platforms sign the calls of a deploy hook.
const (
	SignedByGitHub  = "github"   // HMAC-SHA256 in X-Hub-Signature-256
	SignedByVercel  = "vercel"   // HMAC-SHA1 in X-Vercel-Signature
	SignedByNetlify = "netlify"  // HS256 in X-Webhook-Signature, with the body's hash
	SignedByGitLab  = "gitlab"   // the secret itself in X-Gitlab-Token
	StandardSigned  = "standard" // Standard Webhooks, as of Render
)

// HookSchemes lists the schemes.
func HookSchemes() []string {
	return []string{SignedByGitHub, SignedByVercel, SignedByNetlify, SignedByGitLab, StandardSigned}
}

// HookSignature is a signature that every call of the deploy hook needs, beside the token
// in its URL. With an empty Scheme no signature is needed.
type HookSignature struct {
	Scheme string `json:"scheme,omitempty"`
	// Sealed is the platform's secret (vault, bound to this stream). It is never shown.
	Sealed string `json:"sealed,omitempty"`
}

// HookSignatureSet sets the signature of the deploy hook, or takes it away.
type HookSignatureSet struct {
	HookSignature
	// ChangeID tells a repeat from another change.
	ChangeID string    `json:"changeId"`
	At       time.Time `json:"at"`
	UserID   *string   `json:"userId"` // the person; nil without a signed-in person
}

func (*HookSignatureSet) EventType() string { return "project.hook_signature_set" }

// DecideHookSignature sets the signature; a repeat changes nothing.
func DecideHookSignature(s State, set HookSignatureSet) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("project")
	case s.HookSignatureID == set.ChangeID, set.Scheme == "" && s.HookSignature.Scheme == "":
		return nil, nil
	}
	return []domain.Event{&set}, nil
}

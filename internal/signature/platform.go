package signature

import (
	"crypto/hmac"
	"crypto/sha1" // Vercel signs by it, and HMAC needs no collision resistance
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// The headers by which hosting platforms sign.
const (
	GitHubHeader   = "X-Hub-Signature-256"
	VercelHeader   = "X-Vercel-Signature"
	NetlifyHeader  = "X-Webhook-Signature"
	GitLabHeader   = "X-Gitlab-Token"
	StandardHeader = webhookSignatureHeader
)

// VerifyGitHub checks "sha256=" and the hex HMAC-SHA256 of the raw body. It returns nil or
// ErrMismatch, as the others do, and compares in constant time.
func VerifyGitHub(secret []byte, h http.Header, body []byte) error {
	return matching("sha256="+Of(secret, body), h.Get(GitHubHeader))
}

// VerifyVercel checks the hex HMAC-SHA1 of the raw body.
func VerifyVercel(secret []byte, h http.Header, body []byte) error {
	mac := hmac.New(sha1.New, secret)
	_, _ = mac.Write(body) // a hash never fails
	return matching(hex.EncodeToString(mac.Sum(nil)), h.Get(VercelHeader))
}

// VerifyGitLab checks the secret itself: GitLab signs nothing.
func VerifyGitLab(secret []byte, h http.Header) error {
	return matching(string(secret), h.Get(GitLabHeader))
}

// VerifyNetlify checks a JSON Web Signature by HS256, issued by netlify, whose claim sha256
// is the hex hash of the raw body.
func VerifyNetlify(secret []byte, h http.Header, body []byte) error {
	parts := strings.Split(h.Get(NetlifyHeader), ".")
	if len(parts) != 3 {
		return ErrMismatch
	}
	head, claims, given := parts[0], parts[1], parts[2]
	want := base64.RawURLEncoding.EncodeToString(hmacSHA256(secret, []byte(head+"."+claims)))
	if err := matching(want, given); err != nil {
		return err
	}
	var method struct {
		Alg string `json:"alg"`
	}
	var says struct {
		Iss    string `json:"iss"`
		SHA256 string `json:"sha256"`
	}
	if !part(head, &method) || !part(claims, &says) || method.Alg != "HS256" || says.Iss != "netlify" {
		return ErrMismatch
	}
	sum := sha256.Sum256(body)
	return matching(hex.EncodeToString(sum[:]), says.SHA256)
}

// VerifyStandard checks the headers of Standard Webhooks, which are no older than Tolerance.
func VerifyStandard(secret []byte, h http.Header, body []byte, now time.Time) error {
	if h.Get(webhookSignatureHeader) == "" || h.Get(webhookIDHeader) == "" {
		return ErrMismatch
	}
	return Verify(secret, h, body, now)
}

// part reads one part of a JSON Web Signature.
func part(encoded string, to any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	return err == nil && json.Unmarshal(raw, to) == nil
}

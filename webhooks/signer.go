package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a delivery (specification, "Delivery headers"; decisions,
// "Delivery id").
const (
	SignatureHeader         = "X-Service-Signature"
	PreviousSignatureHeader = "X-Service-Signature-Previous"
	EventHeader             = "X-Service-Event"
	DeliveryHeader          = "X-Service-Delivery"

	// Standard Webhooks: unlike SignatureHeader they cover the time, so a
	// delivery that somebody recorded cannot be played for ever.
	webhookIDHeader        = "Webhook-Id"
	webhookTimestampHeader = "Webhook-Timestamp"
	webhookSignatureHeader = "Webhook-Signature"

	userAgent = "Service-Webhook/1.0"
)

// Tolerance is how far the clocks of sender and receiver may be apart.
const Tolerance = 5 * time.Minute

// ErrSignature says that a request was not signed with the secret, or not over
// these bytes, or too long ago.
var ErrSignature = errors.New("the signature does not match")

// Signature is the value of X-Service-Signature: lower-case hex HMAC-SHA256 of
// the raw body.
func Signature(secret, body []byte) string {
	return hex.EncodeToString(sum(secret, body))
}

// standardSignature is one entry of webhook-signature.
func standardSignature(secret []byte, id, timestamp string, body []byte) string {
	return "v1," + base64.StdEncoding.EncodeToString(sum(standardKey(secret), []byte(id), []byte("."), []byte(timestamp), []byte("."), body))
}

// standardKey is what Standard Webhooks libraries make of a secret: the bytes
// behind "whsec_" in base64; any other secret stands for itself.
func standardKey(secret []byte) []byte {
	text, ok := strings.CutPrefix(string(secret), "whsec_")
	if !ok {
		return secret
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	key, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return secret
	}
	return key
}

func sum(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, p := range parts {
		_, _ = mac.Write(p) // a hash never fails
	}
	return mac.Sum(nil)
}

// sign sets the signature headers. previous is nil outside a rotation's
// overlap.
func sign(h http.Header, id string, at time.Time, body, secret, previous []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	standard := standardSignature(secret, id, timestamp, body)
	h.Set(SignatureHeader, Signature(secret, body))
	if previous != nil {
		h.Set(PreviousSignatureHeader, Signature(previous, body))
		standard += " " + standardSignature(previous, id, timestamp, body)
	}
	h.Set(webhookIDHeader, id)
	h.Set(webhookTimestampHeader, timestamp)
	h.Set(webhookSignatureHeader, standard)
}

// Verify is what a receiver does: it checks the raw body against the
// signatures of the request, in constant time. During a rotation's overlap
// either secret passes. Where the Standard Webhooks headers are there they
// must hold too, and be no older than Tolerance. It returns nil or
// ErrSignature.
func Verify(secret []byte, h http.Header, body []byte, now time.Time) error {
	want := Signature(secret, body)
	current := equal(want, h.Get(SignatureHeader))
	previous := equal(want, h.Get(PreviousSignatureHeader))
	if !current && !previous {
		return ErrSignature
	}
	timestamp := h.Get(webhookTimestampHeader)
	if timestamp == "" && h.Get(webhookSignatureHeader) == "" {
		return nil
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > Tolerance {
		return ErrSignature
	}
	want = standardSignature(secret, h.Get(webhookIDHeader), timestamp, body)
	for _, entry := range strings.Fields(h.Get(webhookSignatureHeader)) {
		if equal(want, entry) {
			return nil
		}
	}
	return ErrSignature
}

func equal(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

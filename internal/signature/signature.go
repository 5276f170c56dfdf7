// Package signature signs the deliveries of webhooks, and verifies them.
package signature

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
	SignatureHeader = "X-Service-Signature"
	EventHeader     = "X-Service-Event"
	DeliveryHeader  = "X-Service-Delivery"
	// LogHeader names the log and its generation (decisions, "Cursors of events"). No
	// signature covers it.
	LogHeader = "X-Service-Log"
	// RequestHeader is the id of the request that led to the event.
	RequestHeader = "X-Request-Id"

	// Standard Webhooks: unlike SignatureHeader they cover the time, so a
	// recorded delivery cannot be replayed for ever.
	webhookIDHeader        = "webhook-id"
	webhookTimestampHeader = "webhook-timestamp"
	webhookSignatureHeader = "webhook-signature"

	userAgent = "Service-Webhook/1.0"
)

// Tolerance is how far the clocks of sender and receiver may be apart.
const Tolerance = 5 * time.Minute

// ErrMismatch says that a request was not signed with the secret, or not over
// these bytes, or too long ago.
var ErrMismatch = errors.New("the signature does not match")

// Of is the value of X-Service-Signature: lower-case hex HMAC-SHA256 of
// the raw body.
func Of(secret, body []byte) string {
	return hex.EncodeToString(hmacSHA256(secret, body))
}

// Standard is one entry of webhook-signature.
func Standard(secret []byte, id string, at time.Time, body []byte) string {
	return standard(secret, id, unixText(at), body)
}

func standard(secret []byte, id, timestamp string, body []byte) string {
	return "v1," + base64.StdEncoding.EncodeToString(hmacSHA256(standardKey(secret), []byte(id), []byte("."), []byte(timestamp),
		[]byte("."), body))
}

// standardKey is the key that Standard Webhooks libraries make of a secret: the bytes
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

// ForLibraries says whether libraries of Standard Webhooks read the secret: behind "whsec_"
// they expect 24 to 64 bytes in base64.
func ForLibraries(secret string) bool {
	text, is := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(text)
	return !is || err == nil && len(key) >= 24 && len(key) <= 64
}

func hmacSHA256(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, p := range parts {
		_, _ = mac.Write(p) // a hash never fails
	}
	return mac.Sum(nil)
}

// Pair are the values of the two signature headers; empty where the attempt was
// not signed.
type Pair struct{ Service, Standard string }

func unixText(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// Header is one header of an attempt.
type Header struct{ Name, Value string }

// Headers are the headers of an attempt. They leave out those of HTTP itself, of tracing
// and of the client, and LogHeader, which no attempt keeps. An attempt that was not
// signed, or lost, has no signatures; requestID may be empty.
func Headers(event, id, requestID string, at time.Time, signed Pair) []Header {
	list := []Header{
		{"Content-Type", "application/json"},
		{"User-Agent", userAgent},
		{EventHeader, event},
		{DeliveryHeader, id},
		{webhookIDHeader, id},
	}
	if requestID != "" {
		list = append(list, Header{RequestHeader, requestID})
	}
	if signed.Service == "" {
		return list
	}
	return append(list,
		Header{SignatureHeader, signed.Service},
		Header{webhookTimestampHeader, unixText(at)},
		Header{webhookSignatureHeader, signed.Standard})
}

// Verify is the check of a receiver: it compares the raw body with the signatures of the
// request, in constant time. Where the Standard Webhooks headers are there they decide,
// and must be no older than Tolerance: they cover the time, and while a rotation overlaps
// either secret passes. Elsewhere X-Service-Signature decides. It returns nil or
// ErrMismatch.
func Verify(secret []byte, h http.Header, body []byte, now time.Time) error {
	timestamp := h.Get(webhookTimestampHeader)
	if timestamp == "" && h.Get(webhookSignatureHeader) == "" {
		return matching(Of(secret, body), h.Get(SignatureHeader))
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > Tolerance {
		return ErrMismatch
	}
	want := standard(secret, h.Get(webhookIDHeader), timestamp, body)
	for entry := range strings.FieldsSeq(h.Get(webhookSignatureHeader)) {
		if matching(want, entry) == nil {
			return nil
		}
	}
	return ErrMismatch
}

func matching(want, given string) error {
	if !hmac.Equal([]byte(want), []byte(given)) {
		return ErrMismatch
	}
	return nil
}

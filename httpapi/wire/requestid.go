package wire

import (
	"crypto/rand"
	"encoding/base32"
	"net/http"
	"regexp"
)

const RequestIDHeader = "X-Request-Id"

var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,80}$`)

var requestIDEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// RequestID honours the client's id when it is well formed and otherwise, never
// with an error, issues one: 16 characters, 80 random bits.
func RequestID(h http.Header) string {
	if id := h.Get(RequestIDHeader); ValidRequestID(id) {
		return id
	}
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return requestIDEncoding.EncodeToString(b[:])
}

// ValidRequestID says whether the id of a client is honoured (specification, "Limits").
func ValidRequestID(id string) bool { return requestIDForm.MatchString(id) }

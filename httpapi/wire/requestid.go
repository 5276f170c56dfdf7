package wire

import (
	"crypto/rand"
	"encoding/base32"
	"net/http"
)

const (
	RequestIDHeader = "X-Request-Id"
	// maxRequestID is the longest id of a client that is honoured
	// (specification, "Limits").
	maxRequestID = 80
)

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

func ValidRequestID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for i := range len(id) {
		c := id[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

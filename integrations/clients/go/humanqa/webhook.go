package humanqa

import (
	"net/http"
	"time"

	"humanqa/internal/signature"
)

// ErrSignature says that a delivery was not signed with the secret, or not over these
// bytes, or too long ago.
var ErrSignature = signature.ErrMismatch

// Verify checks that the service sent a webhook, by the raw body and the headers as they
// came. While the secret is rotated the old one passes, and the new one does. It returns nil
// or ErrSignature. The body is JSON of a type such as WebhookJobCompleted, by its event.
func Verify(secret string, h http.Header, body []byte) error {
	return signature.Verify([]byte(secret), h, body, time.Now())
}

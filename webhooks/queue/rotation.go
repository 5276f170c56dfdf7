package queue

import (
	"net/http"

	"humanqa/webhooks"
)

// A rotation's overlap (decisions, "Rotation"). webhook-signature carries the signatures
// of both secrets, X-Service-Signature that of one at a time. The attempts of a delivery
// alternate between the two, so that a receiver gets a signature that it can verify,
// whichever secret it knows. The first attempt uses the secret that was accepted last.

// SignsWithNew says whether X-Service-Signature is made with the new secret.
func (d Delivery) SignsWithNew() bool {
	if d.PreviousSecret == "" {
		return true
	}
	newFirst, odd := d.NewSecret != webhooks.SecretNotAccepted, d.Failures%2 == 1
	return newFirst != odd
}

// adjustSecrets sets the receivers' reactions to their new secrets.
func adjustSecrets(endpoints map[string]webhooks.EndpointRow, batch []Outcome) {
	for _, o := range batch {
		e, known := endpoints[o.ProjectID]
		if !known || o.Result != Delivered || o.PreviousSecret == "" || e.PreviousSecret == "" || o.Secret != e.Secret {
			continue
		}
		e.NewSecret = o.provesSecret(e.NewSecret)
		endpoints[o.ProjectID] = e
	}
}

// provesSecret is the receiver's reaction to the new secret after a success during an
// overlap; before is the reaction so far.
func (o Outcome) provesSecret(before string) string {
	switch {
	case before == webhooks.SecretConfirmed:
		return webhooks.SecretConfirmed
	case !o.SignsWithNew():
		return webhooks.SecretNotAccepted
	case o.Failures > 0 && refusesSignature(o.LastStatus):
		return webhooks.SecretConfirmed
	}
	return webhooks.SecretAccepted
}

// refusesSignature says whether the status may be the answer to a signature that the
// receiver cannot verify. A 5xx, and a status that asks for a later try, say nothing
// about the signature.
func refusesSignature(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

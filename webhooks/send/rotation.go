package send

import (
	"context"
	"fmt"
	"net/http"

	"humanqa/webhooks"
)

// A rotation's overlap (decisions, "Rotation"). webhook-signature carries the signatures
// of both secrets, X-Service-Signature that of one at a time. The attempts of a delivery
// alternate between the two, so that a receiver gets a signature that it can verify,
// whichever secret it knows. The first attempt uses the secret that was accepted last.

// blameSecret names the secret that a refused attempt was signed with, while there are two.
func (s secrets) blameSecret(status int) string {
	switch {
	case s.previous == nil, status != http.StatusUnauthorized && status != http.StatusForbidden:
		return ""
	case s.byPrevious:
		return "; X-Service-Signature was made with the previous secret"
	}
	return "; X-Service-Signature was made with the new secret"
}

// signsWithNew says whether X-Service-Signature is made with the new secret.
func (c claimed) signsWithNew() bool {
	if c.PreviousSecret == "" {
		return true
	}
	newFirst, odd := c.NewSecret != webhooks.SecretNotAccepted, c.Failures%2 == 1
	return newFirst != odd
}

// adjustSecrets sets the receivers' reactions to their new secrets.
func adjustSecrets(endpoints map[string]webhooks.EndpointRow, batch []outcome) {
	for _, o := range batch {
		e, known := endpoints[o.ProjectID]
		if !known || o.result != delivered || o.PreviousSecret == "" || e.PreviousSecret == "" || o.Secret != e.Secret {
			continue
		}
		e.NewSecret = o.provesSecret(e.NewSecret)
		endpoints[o.ProjectID] = e
	}
}

// provesSecret is the receiver's reaction to the new secret after a success during an
// overlap; before is the reaction so far.
func (o outcome) provesSecret(before string) string {
	switch {
	case before == webhooks.SecretConfirmed:
		return webhooks.SecretConfirmed
	case !o.signsWithNew():
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

const unconfirmed = `
SELECT project_id, secret
FROM webhooks.endpoints
WHERE new_secret = '` + webhooks.SecretConfirmed + `'`

// markConfirmed leaves another rotation's row alone.
const markConfirmed = `
UPDATE webhooks.endpoints
SET new_secret = '` + webhooks.SecretAccepted + `'
WHERE project_id = $1 AND secret = $2 AND new_secret = '` + webhooks.SecretConfirmed + `'`

// reportConfirmed ends rotations whose receivers have the new secret.
func (d *Dispatcher) reportConfirmed(ctx context.Context) error {
	var ended []webhooks.EndpointRow
	if err := d.queue.db.SelectContext(ctx, &ended, unconfirmed); err != nil {
		return fmt.Errorf("list confirmed secrets: %w", err)
	}
	var failed error
	for _, e := range ended {
		if err := d.report.Confirmed(ctx, e.ProjectID, e.Secret); err != nil {
			failed = fmt.Errorf("end the rotation of project %s: %w", e.ProjectID, err)
			continue // the others need not wait for this one
		}
		if _, err := d.queue.db.ExecContext(ctx, markConfirmed, e.ProjectID, e.Secret); err != nil {
			return fmt.Errorf("mark an ended rotation: %w", err)
		}
	}
	return failed
}

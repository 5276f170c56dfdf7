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
	if err := d.queue.DB.SelectContext(ctx, &ended, unconfirmed); err != nil {
		return fmt.Errorf("list confirmed secrets: %w", err)
	}
	var failed error
	for _, e := range ended {
		if err := d.report.Confirmed(ctx, e.ProjectID, e.Secret); err != nil {
			failed = fmt.Errorf("end the rotation of project %s: %w", e.ProjectID, err)
			continue // the others need not wait for this one
		}
		if _, err := d.queue.DB.ExecContext(ctx, markConfirmed, e.ProjectID, e.Secret); err != nil {
			return fmt.Errorf("mark an ended rotation: %w", err)
		}
	}
	return failed
}

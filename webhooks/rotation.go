package webhooks

import (
	"context"
	"fmt"
	"net/http"
)

// A rotation's overlap (decisions, "Rotation"). webhook-signature carries the
// signatures of both secrets, X-Service-Signature those of one at a time: the
// attempts of a delivery alternate, so that a receiver gets one that it can verify
// whichever secret it knows. The first is made with the secret that was accepted last.

// What a receiver made of the new secret: endpoint.NewSecret. It ends with the overlap.
const (
	notAccepted = ""
	// accepted: the last success had X-Service-Signature of the new secret. That alone
	// proves nothing: a receiver may verify webhook-signature, or nothing at all.
	accepted = "accepted"
	// confirmed: the same delivery had been refused just before, with the previous
	// secret. The receiver has the new one: the log is to be told.
	confirmed = "confirmed"
)

// secrets sign one attempt.
type secrets struct {
	present    []byte
	previous   []byte // nil outside a rotation's overlap
	byPrevious bool   // X-Service-Signature is the previous secret's
}

func (s secrets) service() []byte {
	if s.byPrevious {
		return s.previous
	}
	return s.present
}

// blame names the secret that a refused attempt was signed with, while there are two.
func (s secrets) blame(status int) string {
	switch {
	case s.previous == nil, status != http.StatusUnauthorized && status != http.StatusForbidden:
		return ""
	case s.byPrevious:
		return "; X-Service-Signature was made with the previous secret"
	}
	return "; X-Service-Signature was made with the new secret"
}

// signsWithNew says whether X-Service-Signature is the new secret's.
func (c claimed) signsWithNew() bool {
	if c.PreviousSecret == "" {
		return true
	}
	newFirst, odd := c.NewSecret != notAccepted, c.Failures%2 == 1
	return newFirst != odd
}

// newSecrets gives what the receivers made of their new secrets, where that has
// changed, by project.
func newSecrets(batch []outcome, now map[string]endpoint) map[string]string {
	changed := map[string]string{}
	for _, o := range batch {
		e := now[o.ProjectID]
		if o.result != delivered || o.PreviousSecret == "" || e.PreviousSecret == "" || o.Secret != e.Secret {
			continue
		}
		is, begun := changed[o.ProjectID]
		if !begun {
			is = e.NewSecret
		}
		if is = o.proves(is); is != e.NewSecret {
			changed[o.ProjectID] = is
		}
	}
	return changed
}

// proves is what a success during an overlap says of the new secret, after all that
// was known before.
func (o outcome) proves(before string) string {
	switch {
	case before == confirmed:
		return confirmed
	case !o.signsWithNew():
		return notAccepted
	case o.Failures > 0 && refusesSignature(o.LastStatus):
		return confirmed
	}
	return accepted
}

// refusesSignature says whether a receiver may answer that to a signature that it
// cannot verify; a 5xx, and what only asks for patience, says nothing of it.
func refusesSignature(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

// startAfresh gives what waits all its attempts again: those of before were made with
// one secret, and the last of them must not be the only one under two.
const startAfresh = `
UPDATE webhooks.deliveries
SET failures = 0
WHERE project_id = ANY($1) AND state = 'pending' AND due_at > '-infinity' AND failures > 0`

const unconfirmed = `
SELECT project_id, secret
FROM webhooks.endpoints
WHERE new_secret = '` + confirmed + `'`

// markConfirmed leaves another rotation's row alone.
const markConfirmed = `
UPDATE webhooks.endpoints
SET new_secret = '` + accepted + `'
WHERE project_id = $1 AND secret = $2 AND new_secret = '` + confirmed + `'`

// reportConfirmed ends rotations whose receivers have the new secret.
func (d *Dispatcher) reportConfirmed(ctx context.Context) error {
	var ended []endpoint
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

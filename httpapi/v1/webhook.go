package v1

import (
	"context"
	"net/http"

	"humanqa/domain/command"
	"humanqa/httpapi/wire"
	"humanqa/projections/projects"
	"humanqa/webhooks"
)

// rotation is one replacement of the signing secret, by a person or else by an
// API key.
type rotation struct {
	At     wire.Timestamp `json:"at"`
	UserID *string        `json:"userId"`
	KeyID  *string        `json:"keyId"`
}

// webhookHealth is the health of a webhook.
type webhookHealth struct {
	Status              string          `json:"status"` // ok, failing, disabled
	FailingSince        *wire.Timestamp `json:"failingSince"`
	ConsecutiveFailures int             `json:"consecutiveFailures"` // attempts
	LastError           *string         `json:"lastError"`
	LastSuccessAt       *wire.Timestamp `json:"lastSuccessAt"`
	Held                int             `json:"held"`   // deliveries
	Failed              int             `json:"failed"` // deliveries
}

// healthOf reads the health of the webhooks of one account's projects.
func (a *Handlers) healthOf(ctx context.Context, found ...projects.Project) (map[string]webhooks.Health, error) {
	var ids []string
	for _, p := range found {
		if p.WebhookURL != "" {
			ids = append(ids, p.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return a.deliveries.Health(ctx, found[0].AccountID, ids...)
}

// healthIn is the health of the project's webhook. A webhook that the dispatcher does not
// know yet was not sent anything, so nothing has failed.
func healthIn(all map[string]webhooks.Health, p projects.Project) webhooks.Health {
	h, known := all[p.ID]
	if !known || h.URL != p.WebhookURL {
		h = webhooks.Health{Enabled: !p.WebhookDisabled}
	}
	return h
}

func healthBodyOf(h webhooks.Health) *webhookHealth {
	return &webhookHealth{
		Status: h.Status(), FailingSince: wire.Stamp(h.FailingSince), ConsecutiveFailures: h.ConsecutiveFailures,
		LastError: wire.OrNull(h.LastError), LastSuccessAt: wire.Stamp(h.LastSuccessAt), Held: h.Held, Failed: h.Failed,
	}
}

// enableWebhook is POST /v1/projects/:id/webhook/enable.
func (a *Handlers) enableWebhook(r *wire.Request) (wire.Answer, error) {
	id, err := a.ownProject(r)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		at, err := a.Commands.EnableWebhook(ctx, cause, id)
		if err != nil {
			return wire.Answer{}, err
		}
		a.Writer.Visible(ctx, r, at)
		a.Fresh.Webhooks(ctx)
		p, err := a.Reads.Projects.Get(ctx, r.Caller.AccountID, id)
		if err != nil {
			return wire.Answer{}, err
		}
		health, err := a.healthOf(ctx, p)
		return wire.ReplyUnless(err, http.StatusOK, countedOf(p, health))
	})
}

// rotatedSecret is the signing secret after a rotation: the only answer that
// holds one (decisions, "Rotation").
type rotatedSecret struct {
	WebhookSecret          *string         `json:"webhookSecret"` // null when the rotation was finished
	PreviousValidUntil     *wire.Timestamp `json:"previousValidUntil"`
	WebhookSecretRotatedAt *wire.Timestamp `json:"webhookSecretRotatedAt"`
	Next                   string          `json:"next"` // the next step of the receiver's owner
}

// The next steps after a rotation, for people.
const (
	afterOverlap = "Give your server the new secret within 24 hours. Until then webhook-signature carries a signature of each secret, " +
		"and X-Service-Signature alternates between the two from one attempt of a delivery to the next. " +
		`The rotation ends when your server accepts the new secret, or when you send {"finish": true}.`
	afterImmediate = "Give your server the new secret now: the old one signs nothing any more. " +
		"Deliveries that your server refuses four times are held; enable the webhook and replay them then."
	afterFinish = "The rotation has ended: only the present secret signs."
)

// rotateSecret is POST /v1/projects/:id/webhook/rotate-secret.
func (a *Handlers) rotateSecret(r *wire.Request) (wire.Answer, error) {
	id, err := a.ownProject(r)
	var p wire.Problems
	r.IdempotencyKey(&p)
	o := r.OptionalObject(&p)
	immediate, finish := o.Boolean("immediate", false), o.Boolean("finish", false)
	if immediate && finish {
		o.Wrong("finish", "must not come with immediate")
	}
	return a.Writer.WriteUnless(wire.RefusedFor(err, p.Err()), r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		var out command.RotatedSecret
		var err error
		next := afterOverlap
		if immediate {
			next = afterImmediate
		}
		if finish {
			next = afterFinish
			out, err = a.Commands.FinishRotation(ctx, cause, id)
		} else {
			out, err = a.Commands.RotateSecret(ctx, cause, id, immediate)
		}
		if err != nil {
			return wire.Answer{}, err
		}
		a.Writer.Visible(ctx, r, out.Position)
		a.Fresh.Webhooks(ctx)
		return wire.Reply(http.StatusOK, rotatedSecret{
			WebhookSecret: wire.OrNull(out.Secret), PreviousValidUntil: wire.Stamp(out.PreviousUntil),
			WebhookSecretRotatedAt: wire.Stamp(out.RotatedAt), Next: next,
		})
	})
}

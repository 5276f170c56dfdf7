package httpapi

import (
	"context"
	"net/http"

	"humanqa/domain/command"
	"humanqa/projections/projects"
	"humanqa/webhooks"
)

// rotation is one replacement of the signing secret, by a person or else by an
// API key.
type rotation struct {
	At     timestamp `json:"at"`
	UserID *string   `json:"userId"`
	KeyID  *string   `json:"keyId"`
}

// webhookHealth is how a webhook does.
type webhookHealth struct {
	Status              string     `json:"status"` // ok, failing, disabled
	FailingSince        *timestamp `json:"failingSince"`
	ConsecutiveFailures int        `json:"consecutiveFailures"` // attempts
	LastError           *string    `json:"lastError"`
	LastSuccessAt       *timestamp `json:"lastSuccessAt"`
	Held                int        `json:"held"`   // deliveries
	Failed              int        `json:"failed"` // deliveries
}

// healthOf asks how the webhooks of one account's projects do.
func (a *API) healthOf(ctx context.Context, found ...projects.Project) (map[string]webhooks.Health, error) {
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

// healthIn is that of the project's webhook. One that the dispatcher has not heard
// of yet was not sent anything, so nothing has failed.
func healthIn(all map[string]webhooks.Health, p projects.Project) webhooks.Health {
	h, known := all[p.ID]
	if !known || h.URL != p.WebhookURL {
		h = webhooks.Health{Enabled: !p.WebhookDisabled}
	}
	return h
}

func healthBodyOf(h webhooks.Health) *webhookHealth {
	return &webhookHealth{
		Status: h.Status(), FailingSince: stamp(h.FailingSince), ConsecutiveFailures: h.ConsecutiveFailures,
		LastError: orNull(h.LastError), LastSuccessAt: stamp(h.LastSuccessAt), Held: h.Held, Failed: h.Failed,
	}
}

// enableWebhook is POST /v1/projects/:id/webhook/enable.
func (a *API) enableWebhook(r *request) (answer, error) {
	id, err := a.ownProject(r)
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		at, err := a.commands.EnableWebhook(ctx, cause, id)
		if err != nil {
			return answer{}, err
		}
		a.visible(ctx, r, at)
		a.WebhooksShown(ctx)
		p, err := a.reads.Projects.Get(ctx, r.caller.accountID, id)
		if err != nil {
			return answer{}, err
		}
		health, err := a.healthOf(ctx, p)
		if err != nil {
			return answer{}, err
		}
		return reply(http.StatusOK, countedOf(p, health))
	})
}

// rotatedSecret is the signing secret after a rotation: the only answer that
// holds one (decisions, "Rotation").
type rotatedSecret struct {
	WebhookSecret          *string    `json:"webhookSecret"` // null when the rotation was finished
	PreviousValidUntil     *timestamp `json:"previousValidUntil"`
	WebhookSecretRotatedAt *timestamp `json:"webhookSecretRotatedAt"`
	Next                   string     `json:"next"` // what the owner of the receiver does now
}

// What follows a rotation, for people.
const (
	afterOverlap = "Give your server the new secret within 24 hours. Until then webhook-signature carries a signature of each secret, " +
		"and X-Service-Signature alternates between the two from one attempt of a delivery to the next. " +
		`The rotation ends when your server accepts the new secret, or when you send {"finish": true}.`
	afterImmediate = "Give your server the new secret now: the old one signs nothing any more. " +
		"Deliveries that your server refuses four times are held; enable the webhook and replay them then."
	afterFinish = "The rotation has ended: only the present secret signs."
)

// rotateSecret is POST /v1/projects/:id/webhook/rotate-secret.
func (a *API) rotateSecret(r *request) (answer, error) {
	id, err := a.ownProject(r)
	var p problems
	r.idempotencyKey(&p)
	o := r.optionalObject(&p)
	immediate, finish := o.boolean("immediate", false), o.boolean("finish", false)
	if immediate && finish {
		o.wrong("finish", "must not come with immediate")
	}
	if err := refusedFor(err, p.err()); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		var out command.RotatedSecret
		var err error
		next := afterOverlap
		if immediate {
			next = afterImmediate
		}
		if finish {
			next = afterFinish
			out, err = a.commands.FinishRotation(ctx, cause, id)
		} else {
			out, err = a.commands.RotateSecret(ctx, cause, id, immediate)
		}
		if err != nil {
			return answer{}, err
		}
		a.visible(ctx, r, out.Position)
		a.WebhooksShown(ctx)
		body := rotatedSecret{WebhookSecret: orNull(out.Secret), PreviousValidUntil: stamp(out.PreviousUntil), Next: next}
		if !out.RotatedAt.IsZero() {
			body.WebhookSecretRotatedAt = stamp(&out.RotatedAt)
		}
		return reply(http.StatusOK, body)
	})
}

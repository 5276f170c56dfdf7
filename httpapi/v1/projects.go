package v1

import (
	"cmp"
	"context"
	"net/http"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/subscription"
	"humanqa/httpapi/input"
	"humanqa/httpapi/wire"
	"humanqa/projections/projects"
	"humanqa/webhooks"
)

// projectBody is a project in every answer. The webhook's secret is never in
// it, nor is the deploy hook's token, which is shown at creation only.
type projectBody struct {
	ID                      string          `json:"id"`
	ProjectID               string          `json:"projectId"`
	Name                    string          `json:"name"`
	Description             *string         `json:"description"`
	DefaultURL              *string         `json:"defaultUrl"`
	DefaultJobType          *string         `json:"defaultJobType"`
	DefaultSLAMinutes       *int            `json:"defaultSlaMinutes"`
	WebhookURL              *string         `json:"webhookUrl"`
	WebhookDisabled         bool            `json:"webhookDisabled"`
	WebhookDisabledReason   *string         `json:"webhookDisabledReason"`
	WebhookHealth           *webhookHealth  `json:"webhookHealth"` // null without a webhook
	WebhookSecretRotatedAt  *wire.Timestamp `json:"webhookSecretRotatedAt"`
	WebhookSecretRotations  *[]rotation     `json:"webhookSecretRotations"` // null without a webhook
	PreviousValidUntil      *wire.Timestamp `json:"webhookSecretPreviousValidUntil"`
	SubscribedWebhookEvents []string        `json:"subscribedWebhookEvents"`
	AllWebhookEvents        bool            `json:"allWebhookEvents"`
	WebhookHeaderNames      []string        `json:"webhookHeaderNames"`  // never the values
	DeployHookSignature     *string         `json:"deployHookSignature"` // the scheme; null: no signature is needed
	Chat                    *chatBody       `json:"chat"`                // null: notices go by e-mail alone
	LoopAlertsSnoozedUntil  *wire.Timestamp `json:"loopAlertsSnoozedUntil"`
	QuestionMinutes         int             `json:"questionMinutes"`  // 0: checkers may ask nothing
	KeepEvidenceDays        *int            `json:"keepEvidenceDays"` // null: kept, unless the account's setting says otherwise
	KeepRecordingsDays      *int            `json:"keepRecordingsDays"`
	EvidenceHeld            bool            `json:"evidenceHeld"` // a hold on the project keeps it
	CreatedAt               wire.Timestamp  `json:"createdAt"`
	UpdatedAt               wire.Timestamp  `json:"updatedAt"`
	ArchivedAt              *wire.Timestamp `json:"archivedAt"` // null: it is in use
}

// chatBody is a project's chat. The address itself is never shown.
type chatBody struct {
	Address string  `json:"address"` // its host and last characters
	Reports string  `json:"reports"` // all or failures
	Ended   *string `json:"ended"`   // why nothing goes there any more; null: it is told
}

// countedProject is a project together with the figures of its jobs.
type countedProject struct {
	projectBody
	JobCount       int     `json:"jobCount"`
	CompletedCount int     `json:"completedCount"` // the jobs that the rate covers; a rate of none is 0
	PassRate       float64 `json:"passRate"`       // 0..1

	AsOf *string `json:"asOf,omitempty"` // of a project that is read alone
}

func bodyOf(p projects.Project, health map[string]webhooks.Health) projectBody {
	out := projectBody{
		ID: p.ID, ProjectID: p.ID, Name: p.Name, Description: p.Description,
		DefaultURL: p.DefaultURL, DefaultJobType: p.DefaultJobType, DefaultSLAMinutes: p.DefaultSLAMinutes,
		WebhookURL: wire.OrNull(p.WebhookURL), WebhookDisabled: p.WebhookDisabled,
		WebhookDisabledReason:  wire.OrNull(p.DisabledReason),
		WebhookSecretRotatedAt: wire.Stamp(p.SecretRotatedAt), SubscribedWebhookEvents: []string{},
		WebhookHeaderNames: append([]string{}, p.HeaderNames...), DeployHookSignature: wire.OrNull(p.HookScheme),
		LoopAlertsSnoozedUntil: wire.Stamp(p.LoopAlertsSnoozedUntil), QuestionMinutes: p.QuestionWait(),
		KeepEvidenceDays: p.Keep.EvidenceDays, KeepRecordingsDays: p.Keep.RecordingsDays, EvidenceHeld: p.Held,
		CreatedAt: wire.Timestamp(p.CreatedAt), UpdatedAt: wire.Timestamp(p.UpdatedAt), ArchivedAt: wire.Stamp(p.ArchivedAt),
	}
	if p.Chat.Address != "" {
		out.Chat = &chatBody{p.Chat.Address, p.Chat.Reports, wire.OrNull(p.Chat.Ended)}
	}
	if p.WebhookURL == "" {
		return out
	}
	rotations := []rotation{}
	for _, r := range p.SecretRotations {
		rotations = append(rotations, rotation{At: wire.Timestamp(r.At), UserID: r.UserID, KeyID: wire.OrNull(r.KeyID)})
	}
	out.WebhookSecretRotations = &rotations
	h := healthIn(health, p)
	out.WebhookHealth, out.PreviousValidUntil = healthBodyOf(h), wire.Stamp(h.PreviousUntil)
	if p.Events == nil { // never set: every kind
		out.AllWebhookEvents = true
		out.SubscribedWebhookEvents = subscription.Specified()
	} else {
		out.SubscribedWebhookEvents = append(out.SubscribedWebhookEvents, *p.Events...)
	}
	return out
}

func countedOf(p projects.Project, health map[string]webhooks.Health) countedProject {
	return countedProject{projectBody: bodyOf(p, health), JobCount: p.JobCount, CompletedCount: p.CompletedCount, PassRate: p.PassRate}
}

type projectPage struct {
	Projects []countedProject `json:"projects"`
	Total    int              `json:"total"`
	Limit    int              `json:"limit"`
	Offset   int              `json:"offset"`
	AsOf     *string          `json:"asOf,omitempty"`
}

// maxProjects is also the default limit: the specification's list has no pages, and the
// projects of nearly every account fit into one.
const maxProjects = 1000

// listProjects is GET /v1/projects. A project-bound key sees its own only.
func (a *Handlers) listProjects(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	q := r.Query(&p)
	archived := q.OneOf("archived", []string{"true", "false"}) == "true"
	f := projects.Filter{
		ID: r.Caller.ProjectID, Archived: &archived,
		Limit: q.Integer("limit", maxProjects, 1, maxProjects), Offset: q.Integer("offset", 0, 0, maxOffset),
	}
	at, err := a.asOf(r, &p)
	if err := cmp.Or(p.Err(), err); err != nil {
		return wire.Answer{}, err
	}
	found, total, err := listThen(r, f, at, a.Reads.Projects.List, a.past.Projects)
	if err != nil {
		return wire.Answer{}, err
	}
	page := projectPage{Total: total, Limit: f.Limit, Offset: f.Offset, AsOf: at.then()}
	page.Projects, err = a.countedThen(r, at, found...)
	return wire.ReplyUnless(err, http.StatusOK, page)
}

// getProject is GET /v1/projects/:id.
func (a *Handlers) getProject(r *wire.Request) (wire.Answer, error) {
	id, at, err := a.ownProjectThen(r)
	if err != nil {
		return wire.Answer{}, err
	}
	p, err := a.Reads.Projects.Get(r.Context(), r.Caller.AccountID, id)
	if err == nil && at != nil { // another account's project is not found at any moment
		p, err = a.past.Project(r.Context(), r.Caller.AccountID, id, at.Until)
		err = at.orNotThen("project", err)
	}
	if err != nil {
		return wire.Answer{}, err
	}
	out, err := a.countedThen(r, at, p)
	if err != nil {
		return wire.Answer{}, err
	}
	out[0].AsOf = at.then()
	return wire.Reply(http.StatusOK, out[0])
}

// countedThen are projects at the moment of ?asOf=. They have no past health of webhooks,
// which is not in the log.
func (a *Handlers) countedThen(r *wire.Request, at *asked, of ...projects.Project) ([]countedProject, error) {
	if at != nil {
		return wire.List(of, func(p projects.Project) countedProject {
			c := countedOf(p, nil)
			c.WebhookHealth = nil
			return c
		}), nil
	}
	health, err := a.healthOf(r.Context(), of...)
	return wire.List(of, func(p projects.Project) countedProject { return countedOf(p, health) }), err
}

// ownProjectThen is ownProject, and the moment of ?asOf=.
func (a *Handlers) ownProjectThen(r *wire.Request) (id string, at *asked, err error) {
	id, err = a.ownProject(r)
	var p wire.Problems
	at, failed := a.asOf(r, &p)
	return id, at, wire.RefusedFor(err, cmp.Or(p.Err(), failed))
}

// ownProject is the id in the path, unless the caller must not use it. The query, or the
// command, decides whether it exists.
func (a *Handlers) ownProject(r *wire.Request) (string, error) {
	id := r.Vars["id"]
	if !wire.IDPattern.MatchString(id) {
		return "", domain.NotFound("project")
	}
	return id, a.mayUseProject(r.Context(), r.Caller, id)
}

type createdProject struct {
	ProjectID     string `json:"projectId"`
	Name          string `json:"name"`
	DeployHookURL string `json:"deployHookUrl"`
}

// createProject is POST /v1/projects.
func (a *Handlers) createProject(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	r.IdempotencyKey(&p)
	o := r.Object(&p)
	in, target := input.NewProject(o, a.Limits)
	err := a.Limits.Admitted(r, &p, target)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		r.OwnSecret(o)
		if in.WebhookURL == "" {
			unusedWithoutURL(r, in.Events, in.Headers)
		}
		out, err := a.Commands.CreateProject(ctx, cause, in)
		return a.Writer.Done(ctx, r, out.Position, err, http.StatusCreated, createdProject{
			ProjectID: out.ProjectID, Name: out.Name,
			DeployHookURL: a.BaseURL + "/v1/hooks/deploy/" + out.HookToken,
		})
	})
}

// unusedWithoutURL warns of settings that count only with a webhook's URL.
func unusedWithoutURL(r *wire.Request, events *[]string, headers *command.Headers) {
	if events != nil {
		r.Unused("subscribedWebhookEvents")
	}
	if headers != nil {
		r.Unused("webhookHeaders")
	}
}

// updateProject is PATCH /v1/projects/:id.
func (a *Handlers) updateProject(r *wire.Request) (wire.Answer, error) {
	id, err := a.ownProject(r)
	var p wire.Problems
	o := r.Object(&p)
	in, target := input.ProjectUpdate(o, a.Limits)
	signed, chat := input.HookSignature(o), input.ChatChange(o)
	err = wire.RefusedFor(err, a.Limits.Admitted(r, &p, target))
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		if signed != nil {
			own := cause.Step("hook signature")
			if _, err := a.Commands.SetHookSignature(ctx, own, id, signed.Scheme, signed.Secret); err != nil {
				return wire.Answer{}, err
			}
		}
		if chat != nil {
			if _, err := a.Commands.SetChat(ctx, cause.Step("chat"), id, chat.URL, chat.Chat); err != nil {
				return wire.Answer{}, err
			}
		}
		after, at, err := a.Commands.UpdateProject(ctx, cause, id, in)
		if err != nil {
			return wire.Answer{}, err
		}
		a.Writer.Visible(ctx, r, at)
		r.OwnSecret(o)
		if after.WebhookURL == "" {
			unusedWithoutURL(r, in.Events, in.Headers)
		}
		if in.WebhookURL != nil || in.Events != nil || in.Headers != nil {
			a.Fresh.Webhooks(ctx)
		}
		p := projects.Of(id, after, projects.Counts{}) // the read model may not have reached it yet
		health, err := a.healthOf(ctx, p)
		return wire.ReplyUnless(err, http.StatusOK, bodyOf(p, health))
	})
}

// archivedProject counts the tests that the archive has cancelled.
type archivedProject struct {
	ProjectID  string          `json:"projectId"`
	ArchivedAt *wire.Timestamp `json:"archivedAt"`
	command.CancelledJobs
}

// archiveProject is POST /v1/projects/:id/archive, or restore.
func (a *Handlers) archiveProject(archive bool) func(*wire.Request) (wire.Answer, error) {
	return func(r *wire.Request) (wire.Answer, error) {
		id, err := a.ownProject(r)
		return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
			after, out, err := a.Commands.ArchiveProject(ctx, cause, id, archive, command.CancelledAtOnce)
			return a.Writer.Done(ctx, r, out.Position, err, http.StatusOK, archivedProject{id, wire.Stamp(after.ArchivedAt), out})
		})
	}
}

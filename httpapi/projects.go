package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/internal/guard"
	"humanqa/projections/projects"
	"humanqa/webhooks"
)

// projectBody is a project in every answer. The webhook's secret is never in
// it, nor is the deploy hook's token, which is shown at creation only.
type projectBody struct {
	ID                      string         `json:"id"`
	ProjectID               string         `json:"projectId"`
	Name                    string         `json:"name"`
	Description             *string        `json:"description"`
	DefaultURL              *string        `json:"defaultUrl"`
	DefaultJobType          *string        `json:"defaultJobType"`
	DefaultSLAMinutes       *int           `json:"defaultSlaMinutes"`
	WebhookURL              *string        `json:"webhookUrl"`
	WebhookDisabled         bool           `json:"webhookDisabled"`
	WebhookDisabledReason   *string        `json:"webhookDisabledReason"`
	WebhookHealth           *webhookHealth `json:"webhookHealth"` // null without a webhook
	WebhookSecretRotatedAt  *timestamp     `json:"webhookSecretRotatedAt"`
	WebhookSecretRotations  *[]rotation    `json:"webhookSecretRotations"` // null without a webhook
	PreviousValidUntil      *timestamp     `json:"webhookSecretPreviousValidUntil"`
	SubscribedWebhookEvents []string       `json:"subscribedWebhookEvents"`
	AllWebhookEvents        bool           `json:"allWebhookEvents"`
	LoopAlertsSnoozedUntil  *timestamp     `json:"loopAlertsSnoozedUntil"`
	CreatedAt               timestamp      `json:"createdAt"`
	UpdatedAt               timestamp      `json:"updatedAt"`
}

// countedProject is a project together with the figures of its jobs.
type countedProject struct {
	projectBody
	JobCount       int     `json:"jobCount"`
	CompletedCount int     `json:"completedCount"` // what the rate is of; that of none is 0
	PassRate       float64 `json:"passRate"`       // 0..1

	AsOf *string `json:"asOf,omitempty"` // of one that is read alone
}

func bodyOf(p projects.Project, health map[string]webhooks.Health) projectBody {
	out := projectBody{
		ID: p.ID, ProjectID: p.ID, Name: p.Name, Description: p.Description,
		DefaultURL: p.DefaultURL, DefaultJobType: p.DefaultJobType, DefaultSLAMinutes: p.DefaultSLAMinutes,
		WebhookURL: orNull(p.WebhookURL), WebhookDisabled: p.WebhookDisabled,
		WebhookDisabledReason:  orNull(p.DisabledReason),
		WebhookSecretRotatedAt: stamp(p.SecretRotatedAt), SubscribedWebhookEvents: []string{},
		LoopAlertsSnoozedUntil: stamp(p.LoopAlertsSnoozedUntil),
		CreatedAt:              timestamp(p.CreatedAt), UpdatedAt: timestamp(p.UpdatedAt),
	}
	if p.WebhookURL == "" {
		return out
	}
	rotations := []rotation{}
	for _, r := range p.SecretRotations {
		rotations = append(rotations, rotation{At: timestamp(r.At), UserID: r.UserID, KeyID: orNull(r.KeyID)})
	}
	out.WebhookSecretRotations = &rotations
	h := healthIn(health, p)
	out.WebhookHealth, out.PreviousValidUntil = healthBodyOf(h), stamp(h.PreviousUntil)
	if p.Events == nil { // never set: every kind
		out.AllWebhookEvents = true
		out.SubscribedWebhookEvents = announce.Subscribable()
	} else {
		out.SubscribedWebhookEvents = append(out.SubscribedWebhookEvents, *p.Events...)
	}
	return out
}

func countedOf(p projects.Project, health map[string]webhooks.Health) countedProject {
	return countedProject{projectBody: bodyOf(p, health), JobCount: p.JobCount, CompletedCount: p.CompletedCount, PassRate: p.PassRate}
}

// projectAfter is the state a command left behind, which the read model may
// not have reached yet.
func projectAfter(id string, s project.State) projects.Project {
	p := projects.Project{
		ID: id, AccountID: s.AccountID, Name: s.Name, Description: s.Description,
		DefaultURL: s.DefaultURL, DefaultJobType: s.DefaultJobType, DefaultSLAMinutes: s.DefaultSLAMinutes,
		WebhookURL: s.WebhookURL, Events: s.Events, WebhookDisabled: s.Disabled, DisabledReason: s.DisabledReason,
		LoopAlertsSnoozedUntil: s.LoopAlertsSnoozedUntil,
		SecretRotatedAt:        s.SecretRotatedAt, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
	for _, r := range slices.Backward(s.Rotations) { // newest first
		p.SecretRotations = append(p.SecretRotations, projects.SecretRotation(r))
	}
	return p
}

type projectPage struct {
	Projects []countedProject `json:"projects"`
	Total    int              `json:"total"`
	Limit    int              `json:"limit"`
	Offset   int              `json:"offset"`
	AsOf     *string          `json:"asOf,omitempty"`
}

// maxProjects is also what is listed unasked: the specification's list has no
// pages, and nearly every account's fits into one.
const maxProjects = 1000

// listProjects is GET /v1/projects. A project-bound key sees its own only.
func (a *API) listProjects(r *request) (answer, error) {
	var p problems
	q := r.query(&p)
	f := projects.Filter{
		ID:    r.caller.projectID,
		Limit: q.integer("limit", maxProjects, 1, maxProjects), Offset: q.integer("offset", 0, 0, maxOffset),
	}
	at, err := a.asOf(r, &p)
	if err := cmp.Or(p.err(), err); err != nil {
		return answer{}, err
	}
	found, total, err := a.projectsThen(r, f, at)
	if err != nil {
		return answer{}, err
	}
	page := projectPage{Total: total, Limit: f.Limit, Offset: f.Offset, AsOf: at.then()}
	if page.Projects, err = a.countedThen(r, at, found...); err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, page)
}

// getProject is GET /v1/projects/:id.
func (a *API) getProject(r *request) (answer, error) {
	id, at, err := a.ownProjectThen(r)
	if err != nil {
		return answer{}, err
	}
	p, err := a.reads.Projects.Get(r.Context(), r.caller.accountID, id)
	if err == nil && at != nil { // another account's is none, whenever
		p, err = a.past.Project(r.Context(), r.caller.accountID, id, at.Until)
		err = at.orNotThen("project", err)
	}
	if err != nil {
		return answer{}, err
	}
	out, err := a.countedThen(r, at, p)
	if err != nil {
		return answer{}, err
	}
	out[0].AsOf = at.then()
	return reply(http.StatusOK, out[0])
}

// projectsThen is the list, as ?asOf= asks for it.
func (a *API) projectsThen(r *request, f projects.Filter, at *asked) ([]projects.Project, int, error) {
	if at != nil {
		return a.past.Projects(r.Context(), r.caller.accountID, f, at.Until)
	}
	return a.reads.Projects.List(r.Context(), r.caller.accountID, f)
}

// countedThen are projects as ?asOf= asks for them. How their webhooks did then the
// log does not know.
func (a *API) countedThen(r *request, at *asked, of ...projects.Project) ([]countedProject, error) {
	out := []countedProject{}
	if at != nil {
		for _, p := range of {
			c := countedOf(p, nil)
			c.WebhookHealth = nil
			out = append(out, c)
		}
		return out, nil
	}
	health, err := a.healthOf(r.Context(), of...)
	for _, p := range of {
		out = append(out, countedOf(p, health))
	}
	return out, err
}

// ownProjectThen is ownProject, and what ?asOf= names.
func (a *API) ownProjectThen(r *request) (id string, at *asked, err error) {
	id, err = a.ownProject(r)
	var p problems
	at, failed := a.asOf(r, &p)
	return id, at, refusedFor(err, cmp.Or(p.err(), failed))
}

// ownProject is the id in the path, unless the caller must not use it. Whether
// it exists is for the query, or the command, to say.
func (a *API) ownProject(r *request) (string, error) {
	id := r.vars["id"]
	if !idPattern.MatchString(id) {
		return "", domain.NotFound("project")
	}
	return id, a.mayUseProject(r.Context(), r.caller, id)
}

type createdProject struct {
	ProjectID     string `json:"projectId"`
	Name          string `json:"name"`
	DeployHookURL string `json:"deployHookUrl"`
}

// createProject is POST /v1/projects.
func (a *API) createProject(r *request) (answer, error) {
	if r.caller.projectID != "" {
		return answer{}, errOtherProject
	}
	var p problems
	r.idempotencyKey(&p)
	in := a.readNewProject(r.object(&p))
	if err := a.admitted(r, &p); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		if in.Events != nil && in.WebhookURL == "" {
			r.unused("subscribedWebhookEvents")
		}
		out, err := a.commands.CreateProject(ctx, cause, in)
		return a.done(ctx, r, out.Position, err, http.StatusCreated, createdProject{
			ProjectID: out.ProjectID, Name: out.Name,
			DeployHookURL: a.baseURL + "/v1/hooks/deploy/" + out.HookToken,
		})
	})
}

func (a *API) readNewProject(o object) command.CreateProject {
	in := command.CreateProject{
		Name:           o.required("name", maxProjectName),
		Description:    o.pointer("description", maxProjectDescription),
		DefaultURL:     o.pointer("defaultUrl", maxURL),
		DefaultJobType: o.pointer("defaultJobType", maxWord),
		WebhookURL:     o.optional("webhookUrl", maxURL),
		Events:         o.eventNames("subscribedWebhookEvents"),
	}
	if minutes := o.slaMinutes("defaultSlaMinutes"); minutes != 0 {
		in.DefaultSLAMinutes = &minutes
	}
	o.defaults(in.DefaultURL, in.DefaultJobType)
	o.check("webhookUrl", in.WebhookURL, a.webhookURL)
	return in
}

func (a *API) webhookURL(raw string) error { return guard.WebhookURL(raw, a.webhookAllow) }

// defaults checks the settings that jobs will inherit.
func (o object) defaults(defaultURL, jobType *string) {
	if defaultURL != nil {
		o.target("defaultUrl", *defaultURL, "")
	}
	if jobType == nil {
		return
	}
	if _, ok := job.ParseType(*jobType); !ok {
		o.wrong("defaultJobType", "must be %s", oneOfWords(words(job.Types())))
	}
}

// updateProject is PATCH /v1/projects/:id.
func (a *API) updateProject(r *request) (answer, error) {
	id, err := a.ownProject(r)
	var p problems
	in := a.readProjectUpdate(r.object(&p))
	if err := refusedFor(err, a.admitted(r, &p)); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		after, at, err := a.commands.UpdateProject(ctx, cause, id, in)
		if err != nil {
			return answer{}, err
		}
		a.visible(ctx, r, at)
		if in.Events != nil && after.WebhookURL == "" {
			r.unused("subscribedWebhookEvents")
		}
		if in.WebhookURL != nil || in.Events != nil {
			a.WebhooksShown(ctx)
		}
		p := projectAfter(id, after)
		health, err := a.healthOf(ctx, p)
		if err != nil {
			return answer{}, err
		}
		return reply(http.StatusOK, bodyOf(p, health))
	})
}

func (a *API) readProjectUpdate(o object) command.UpdateProject {
	in := command.UpdateProject{
		Description:       o.patchText("description", maxProjectDescription),
		DefaultURL:        o.patchText("defaultUrl", maxURL),
		DefaultJobType:    o.patchText("defaultJobType", maxWord),
		DefaultSLAMinutes: o.patchSLA("defaultSlaMinutes"),
		Events:            o.eventNames("subscribedWebhookEvents"),

		LoopAlertsSnoozedUntil: o.patchTime("loopAlertsSnoozedUntil"),
	}
	if _, there := o.field("name"); there {
		name := o.required("name", maxProjectName)
		in.Name = &name
	}
	if raw, there := o.given("webhookUrl"); there {
		if url, ok := o.text("webhookUrl", raw, maxURL); ok {
			o.check("webhookUrl", url, a.webhookURL)
			in.WebhookURL = &url
		}
	}
	o.notNull("webhookUrl", `; "" removes the webhook`)
	o.notNull("subscribedWebhookEvents", "; [] stops deliveries")
	o.defaults(in.DefaultURL.Value, in.DefaultJobType.Value)
	return in
}

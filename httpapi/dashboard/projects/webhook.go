package projects

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/command"
	"humanqa/domain/project"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/projects"
	"humanqa/webhooks"
)

// deliveriesShown bounds a page of the list, and so the deliveries that are chosen at a time.
const deliveriesShown = 25

type webhookView struct {
	Project   projects.Project
	Health    webhooks.Health
	State     ui.State
	Settings  bool                // the tab of the settings is open
	WaitingOf int                 // held and failed deliveries
	Days      *ui.Plot            // the deliveries of a week, day by day
	Lines     []webhooks.Delivery // those of one test together
	Titles    map[string]string   // of the tests that they are about, by id
	Tabs      []ui.Tab
	Status    string
	Job       string // the only test whose deliveries are listed; empty: all tests
	Older     string
	Events    []string // that can be chosen
	Every     bool     // every kind of event is sent, also those that no list names
	NewSecret string   // shown once, right after it was made
	Said      string   // the result of the form that was just sent

	name func(actor string) string
}

// Held says that a delivery waits for a replay or a drop.
func (webhookView) Held(d webhooks.Delivery) bool {
	return (d.State == webhooks.StateHeld || d.State == webhooks.StateFailed) && d.Event != announce.TestName
}

// Chosen says that a kind of event is sent.
func (v webhookView) Chosen(event string) bool {
	return v.Every || slices.Contains(*v.Project.Events, event)
}

// Rotator is the person or the key that replaced the secret.
func (v webhookView) Rotator(r project.Rotation) string {
	if actor := actorOf(r); actor != "" {
		return v.name(actor)
	}
	return "an unknown person"
}

// deliveryTabs are the states that the list can be narrowed to.
var deliveryTabs = []struct{ status, text string }{
	{webhooks.StateFailed, "Failed"}, {webhooks.StateHeld, "Held"}, {webhooks.StateDelivered, "Delivered"},
	{webhooks.StatePending, "Waiting"}, {webhooks.StateDropped, "Dropped"}, {"", "All"},
}

func (d Deps) webhookView(r *ui.Request) (v webhookView, err error) {
	if v.Project, err = ui.Find(r, "project", d.Reads.Projects.Get); err != nil {
		return v, err
	}
	p, ctx := v.Project, r.Context()
	d.Fresh.Webhooks(ctx)
	all, err := d.Deliveries.Health(ctx, p.AccountID, p.ID)
	if err != nil {
		return v, err
	}
	v.Health, v.State = all[p.ID], words.WebhookState(p, all)
	v.WaitingOf = v.Health.Held + v.Health.Failed
	v.Settings = r.FormValue("tab") == "settings"
	if err := d.listDeliveries(r, &v); err != nil {
		return v, err
	}
	if v.Titles, err = d.titlesOf(ctx, p.AccountID, v.Lines...); err != nil {
		return v, err
	}
	if err := d.drawDays(ctx, &v); err != nil {
		return v, err
	}
	v.Every, v.Events = p.Events == nil, announce.Choices()
	actors := wire.List(p.SecretRotations, actorOf)
	v.name, err = words.AuthorsOf(ctx, d.Credentials, d.Reads, p.AccountID, actors...)
	return v, err
}

// titlesOf are the titles of the tests that deliveries are about, by the tests' ids.
func (d Deps) titlesOf(ctx context.Context, accountID string, list ...webhooks.Delivery) (map[string]string, error) {
	var ids []string
	for _, one := range list {
		if id := one.JobID(); id != "" {
			ids = append(ids, id)
		}
	}
	return d.Reads.Jobs.Titles(ctx, accountID, ids)
}

// daysDrawn is the number of days of which the deliveries are drawn.
const daysDrawn = 7

// drawDays draws the deliveries of the last days (UTC), if there were some.
func (d Deps) drawDays(ctx context.Context, v *webhookView) error {
	days, err := d.Deliveries.Days(ctx, v.Project.AccountID, v.Project.ID, daysDrawn)
	if err != nil {
		return err
	}
	var columns []ui.Column
	all := 0
	for _, day := range days {
		at, sum := day.At.UTC(), day.Delivered+day.Failed+day.Open
		all += sum
		columns = append(columns, ui.Column{
			Label: at.Format("2 Jan"), Number: ui.Group(int64(sum)),
			Says: fmt.Sprintf("%s: %d delivered, %d held or failed, %d under way",
				at.Format("2 Jan 2006"), day.Delivered, day.Failed, day.Open),
			Parts: []ui.ColumnPart{
				{Kind: "pass", Of: float64(day.Delivered)}, {Kind: "fail", Of: float64(day.Failed)}, {Kind: "skip", Of: float64(day.Open)},
			},
		})
	}
	if all > 0 {
		v.Days = ui.NewPlot(columns, 0, "")
	}
	return nil
}

// listDeliveries fills the list that the query asks for.
func (d Deps) listDeliveries(r *ui.Request, v *webhookView) error {
	path, query := "/dashboard/projects/"+v.Project.ID+"/webhook", url.Values{}
	if id, err := uuid.Parse(r.FormValue("job")); err == nil {
		v.Job = id.String()
		query.Set("job", v.Job)
	}
	at := func(status, after string) string {
		q := url.Values{"job": query["job"], "status": {status}}
		if after != "" {
			q.Set("after", after)
		}
		return path + "?" + q.Encode() + "#deliveries"
	}
	v.Status = r.FormValue("status")
	if _, chosen := r.URL.Query()["status"]; !chosen && v.Job == "" && v.Health.Held > 0 {
		v.Status = webhooks.StateHeld // what waits comes first
	}
	for _, t := range deliveryTabs {
		text := t.text
		if n := map[string]int{webhooks.StateFailed: v.Health.Failed, webhooks.StateHeld: v.Health.Held}[t.status]; n > 0 {
			text += " " + ui.Group(int64(n))
		}
		v.Tabs = append(v.Tabs, ui.Tab{Text: text, Href: at(t.status, ""), Current: v.Status == t.status})
	}
	list, next, err := d.Deliveries.Deliveries(r.Context(), v.Project.AccountID, v.Project.ID, webhooks.DeliveryFilter{
		State: v.Status, JobID: v.Job, Limit: deliveriesShown, After: r.FormValue("after"),
	})
	if next != "" {
		v.Older = at(v.Status, next)
	}
	v.Lines = byTest(list)
	return err
}

// byTest puts the deliveries of a test together, where its newest stands.
func byTest(list []webhooks.Delivery) []webhooks.Delivery {
	first := map[string]int{}
	for i, d := range slices.Backward(list) {
		first[d.JobID()] = i
	}
	slices.SortStableFunc(list, func(a, b webhooks.Delivery) int { return first[a.JobID()] - first[b.JobID()] })
	return list
}

// actorOf is the actor of a rotation; empty: it is not known.
func actorOf(r project.Rotation) string {
	switch {
	case r.KeyID != "":
		return "key:" + r.KeyID
	case r.UserID != nil:
		return "person:" + *r.UserID
	}
	return ""
}

// deeds are the results of the forms that lead here, by the word in the query.
var deeds = map[string]string{"replayed": "will be sent", "dropped": "dropped", "enabled": "The webhook is enabled again."}

func (d Deps) webhook(r *ui.Request) (ui.Answer, error) {
	v, err := d.webhookView(r)
	done := r.FormValue("done")
	v.Said = deeds[done]
	if n, err := strconv.Atoi(r.FormValue("count")); err == nil && n >= 0 && (done == "replayed" || done == "dropped") {
		v.Said = ui.Count(n, "event") + " " + deeds[done] + "."
	}
	return ui.Show("webhook", "Webhook of "+v.Project.Name, v, ui.Everything), err
}

// caughtUp first waits until the webhooks know the changes that were answered before.
func (d Deps) caughtUp(handle ui.Handler[projects.Project]) ui.Handler[projects.Project] {
	return func(r *ui.Request, p projects.Project) (ui.Answer, error) {
		d.Fresh.Webhooks(r.Context())
		return handle(r, p)
	}
}

func webhookPage(p projects.Project, done string) string {
	return "/dashboard/projects/" + p.ID + "/webhook?done=" + done
}

// updateWebhook chooses the events. While every kind is sent, choosing all names
// changes nothing.
func (d Deps) updateWebhook(r *ui.Request, p projects.Project) (ui.Answer, error) {
	var in command.UpdateProject
	if r.PostFormValue("every") == "" {
		names := []string{}
		for _, name := range announce.Choices() {
			if slices.Contains(r.PostForm["event"], name) {
				names = append(names, name)
			}
		}
		in.Events = &names
	}
	_, at, err := d.Commands.UpdateProject(r.Context(), r.Cause(), p.ID, in)
	return r.Done(at, err, "/dashboard/projects/"+p.ID+"/webhook?tab=settings#events")
}

// enableWebhook also replays what was held, if it is asked to.
func (d Deps) enableWebhook(r *ui.Request, p projects.Project) (ui.Answer, error) {
	at, err := d.Commands.EnableWebhook(r.Context(), r.Cause(), p.ID)
	if err == nil && r.PostFormValue("which") == "all" {
		r.Visible(at)
		d.Fresh.Webhooks(r.Context())
		return d.replayHeld(r, p)
	}
	return r.Done(at, err, webhookPage(p, "enabled"))
}

func (d Deps) testWebhook(r *ui.Request, p projects.Project) (ui.Answer, error) {
	at, err := d.Commands.AccountTime(r.Context(), r.Cause())
	if err != nil {
		return ui.Answer{}, err
	}
	id, err := d.Deliveries.TestOf(r.Context(), p.AccountID, p.ID, r.Cause().CommandID, at)
	return ui.Go("/dashboard/deliveries/" + id.String()), err
}

func (d Deps) replayHeld(r *ui.Request, p projects.Project) (ui.Answer, error) {
	return changeHeld(r, p, "replayed", d.Deliveries.Replay)
}

func (d Deps) dropHeld(r *ui.Request, p projects.Project) (ui.Answer, error) {
	return changeHeld(r, p, "dropped", d.Deliveries.Drop)
}

// changeHeld changes the waiting deliveries that were ticked, or all of them.
func changeHeld(
	r *ui.Request, p projects.Project, done string, change func(ctx context.Context, accountID, projectID string, c webhooks.Chosen) (int,
		error),
) (ui.Answer, error) {
	var chosen webhooks.Chosen
	if r.PostFormValue("which") != "all" {
		chosen.IDs = []uuid.UUID{}
		for _, ticked := range r.PostForm["delivery"] {
			if id, err := uuid.Parse(ticked); err == nil {
				chosen.IDs = append(chosen.IDs, id)
			}
		}
	}
	n, err := change(r.Context(), p.AccountID, p.ID, chosen)
	return ui.Go(webhookPage(p, done+"&count="+strconv.Itoa(n))), err
}

// rotateSecret answers with the page itself, not a redirect: the new secret is on it. The
// same form, sent again, gets the same secret.
func (d Deps) rotateSecret(r *ui.Request, p projects.Project) (ui.Answer, error) {
	out, err := d.Commands.RotateSecret(r.Context(), r.Cause(), p.ID, r.PostFormValue("how") == "immediate")
	if err != nil {
		return ui.Answer{}, err
	}
	r.Visible(out.Position)
	v, err := d.webhookView(r)
	v.NewSecret, v.Health.PreviousUntil, v.Settings = out.Secret, out.PreviousUntil, true
	return ui.Answer{Template: "webhook", Title: "Webhook of " + p.Name, View: v, Secret: true}, err
}

func (d Deps) finishRotation(r *ui.Request, p projects.Project) (ui.Answer, error) {
	out, err := d.Commands.FinishRotation(r.Context(), r.Cause(), p.ID)
	return r.Done(out.Position, err, "/dashboard/projects/"+p.ID+"/webhook?tab=settings#secret")
}

// setHeader adds one of the client's own headers to the deliveries, or replaces its value. A
// refused form comes back without the value: a page never shows one.
func (d Deps) setHeader(r *ui.Request, p projects.Project) (ui.Answer, error) {
	name, value := strings.TrimSpace(r.PostFormValue("header")), strings.TrimSpace(r.PostFormValue("value"))
	_, wrongName := project.HeaderName(name)
	var wrong []domain.Detail
	for field, problem := range map[string]string{"header": wrongName, "value": project.HeaderValue(value)} {
		if problem != "" {
			wrong = append(wrong, domain.Detail{Path: field, Message: problem})
		}
	}
	if len(wrong) > 0 {
		return ui.Answer{}, domain.Invalid(wrong...)
	}
	return d.changeHeaders(r, p, map[string]*string{name: &value})
}

func (d Deps) removeHeader(r *ui.Request, p projects.Project) (ui.Answer, error) {
	return d.changeHeaders(r, p, map[string]*string{r.PostFormValue("header"): nil})
}

func (d Deps) changeHeaders(r *ui.Request, p projects.Project, values map[string]*string) (ui.Answer, error) {
	_, at, err := d.Commands.UpdateProject(r.Context(), r.Cause(), p.ID, command.UpdateProject{Headers: &command.Headers{Values: values}})
	return r.Done(at, err, "/dashboard/projects/"+p.ID+"/webhook?tab=settings#headers")
}

type secretView struct {
	Project projects.Project
	Secret  string
}

// webhookSecret shows the signing secret to an owner who has just proved their identity.
func (d Deps) webhookSecret(r *ui.Request, p projects.Project) (ui.Answer, error) {
	secret, err := d.Commands.WebhookSecret(r.Context(), p.ID)
	return ui.Answer{Template: "secret", Title: "Signing secret", View: secretView{p, secret}, Secret: true}, err
}

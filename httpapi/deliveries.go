package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/command"
	"humanqa/projections/projects"
	"humanqa/webhooks"
)

// deliveryBody is a delivery in a list.
type deliveryBody struct {
	ID             string     `json:"id"`
	Event          string     `json:"event"`
	JobID          *string    `json:"jobId"` // null for what is about no job
	Status         string     `json:"status"`
	Attempts       int        `json:"attempts"`
	CreatedAt      timestamp  `json:"createdAt"`
	NextAttemptAt  *timestamp `json:"nextAttemptAt"` // null while nothing waits
	LastStatusCode *int       `json:"lastStatusCode"`
	LastError      *string    `json:"lastError"`
}

func deliveryOf(d webhooks.Delivery) deliveryBody {
	return deliveryBody{
		ID: d.ID.String(), Event: d.Event, JobID: orNull(d.JobID()), Status: d.State, Attempts: d.Attempts,
		CreatedAt: timestamp(d.CreatedAt), NextAttemptAt: stamp(d.NextAttemptAt()),
		LastStatusCode: statusCode(d.LastStatus.Int64), LastError: orNull(d.LastError),
	}
}

// statusCode is null where there was no answer.
func statusCode(code int64) *int {
	if code == 0 {
		return nil
	}
	n := int(code)
	return &n
}

type deliveryPage struct {
	Deliveries []deliveryBody `json:"deliveries"`
	NextCursor *string        `json:"nextCursor"` // null at the end
}

// listDeliveries is GET /v1/projects/:id/deliveries.
func (a *API) listDeliveries(r *request) (answer, error) {
	id, err := a.ownProject(r)
	var p problems
	q := r.query(&p)
	f := webhooks.DeliveryFilter{
		State: q.oneOf("status", webhooks.States()), Event: q.oneOf("event", eventNames()),
		JobID: q.text("jobId"), Limit: q.integer("limit", 20, 1, 100), After: q.text("cursor"),
	}
	if !webhooks.IsCursor(f.After) {
		p.add("cursor", "must be a nextCursor of this list")
	}
	if err := refusedFor(err, p.err()); err != nil {
		return answer{}, err
	}
	if _, err := a.reads.Projects.Get(r.Context(), r.caller.accountID, id); err != nil {
		return answer{}, err
	}
	a.webhooksCatchUp(r)
	list, next, err := a.deliveries.Deliveries(r.Context(), r.caller.accountID, id, f)
	if err != nil {
		return answer{}, err
	}
	page := deliveryPage{Deliveries: []deliveryBody{}, NextCursor: orNull(next)}
	for _, d := range list {
		page.Deliveries = append(page.Deliveries, deliveryOf(d))
	}
	return reply(http.StatusOK, page)
}

// eventNames are the events that a delivery may be of.
func eventNames() []string {
	names := []string{announce.TestName}
	for _, k := range announce.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// wholeDelivery is a delivery with all that was sent, and what came back.
type wholeDelivery struct {
	deliveryBody
	ProjectID string            `json:"projectId"`
	Body      string            `json:"body"`    // the exact bytes
	Headers   map[string]string `json:"headers"` // of the latest attempt
	Attempts  []attemptBody     `json:"attempts"`
}

type attemptBody struct {
	At           timestamp         `json:"at"`
	DurationMS   int               `json:"durationMs"`
	URL          string            `json:"url"`
	StatusCode   *int              `json:"statusCode"`
	Error        *string           `json:"error"` // null: success
	ResponseBody string            `json:"responseBody"`
	Headers      map[string]string `json:"headers"`
}

// getDelivery is GET /v1/projects/:id/deliveries/:deliveryId.
func (a *API) getDelivery(r *request) (answer, error) {
	projectID, id, err := a.ownDelivery(r)
	if err != nil {
		return answer{}, err
	}
	a.webhooksCatchUp(r)
	w, err := a.deliveries.Delivery(r.Context(), r.caller.accountID, projectID, id)
	if err != nil {
		return answer{}, err
	}
	out := wholeDelivery{
		deliveryBody: deliveryOf(w.Delivery), ProjectID: w.ProjectID, Body: string(w.Body),
		Headers: headersOf(w, webhooks.Attempt{}), Attempts: []attemptBody{},
	}
	for _, at := range w.Attempts {
		out.Headers = headersOf(w, at)
		out.Attempts = append(out.Attempts, attemptBody{
			At: timestamp(at.At), DurationMS: at.DurationMS, URL: at.URL, StatusCode: statusCode(at.Status.Int64),
			Error: orNull(at.Error), ResponseBody: at.Response, Headers: out.Headers,
		})
	}
	return reply(http.StatusOK, out)
}

func headersOf(w webhooks.DeliveryDetail, a webhooks.Attempt) map[string]string {
	sent := map[string]string{}
	for _, h := range w.Headers(a) {
		sent[h.Name] = h.Value
	}
	return sent
}

// ownDelivery is the project's and the delivery's id in the path, unless the
// caller must not use them.
func (a *API) ownDelivery(r *request) (projectID string, id uuid.UUID, err error) {
	if projectID, err = a.ownProject(r); err != nil {
		return "", uuid.Nil, err
	}
	if id, err = uuid.Parse(r.vars["deliveryId"]); err != nil {
		return "", uuid.Nil, domain.NotFound("delivery")
	}
	_, err = a.reads.Projects.Get(r.Context(), r.caller.accountID, projectID)
	return projectID, id, err
}

// redeliver is POST /v1/projects/:id/deliveries/:deliveryId/redeliver.
func (a *API) redeliver(r *request) (answer, error) {
	projectID, id, err := a.ownDelivery(r)
	if err != nil {
		return answer{}, err
	}
	a.webhooksCatchUp(r)
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		if err := a.deliveries.Redeliver(ctx, cause.AccountID, projectID, id); err != nil {
			return answer{}, err
		}
		return a.onItsWay(ctx, cause.AccountID, projectID, id)
	})
}

// onItsWay answers with a delivery that will be sent.
func (a *API) onItsWay(ctx context.Context, accountID, projectID string, id uuid.UUID) (answer, error) {
	w, err := a.deliveries.Delivery(ctx, accountID, projectID, id)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusAccepted, deliveryOf(w.Delivery))
}

// testWebhook is POST /v1/projects/:id/webhook/test.
func (a *API) testWebhook(r *request) (answer, error) {
	p, err := a.ownWebhook(r)
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		id, err := a.TestWebhook(ctx, cause, p)
		if err != nil {
			return answer{}, err
		}
		return a.onItsWay(ctx, cause.AccountID, p.ID, id)
	})
}

// TestWebhook has a test event sent. The command's id makes the delivery's: a
// repeat is the same event.
func (a *API) TestWebhook(ctx context.Context, cause command.Cause, p projects.Project) (uuid.UUID, error) {
	id := domain.DeriveID(cause.CommandID, "webhook test of "+p.ID)
	at, err := a.commands.AccountTime(ctx, cause)
	if err != nil {
		return uuid.Nil, err
	}
	return id, heardOf(a.deliveries.Test(ctx, p.AccountID, p.ID, id, at))
}

type changedDeliveries struct {
	Count int `json:"count"`
}

// replayDeliveries is POST /v1/projects/:id/webhook/replay.
func (a *API) replayDeliveries(r *request) (answer, error) {
	return a.changeDeliveries(r, a.deliveries.Replay)
}

// dropDeliveries is POST /v1/projects/:id/webhook/drop.
func (a *API) dropDeliveries(r *request) (answer, error) {
	return a.changeDeliveries(r, a.deliveries.Drop)
}

// maxChosen bounds the deliveries that one call may name.
const maxChosen = 1000

func (a *API) changeDeliveries(
	r *request, change func(ctx context.Context, accountID, projectID string, c webhooks.Chosen) (int, error),
) (answer, error) {
	id, err := a.ownProject(r)
	var p problems
	chosen := r.object(&p).chosenDeliveries()
	if err := refusedFor(err, p.err()); err != nil {
		return answer{}, err
	}
	if _, err := a.reads.Projects.Get(r.Context(), r.caller.accountID, id); err != nil {
		return answer{}, err
	}
	a.webhooksCatchUp(r)
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		n, err := change(ctx, cause.AccountID, id, chosen)
		if err != nil {
			return answer{}, heardOf(err)
		}
		return reply(http.StatusAccepted, changedDeliveries{Count: n})
	})
}

// chosenDeliveries reads since or deliveryIds: exactly one of them, so that
// nobody replays everything by an empty body.
func (o object) chosenDeliveries() (c webhooks.Chosen) {
	since := o.moment("since")
	names := o.strings("deliveryIds", maxChosen, maxWord)
	switch {
	case o.fields == nil: // the object itself is what is wrong
	case since != nil && names != nil:
		o.wrong("since", "must be left out where deliveryIds are given")
	case since != nil:
		c.Since = *since
	case names != nil:
		c.IDs = []uuid.UUID{}
		for i, name := range *names {
			id, err := uuid.Parse(name)
			if err != nil {
				o.wrong(fmt.Sprintf("deliveryIds[%d]", i), "must be a delivery's id")
			}
			c.IDs = append(c.IDs, id)
		}
	default:
		o.wrong("since", "is required, or deliveryIds")
	}
	return c
}

// ownWebhook is the project in the path, whose webhook is to be used: the
// dispatcher knows it as everybody else does.
func (a *API) ownWebhook(r *request) (projects.Project, error) {
	id, err := a.ownProject(r)
	if err != nil {
		return projects.Project{}, err
	}
	p, err := a.reads.Projects.Get(r.Context(), r.caller.accountID, id)
	if err == nil {
		a.webhooksCatchUp(r)
	}
	return p, err
}

// heardOf turns the record's word that there is no such project, of one that
// there is, into what it means: the subscriber is behind.
func heardOf(err error) error {
	if domain.IsKind(err, domain.KindNotFound) {
		return domain.Unavailable(fmt.Errorf("the webhook subscriber has not read of it yet: %w", err))
	}
	return err
}

// webhooksCatchUp waits until the webhooks know what was answered before: who
// has enabled one may replay at once.
func (a *API) webhooksCatchUp(r *request) { a.WebhooksShown(r.Context()) }

// WebhooksShown waits, for a while, until the webhooks know what was answered
// before.
func (a *API) WebhooksShown(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, visibleWithin)
	defer cancel()
	if err := a.webhooksShown(short); err != nil && ctx.Err() == nil {
		a.log.WithError(err).Warn("the webhooks were used before they caught up")
	}
}

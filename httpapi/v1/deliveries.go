package v1

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/command"
	"humanqa/httpapi/input"
	"humanqa/httpapi/wire"
	"humanqa/projections/projects"
	"humanqa/webhooks"
)

// deliveryBody is a delivery in a list.
type deliveryBody struct {
	ID             string          `json:"id"`
	Event          string          `json:"event"`
	JobID          *string         `json:"jobId"` // null for an event about no job
	Status         string          `json:"status"`
	Attempts       int             `json:"attempts"`
	CreatedAt      wire.Timestamp  `json:"createdAt"`
	NextAttemptAt  *wire.Timestamp `json:"nextAttemptAt"` // null while nothing waits
	LastStatusCode *int            `json:"lastStatusCode"`
	LastError      *string         `json:"lastError"`
}

func deliveryOf(d webhooks.Delivery) deliveryBody {
	return deliveryBody{
		ID: d.ID.String(), Event: d.Event, JobID: wire.OrNull(d.JobID()), Status: d.State, Attempts: d.Attempts,
		CreatedAt: wire.Timestamp(d.CreatedAt), NextAttemptAt: wire.Stamp(d.NextAttemptAt()),
		LastStatusCode: statusCode(d.LastStatus.Int64), LastError: wire.OrNull(d.LastError),
	}
}

// statusCode is null where there was no answer.
func statusCode(code int64) *int {
	if code == 0 {
		return nil
	}
	return new(int(code))
}

type deliveryPage struct {
	Deliveries []deliveryBody `json:"deliveries"`
	NextCursor *string        `json:"nextCursor"` // null at the end
}

// listDeliveries is GET /v1/projects/:id/deliveries.
func (a *Handlers) listDeliveries(r *wire.Request) (wire.Answer, error) {
	project, err := a.knownProject(r)
	var p wire.Problems
	q := r.Query(&p)
	f := webhooks.DeliveryFilter{
		State: q.OneOf("status", webhooks.States()), Event: q.OneOf("event", eventNames()),
		JobID: q.Text("jobId"), Limit: q.Integer("limit", 20, 1, 100), After: q.Text("cursor"),
	}
	if !webhooks.IsCursor(f.After) {
		p.Add("cursor", "must be a nextCursor of this list")
	}
	if err := wire.RefusedFor(err, p.Err()); err != nil {
		return wire.Answer{}, err
	}
	a.Fresh.Webhooks(r.Context())
	list, next, err := a.deliveries.Deliveries(r.Context(), r.Caller.AccountID, project.ID, f)
	return wire.ReplyUnless(err, http.StatusOK, deliveryPage{Deliveries: wire.List(list, deliveryOf), NextCursor: wire.OrNull(next)})
}

// eventNames are the events that a delivery may be of.
func eventNames() []string {
	names := []string{announce.TestName}
	for _, k := range announce.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// wholeDelivery is a delivery with all requests that were sent, and their answers.
type wholeDelivery struct {
	deliveryBody
	ProjectID string            `json:"projectId"`
	Body      string            `json:"body"`    // the exact bytes
	Headers   map[string]string `json:"headers"` // of the latest attempt
	Attempts  []attemptBody     `json:"attempts"`
}

type attemptBody struct {
	At           wire.Timestamp    `json:"at"`
	DurationMS   int               `json:"durationMs"`
	URL          string            `json:"url"`
	StatusCode   *int              `json:"statusCode"`
	Error        *string           `json:"error"` // null: success
	ResponseBody string            `json:"responseBody"`
	Headers      map[string]string `json:"headers"`
}

// getDelivery is GET /v1/projects/:id/deliveries/:deliveryId.
func (a *Handlers) getDelivery(r *wire.Request) (wire.Answer, error) {
	projectID, id, err := a.ownDelivery(r)
	if err != nil {
		return wire.Answer{}, err
	}
	a.Fresh.Webhooks(r.Context())
	w, err := a.deliveries.Delivery(r.Context(), r.Caller.AccountID, projectID, id)
	if err != nil {
		return wire.Answer{}, err
	}
	out := wholeDelivery{
		deliveryBody: deliveryOf(w.Delivery), ProjectID: w.ProjectID, Body: string(w.Body),
		Headers: headersOf(w, webhooks.Attempt{}), Attempts: []attemptBody{},
	}
	for _, at := range w.Attempts {
		out.Headers = headersOf(w, at)
		out.Attempts = append(out.Attempts, attemptBody{
			At: wire.Timestamp(at.At), DurationMS: at.DurationMS, URL: at.URL, StatusCode: statusCode(at.Status.Int64),
			Error: wire.OrNull(at.Error), ResponseBody: at.Response, Headers: out.Headers,
		})
	}
	return wire.Reply(http.StatusOK, out)
}

func headersOf(w webhooks.DeliveryDetail, a webhooks.Attempt) map[string]string {
	sent := map[string]string{}
	for _, h := range w.Headers(a) {
		sent[h.Name] = h.Value
	}
	return sent
}

// knownProject reads the project the path names.
func (a *Handlers) knownProject(r *wire.Request) (projects.Project, error) {
	return own(r, "project", r.Vars["id"], a.Reads.Projects.Get, func(p projects.Project) string { return p.ID })
}

// ownDelivery is the project's and the delivery's id in the path, unless the
// caller must not use them.
func (a *Handlers) ownDelivery(r *wire.Request) (projectID string, id uuid.UUID, err error) {
	project, err := a.knownProject(r)
	id, malformed := uuid.Parse(r.Vars["deliveryId"])
	if malformed != nil {
		malformed = domain.NotFound("delivery")
	}
	return project.ID, id, wire.RefusedFor(err, malformed)
}

// redeliver is POST /v1/projects/:id/deliveries/:deliveryId/redeliver.
func (a *Handlers) redeliver(r *wire.Request) (wire.Answer, error) {
	projectID, id, err := a.ownDelivery(r)
	if err != nil {
		return wire.Answer{}, err
	}
	a.Fresh.Webhooks(r.Context())
	return a.Writer.Write(r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		if err := a.deliveries.Redeliver(ctx, cause.AccountID, projectID, id); err != nil {
			return wire.Answer{}, err
		}
		return a.onItsWay(ctx, cause.AccountID, projectID, id)
	})
}

// onItsWay answers with a delivery that will be sent.
func (a *Handlers) onItsWay(ctx context.Context, accountID, projectID string, id uuid.UUID) (wire.Answer, error) {
	w, err := a.deliveries.Delivery(ctx, accountID, projectID, id)
	return wire.ReplyUnless(err, http.StatusAccepted, deliveryOf(w.Delivery))
}

// testWebhook is POST /v1/projects/:id/webhook/test.
func (a *Handlers) testWebhook(r *wire.Request) (wire.Answer, error) {
	project, err := a.knownProject(r)
	if err != nil {
		return wire.Answer{}, err
	}
	a.Fresh.Webhooks(r.Context())
	return a.Writer.Write(r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		at, err := a.Commands.AccountTime(ctx, cause)
		if err != nil {
			return wire.Answer{}, err
		}
		id, err := a.deliveries.TestOf(ctx, cause.AccountID, project.ID, cause.CommandID, at)
		if err != nil {
			return wire.Answer{}, err
		}
		return a.onItsWay(ctx, cause.AccountID, project.ID, id)
	})
}

type changedDeliveries struct {
	Count int `json:"count"`
}

// replayDeliveries is POST /v1/projects/:id/webhook/replay.
func (a *Handlers) replayDeliveries(r *wire.Request) (wire.Answer, error) {
	return a.changeDeliveries(r, a.deliveries.Replay)
}

// dropDeliveries is POST /v1/projects/:id/webhook/drop.
func (a *Handlers) dropDeliveries(r *wire.Request) (wire.Answer, error) {
	return a.changeDeliveries(r, a.deliveries.Drop)
}

func (a *Handlers) changeDeliveries(
	r *wire.Request, change func(ctx context.Context, accountID, projectID string, c webhooks.Chosen) (int, error),
) (wire.Answer, error) {
	project, err := a.knownProject(r)
	var p wire.Problems
	chosen := input.ChosenDeliveries(r.Object(&p))
	if err := wire.RefusedFor(err, p.Err()); err != nil {
		return wire.Answer{}, err
	}
	a.Fresh.Webhooks(r.Context())
	return a.Writer.Write(r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		n, err := change(ctx, cause.AccountID, project.ID, chosen)
		if err != nil {
			return wire.Answer{}, webhooks.HeardOf(err)
		}
		return wire.Reply(http.StatusAccepted, changedDeliveries{Count: n})
	})
}

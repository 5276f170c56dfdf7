package v1

import (
	"context"
	"net/http"

	"humanqa/domain/command"
	"humanqa/httpapi/input"
	"humanqa/httpapi/report"
	"humanqa/httpapi/wire"
)

type disputesBody struct {
	JobID    string           `json:"jobId"`
	Disputes []report.Dispute `json:"disputes"`
	AsOf     *string          `json:"asOf,omitempty"`
}

// listDisputes is GET /v1/jobs/:id/disputes, the oldest first.
func (a *Handlers) listDisputes(r *wire.Request) (wire.Answer, error) {
	j, _, at, err := a.ownJobThen(r, r.Vars["id"], new(wire.Problems))
	return wire.ReplyUnless(err, http.StatusOK, disputesBody{
		JobID: j.ID, Disputes: wire.List(j.Disputes, report.DisputeOf), AsOf: at.then(),
	})
}

type disputedJob struct {
	JobID string `json:"jobId"`
	report.Dispute
}

// disputeVerdict is POST /v1/jobs/:id/disputes.
func (a *Handlers) disputeVerdict(r *wire.Request) (wire.Answer, error) {
	j, err := a.ownJob(r)
	var p wire.Problems
	r.IdempotencyKey(&p)
	itemID, reason := input.Dispute(r.Object(&p))
	return a.Writer.WriteUnless(wire.RefusedFor(err, p.Err()), r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		d, at, err := a.Commands.DisputeVerdict(ctx, cause, j.ID, itemID, reason)
		if err != nil {
			return wire.Answer{}, err
		}
		return a.Writer.Done(ctx, r, at, err, http.StatusCreated, disputedJob{JobID: j.ID, Dispute: report.DisputeOf(*d)})
	})
}

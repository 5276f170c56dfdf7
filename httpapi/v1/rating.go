package v1

import (
	"context"
	"net/http"

	"humanqa/domain/command"
	"humanqa/httpapi/input"
	"humanqa/httpapi/wire"
)

type ratedJob struct {
	JobID         string  `json:"jobId"`
	CheckerRating int     `json:"checkerRating"`
	Note          *string `json:"note"`
}

// rateJob is POST /v1/jobs/:id/rating. A later rating replaces an earlier one.
func (a *Handlers) rateJob(r *wire.Request) (wire.Answer, error) {
	j, err := a.ownJob(r)
	var p wire.Problems
	o := r.Object(&p)
	rating, note := input.Rating(o)
	return a.Writer.WriteUnless(wire.RefusedFor(err, p.Err()), r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		at, err := a.Commands.RateJob(ctx, cause, j.ID, rating, note)
		return a.Writer.Done(ctx, r, at, err, http.StatusOK, ratedJob{JobID: j.ID, CheckerRating: rating, Note: wire.OrNull(note)})
	})
}

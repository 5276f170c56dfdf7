package httpapi

import (
	"context"
	"net/http"

	"humanqa/domain/command"
)

const (
	minRating = 1
	maxRating = 5
)

type ratedJob struct {
	JobID         string  `json:"jobId"`
	CheckerRating int     `json:"checkerRating"`
	Note          *string `json:"note"`
}

// rateJob is POST /v1/jobs/:id/rating. A later rating replaces an earlier one.
func (a *API) rateJob(r *request) (answer, error) {
	j, err := a.ownJob(r)
	var p problems
	o := r.object(&p)
	rating, note := o.rating("rating"), o.optional("note", maxNote)
	if err := refusedFor(err, p.err()); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		at, err := a.commands.RateJob(ctx, cause, j.ID, rating, note)
		return a.done(ctx, r, at, err, http.StatusOK, ratedJob{JobID: j.ID, CheckerRating: rating, Note: orNull(note)})
	})
}

// rating reads the required number of stars.
func (o object) rating(name string) int {
	n, ok := o.integer(name)
	if o.fields != nil && (!ok || n < minRating || n > maxRating) {
		o.wrong(name, "must be a whole number from %d to %d", minRating, maxRating)
	}
	return n
}

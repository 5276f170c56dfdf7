package httpapi

import (
	"context"
	"net/http"

	"humanqa/domain/command"
)

type retestedJob struct {
	submittedJob
	ParentJobID string `json:"parentJobId"`
}

// retestJob is POST /v1/jobs/:id/retest. It takes no body: what is sent is not
// looked at. The account may no longer test the job's URL.
func (a *API) retestJob(r *request) (answer, error) {
	parent, err := a.ownJob(r)
	var p problems
	r.idempotencyKey(&p)
	object{problems: &p}.target("url", parent.URL, parent.Type)
	if err := refusedFor(err, a.admitted(r, &p)); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		out, err := a.commands.Retest(ctx, cause, parent.ID)
		return a.done(ctx, r, out.Position, err, http.StatusCreated, retestedJob{
			submittedJob: submittedOf(out, parent.TypeEcho, parent.Type, parent.ProjectID), ParentJobID: parent.ID,
		})
	})
}

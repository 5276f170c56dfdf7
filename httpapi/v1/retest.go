package v1

import (
	"context"
	"net/http"

	"humanqa/domain/command"
	"humanqa/httpapi/input"
	"humanqa/httpapi/wire"
)

type retestedJob struct {
	submittedJob
	ParentJobID string `json:"parentJobId"`
}

// retestJob is POST /v1/jobs/:id/retest. It takes no body, and ignores one that is sent.
// It checks the job's URL again, because the account may no longer be allowed to test it.
func (a *Handlers) retestJob(r *wire.Request) (wire.Answer, error) {
	parent, err := a.ownJob(r)
	var p wire.Problems
	r.IdempotencyKey(&p)
	var target input.Target
	if parent.ErasedAt == nil { // the command says that it was erased
		target = input.CheckTarget(&p, "url", parent.URL, parent.Type)
		r.Asked = append(r.Asked, parent.Submission)
	}
	err = wire.RefusedFor(err, a.Limits.Admit(r.Context(), r.Caller, &p, target))
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := a.Commands.Retest(ctx, cause, parent.ID)
		return a.Writer.Done(ctx, r, out.Position, err, http.StatusCreated, retestedJob{
			submittedJob: submittedOf(out, parent.TypeEcho, parent.Type, parent.ProjectID), ParentJobID: parent.ID,
		})
	})
}

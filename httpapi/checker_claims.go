package httpapi

import (
	"context"
	"net/http"

	"humanqa/domain/command"
	"humanqa/domain/job"
)

type untestableBody struct {
	JobID  string     `json:"jobId"`
	Status job.Status `json:"status"` // pending: somebody else has a look; failed: two agree
}

// reportUntestable is POST /v1/checker/jobs/:id/untestable: the checker gives
// the job back and says why nobody can test it.
func (a *API) reportUntestable(r *request) (answer, error) {
	var p problems
	o := parseObject(r.body, &p)
	reason, note := o.required("reason", maxItemText), o.optional("note", maxNote)
	claim, err := claimOf(r, &p)
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		status, at, err := a.commands.ReportUntestable(ctx, cause, claim, reason, note)
		if err != nil {
			return answer{}, err
		}
		a.visible(ctx, r, at)
		return reply(http.StatusOK, untestableBody{JobID: claim.JobID, Status: status})
	})
}

type heartbeatBody struct {
	JobID  string     `json:"jobId"`
	Status job.Status `json:"status"`
	DueAt  timestamp  `json:"dueAt"`
}

// heartbeat is POST /v1/checker/jobs/:id/heartbeat: the claimant is still at
// work. The read models don't show it, so nothing is waited for.
func (a *API) heartbeat(r *request) (answer, error) {
	claim, err := claimOf(r, new(problems))
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		dueAt, _, err := a.commands.Heartbeat(ctx, cause, claim)
		if err != nil {
			return answer{}, err
		}
		return reply(http.StatusOK, heartbeatBody{JobID: claim.JobID, Status: job.Claimed, DueAt: timestamp(dueAt)})
	})
}

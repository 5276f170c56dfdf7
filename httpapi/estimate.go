package httpapi

import (
	"context"
	"net/http"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

type estimateBody struct {
	CreditsRequired            domain.Credits `json:"creditsRequired"`
	CreditsAvailable           domain.Credits `json:"creditsAvailable"`
	CreditsShort               domain.Credits `json:"creditsShort"` // 0 when it suffices
	Sufficient                 bool           `json:"sufficient"`
	EstimatedCompletionMinutes int            `json:"estimatedCompletionMinutes"`
	SLAMinutes                 int            `json:"slaMinutes"`
	JobType                    string         `json:"jobType"`
	JobTypeCode                job.Type       `json:"jobTypeCode"`
	Priority                   string         `json:"priority"`
}

// estimateJob is POST /v1/estimate: what POST /v1/jobs would make of the same
// body. It writes nothing, so a read-only key may ask.
func (a *API) estimateJob(r *request) (answer, error) {
	var p problems
	in := readSubmit(r.object(&p))
	if err := a.admitted(r, &p); err != nil {
		return answer{}, err
	}
	if err := a.place(r, &in, "api"); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		out, err := a.commands.EstimateJob(ctx, cause, in)
		if err != nil {
			return answer{}, err
		}
		return reply(http.StatusOK, estimateBody{
			CreditsRequired: out.CreditsRequired, CreditsAvailable: out.CreditsAvailable,
			CreditsShort: max(0, out.CreditsRequired-out.CreditsAvailable),
			Sufficient:   out.CreditsAvailable >= out.CreditsRequired,

			EstimatedCompletionMinutes: out.EstimatedMinutes, SLAMinutes: out.SLAMinutes,
			JobType: in.TypeEcho, JobTypeCode: in.Type, Priority: priority(in.Urgent),
		})
	})
}

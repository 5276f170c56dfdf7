package v1

import (
	"context"
	"net/http"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/input"
	"humanqa/httpapi/wire"
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

// estimateJob is POST /v1/estimate: the cost and the times of the same body at POST
// /v1/jobs. It writes nothing, so a read-only key may ask.
func (a *Handlers) estimateJob(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	in, target := input.Submit(r.Object(&p))
	if err := a.Limits.Admitted(r, &p, target); err != nil {
		return wire.Answer{}, err
	}
	return a.Writer.WriteUnless(a.place(r, &in, "api"), r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := a.Commands.EstimateJob(ctx, cause, in)
		return wire.ReplyUnless(err, http.StatusOK, estimateBody{
			CreditsRequired: out.CreditsRequired, CreditsAvailable: out.CreditsAvailable,
			CreditsShort: max(0, out.CreditsRequired-out.CreditsAvailable),
			Sufficient:   out.CreditsAvailable >= out.CreditsRequired,

			EstimatedCompletionMinutes: out.EstimatedMinutes, SLAMinutes: out.SLAMinutes,
			JobType: in.TypeEcho, JobTypeCode: in.Type, Priority: wire.Priority(in.Urgent),
		})
	})
}

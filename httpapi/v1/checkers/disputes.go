package checkers

import (
	"context"
	"net/http"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/input"
	"humanqa/httpapi/report"
	"humanqa/httpapi/wire"
)

type contestedJob struct {
	JobID string `json:"jobId"`
	Title string `json:"title"`
	report.Dispute
}

type contestedBody struct {
	Disputes []contestedJob `json:"disputes"`
}

// openDisputes is GET /v1/checker/disputes: the disputes that the checker may answer.
func (a *Handlers) openDisputes(r *wire.Request) (wire.Answer, error) {
	body := contestedBody{Disputes: []contestedJob{}}
	contested, err := a.Reads.Jobs.Contested(r.Context(), r.Caller.CheckerID, a.Now())
	for _, w := range contested {
		for _, d := range w.ToAnswer(a.Now()) {
			body.Disputes = append(body.Disputes, contestedJob{w.JobID, w.Title, report.DisputeOf(d)})
		}
	}
	return wire.ReplyUnless(err, http.StatusOK, body)
}

type answeredDispute struct {
	JobID string `json:"jobId"`
	report.Dispute
}

// answerDispute is POST /v1/checker/jobs/:id/disputes/:disputeId/answer.
func (a *Handlers) answerDispute(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	text := input.DisputeAnswer(r.Object(&p))
	jobID, disputeID := r.Vars["id"], r.Vars["disputeId"]
	err := p.Err()
	if err == nil && !wire.IDPattern.MatchString(jobID) {
		err = domain.NotFound("job")
	}
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		claim := command.Claim{CheckerID: r.Caller.CheckerID, JobID: jobID}
		d, at, err := a.Commands.AnswerDispute(ctx, cause, claim, disputeID, text)
		if err != nil {
			return wire.Answer{}, err
		}
		return a.Writer.Done(ctx, r, at, err, http.StatusOK, answeredDispute{jobID, report.DisputeOf(*d)})
	})
}

package v1

import (
	"context"
	"net/http"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/input"
	"humanqa/httpapi/report"
	"humanqa/httpapi/wire"
)

type questionsBody struct {
	JobID     string            `json:"jobId"`
	Questions []report.Question `json:"questions"`
	AsOf      *string           `json:"asOf,omitempty"`
}

// listQuestions is GET /v1/jobs/:id/questions, the oldest first.
func (a *Handlers) listQuestions(r *wire.Request) (wire.Answer, error) {
	j, _, at, err := a.ownJobThen(r, r.Vars["id"], new(wire.Problems))
	return wire.ReplyUnless(err, http.StatusOK, questionsBody{
		JobID: j.ID, Questions: wire.List(j.Questions, report.QuestionOf), AsOf: at.then(),
	})
}

type answeredQuestion struct {
	JobID string `json:"jobId"`
	report.Question
}

// answerQuestion is POST /v1/jobs/:id/questions/:questionId/answer.
func (a *Handlers) answerQuestion(r *wire.Request) (wire.Answer, error) {
	j, err := a.ownJob(r)
	var p wire.Problems
	o := r.Object(&p)
	r.IdempotencyKey(&p)
	in := input.Answer(o, r.Vars["questionId"])
	if err == nil && !wire.IDPattern.MatchString(in.QuestionID) {
		err = domain.NotFound("question")
	}
	return a.Writer.WriteUnless(wire.RefusedFor(err, p.Err()), r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		q, at, err := a.Commands.AnswerQuestion(ctx, cause, j.ID, in)
		return a.Writer.Done(ctx, r, at, err, http.StatusOK, answeredQuestion{JobID: j.ID, Question: report.QuestionOf(q)})
	})
}

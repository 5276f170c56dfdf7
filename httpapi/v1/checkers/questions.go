package checkers

import (
	"context"
	"net/http"

	"humanqa/domain/command"
	"humanqa/httpapi/input"
	"humanqa/httpapi/report"
	"humanqa/httpapi/wire"
)

// toldQuestion is a question as its claimant sees it: with the secret of its answer.
type toldQuestion struct {
	report.Question
	Secret *string `json:"secret"`
}

func toldOf(q command.ToldQuestion) toldQuestion {
	return toldQuestion{Question: report.QuestionOf(q.Question), Secret: wire.OrNull(q.Secret)}
}

type askedQuestion struct {
	JobID      string         `json:"jobId"`
	QuestionID string         `json:"questionId"`
	Until      wire.Timestamp `json:"until"`
}

// askQuestion is POST /v1/checker/jobs/:id/questions. The clocks of the job stand until
// the answer, or until the question's time is over.
func (a *Handlers) askQuestion(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	o := r.Object(&p)
	r.IdempotencyKey(&p)
	in := input.Question(o)
	claim, err := claimOf(r, &p)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		q, at, err := a.Commands.AskQuestion(ctx, cause, claim, in)
		asked := askedQuestion{JobID: claim.JobID, QuestionID: q.ID, Until: wire.Timestamp(q.Until)}
		return a.Writer.Done(ctx, r, at, err, http.StatusCreated, asked)
	})
}

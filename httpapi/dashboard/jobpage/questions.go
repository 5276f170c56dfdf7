package jobpage

import (
	"errors"

	"humanqa/domain"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/projections/jobs"
)

// answer answers a checker's question. Only the checker sees the secret again.
func (d Deps) answer(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	form := ui.Form(r, map[string]string{"text": "text", "secret": "secret"})
	in, err := input.Answer(form, r.PathValue("question")), form.Problems.Err()
	var at domain.Position
	if err == nil {
		_, at, err = d.Commands.AnswerQuestion(r.Context(), r.Cause(), j.ID, in)
	}
	var refused *domain.Error
	if !errors.As(err, &refused) || refused.Kind != domain.KindConflict {
		return r.Done(at, err, "/dashboard/jobs/"+j.ID+"#questions")
	}
	v, errView := d.jobPage(r) // it has no form any more
	v.Errors = []string{ui.Sentence(refused.Message) + " " + ui.Sentence(refused.Hint)}
	return ui.Answer{Template: "job", Title: v.Title, View: v, Status: 422}, errView
}

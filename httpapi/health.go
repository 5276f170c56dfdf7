package httpapi

import (
	"context"
	"net/http"
	"time"

	"humanqa/domain"
)

// readyTime bounds the look at every part: a part that hangs is not ready.
const readyTime = 5 * time.Second

type healthBody struct {
	Status string `json:"status"`
}

// healthz is GET /healthz: the process answers.
func (a *API) healthz(*request) (answer, error) {
	return reply(http.StatusOK, healthBody{Status: "ok"})
}

// readyz is GET /readyz: log, Postgres and projections are there and caught
// up; else 503 with every reason.
func (a *API) readyz(r *request) (answer, error) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTime)
	defer cancel()
	if problems := a.ready(ctx); len(problems) > 0 {
		return answer{}, (&domain.Error{
			Kind: domain.KindUnavailable, Code: domain.CodeUnavailable,
			Message: problems[0].Part + ": " + problems[0].Reason,
		}).With("problems", problems)
	}
	return reply(http.StatusOK, healthBody{Status: "ready"})
}

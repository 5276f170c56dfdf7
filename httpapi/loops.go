package httpapi

import "humanqa/domain"

// getLoop is GET /v1/loop-sessions/:id.
func (a *API) getLoop(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

// finalizeLoop is POST /v1/loop-sessions/:id/finalize.
func (a *API) finalizeLoop(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

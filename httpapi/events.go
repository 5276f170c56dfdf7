package httpapi

import "humanqa/domain"

// jobEvents is GET /v1/jobs/:id/events.
func (a *API) jobEvents(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

// accountEvents is GET /v1/events.
func (a *API) accountEvents(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

package httpapi

import "humanqa/domain"

// projectHistory is GET /v1/projects/:id/history.
func (a *API) projectHistory(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

// openFailures is GET /v1/projects/:id/open-failures.
func (a *API) openFailures(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

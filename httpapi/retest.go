package httpapi

import "humanqa/domain"

// retestJob is POST /v1/jobs/:id/retest.
func (a *API) retestJob(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

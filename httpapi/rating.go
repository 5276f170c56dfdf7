package httpapi

import "humanqa/domain"

// rateJob is POST /v1/jobs/:id/rating.
func (a *API) rateJob(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

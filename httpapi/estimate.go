package httpapi

import "humanqa/domain"

// estimateJob is POST /v1/estimate.
func (a *API) estimateJob(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

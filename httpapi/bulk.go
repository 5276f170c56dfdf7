package httpapi

import "humanqa/domain"

// submitBulk is POST /v1/jobs/bulk.
func (a *API) submitBulk(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

// getBatch is GET /v1/jobs/bulk/:batchId.
func (a *API) getBatch(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

// getBatchReport is GET /v1/jobs/bulk/:batchId/report.
func (a *API) getBatchReport(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

package httpapi

import "humanqa/domain"

// reportUntestable is POST /v1/checker/jobs/:id/untestable.
func (a *API) reportUntestable(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

// heartbeat is POST /v1/checker/jobs/:id/heartbeat.
func (a *API) heartbeat(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

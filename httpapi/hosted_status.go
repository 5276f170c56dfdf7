package httpapi

import "humanqa/domain"

// hostedStatus is GET /v1/hosted/status/:jobId.
func (a *API) hostedStatus(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

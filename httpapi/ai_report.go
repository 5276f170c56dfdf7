package httpapi

import "humanqa/domain"

// getAIReport is GET /v1/jobs/:id/ai-report.
func (a *API) getAIReport(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

package httpapi

import "humanqa/domain"

// deployHook is POST /v1/hooks/deploy/:token.
func (a *API) deployHook(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

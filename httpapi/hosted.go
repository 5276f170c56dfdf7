package httpapi

import "humanqa/domain"

// testHosted is POST /v1/hosted/test.
func (a *API) testHosted(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

// prepareNext is POST /v1/hosted/prepare-next.
func (a *API) prepareNext(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

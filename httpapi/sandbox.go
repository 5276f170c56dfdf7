package httpapi

import "humanqa/domain"

// advanceClock is POST /v1/sandbox/clock/advance.
func (a *API) advanceClock(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

// playJob is POST /v1/sandbox/jobs/:id/play.
func (a *API) playJob(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

package httpapi

import "humanqa/domain"

// createSession is POST /v1/hosted/sessions.
func (a *API) createSession(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

// listSessions is GET /v1/hosted/sessions.
func (a *API) listSessions(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

// getSession is GET /v1/hosted/sessions/:id.
func (a *API) getSession(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

// cancelSession is POST /v1/hosted/sessions/:id/cancel.
func (a *API) cancelSession(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

// sessionReady is POST /v1/checker/sessions/:id/ready.
func (a *API) sessionReady(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

// sessionLeave is POST /v1/checker/sessions/:id/leave.
func (a *API) sessionLeave(*request) (answer, error) {
	return answer{}, domain.Unavailable(nil)
}

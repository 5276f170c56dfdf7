package httpapi

import (
	"humanqa/httpapi/wire"
)

// getEvidence is GET /v1/evidence/:id. The signature in the query is the whole
// credential.
func (a *API) getEvidence(r *wire.Request) (wire.Answer, error) {
	return a.Evidence.Answer(r, r.Vars["id"])
}

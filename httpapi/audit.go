package httpapi

import (
	"net/http"

	"humanqa/domain"
)

// auditKeyHeader names the key that a checkpoint is verified by.
const auditKeyHeader = "X-Audit-Key"

// getCheckpoint is GET /v1/audit/checkpoint: a signed note, byte for byte, for
// whoever wants to keep one.
func (a *API) getCheckpoint(r *request) (answer, error) {
	note, verifier, err := a.checkpoint(r.Context())
	if err != nil {
		return answer{}, err
	}
	if note == "" {
		return answer{}, domain.NotFound("checkpoint").WithHint("the first one is signed within a minute of the first event")
	}
	return answer{
		status: http.StatusOK,
		header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}, auditKeyHeader: {verifier}},
		body:   []byte(note),
	}, nil
}

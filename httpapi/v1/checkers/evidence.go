package checkers

import (
	"context"
	"net/http"

	"humanqa/domain/command"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/wire"
)

type evidenceBody struct {
	URL         string `json:"url"`
	ContentType string `json:"contentType"`
	Size        int64  `json:"size"`
}

// uploadEvidence is POST /v1/checker/jobs/:id/evidence. The body is there by then, a
// large one on the disk, so that any number of uploads at once takes bounded memory.
func (a *Handlers) uploadEvidence(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	upload, err := evidence.ReadUpload(r, &p)
	if err != nil {
		return wire.Answer{}, err
	}
	claim, err := claimOf(r, &p)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		e, err := a.Evidence.Collect(ctx, r, cause, claim, upload)
		if err != nil {
			return wire.Answer{}, err
		}
		link, err := a.Evidence.Link(ctx, e.AccountID, e.Reference())
		return wire.ReplyUnless(err, http.StatusCreated, evidenceBody{URL: link, ContentType: e.ContentType, Size: e.Size})
	})
}

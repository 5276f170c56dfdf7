package checkers

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"humanqa/domain/command"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/wire"
)

const UploadOffsetHeader = "Upload-Offset"

// recordingAnswer shows a recording, and its offset in a header, too.
func recordingAnswer(err error, status int, r evidence.Recording) (wire.Answer, error) {
	ans, err := wire.ReplyUnless(err, status, r)
	ans.Header = http.Header{UploadOffsetHeader: {strconv.FormatInt(r.Offset, 10)}}
	return ans, err
}

// createRecording is POST /v1/checker/jobs/:id/recordings.
func (a *Handlers) createRecording(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	o := r.OptionalObject(&p)
	ago, given := o.Integer("startedMsAgo")
	if given && (ago < 0 || ago > evidence.MaxStartedAgo) {
		o.Wrong("startedMsAgo", "must be 0 to %d", evidence.MaxStartedAgo)
	}
	r.IdempotencyKey(&p)
	claim, err := claimOf(r, &p)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := a.Evidence.BeginRecording(ctx, cause, claim, time.Duration(ago)*time.Millisecond)
		return recordingAnswer(err, http.StatusCreated, out)
	})
}

// appendRecording is PATCH /v1/checker/jobs/:id/recordings/:recordingId.
func (a *Handlers) appendRecording(r *wire.Request) (wire.Answer, error) {
	if r.Upload.Size > evidence.MaxRecordingPart {
		return wire.Answer{}, evidence.ErrPartTooLarge
	}
	var p wire.Problems
	offset, err := strconv.ParseInt(r.Header.Get(UploadOffsetHeader), 10, 64)
	if err != nil || offset < 0 {
		p.Add(UploadOffsetHeader, "must be where in the recording the part goes, in bytes")
	}
	claim, err := claimOf(r, &p)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := a.Evidence.AppendPart(ctx, cause, claim, r.Vars["recordingId"], offset, r.Upload)
		return recordingAnswer(err, http.StatusOK, out)
	})
}

// getRecording is GET and HEAD /v1/checker/jobs/:id/recordings/:recordingId: the
// recording and its offset. It changes nothing, so it shows a recording of a stale claim,
// too.
func (a *Handlers) getRecording(r *wire.Request) (wire.Answer, error) {
	out, err := a.Evidence.RecordingOf(r.Context(), r.Caller.CheckerID, r.Vars["id"], r.Vars["recordingId"])
	return recordingAnswer(err, http.StatusOK, out)
}

// finishRecording is POST /v1/checker/jobs/:id/recordings/:recordingId/finish.
func (a *Handlers) finishRecording(r *wire.Request) (wire.Answer, error) {
	claim, err := claimOf(r, new(wire.Problems))
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := a.Evidence.FinishRecording(ctx, cause, claim, r.Vars["recordingId"])
		return recordingAnswer(err, http.StatusOK, out)
	})
}

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/internal/blob"
)

// Recordings: films of a test that are sent while it is under way (decisions,
// "Recordings").

const (
	uploadOffsetHeader = "Upload-Offset"
	// maxRecordingPart bounds one request, in bytes.
	maxRecordingPart = 8 << 20
	// DefaultRecordingLimit is how much one checker may record of one job, in bytes.
	DefaultRecordingLimit = 1 << 30
	// maxStartedAgo, in milliseconds, is a day: no claim lives longer.
	maxStartedAgo = 86_400_000
)

// Recording is a recording as its checker sees it.
type Recording struct {
	ID     string `json:"recordingId"`
	JobID  string `json:"jobId"`
	Status string `json:"status"` // open, finished, attached
	// Offset is how many bytes are there, for good.
	Offset    int64     `json:"offset"`
	PartLimit int64     `json:"partLimit"` // bytes of one request
	Limit     int64     `json:"limit"`     // bytes of all the checker's recordings of the job
	StartedAt timestamp `json:"startedAt"`
}

func (a *API) shownRecording(row recordingRow) Recording {
	r := Recording{
		ID: row.ID, JobID: row.JobID, Status: "open", Offset: row.Size,
		PartLimit: maxRecordingPart, Limit: a.recordingLimit, StartedAt: timestamp(row.StartedAt),
	}
	switch {
	case row.Attached:
		r.Status = "attached"
	case row.Finished:
		r.Status = "finished"
	}
	return r
}

// recordingAnswer says where the recording stands, in a header too.
func recordingAnswer(status int, r Recording) (answer, error) {
	ans, err := reply(status, r)
	ans.header = http.Header{uploadOffsetHeader: {strconv.FormatInt(r.Offset, 10)}}
	return ans, err
}

// createRecording is POST /v1/checker/jobs/:id/recordings.
func (a *API) createRecording(r *request) (answer, error) {
	var p problems
	o := r.optionalObject(&p)
	ago, given := o.integer("startedMsAgo")
	if given && (ago < 0 || ago > maxStartedAgo) {
		o.wrong("startedMsAgo", "must be 0 to %d", maxStartedAgo)
	}
	r.idempotencyKey(&p)
	claim, err := claimOf(r, &p)
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		out, err := a.BeginRecording(ctx, cause, claim, time.Duration(ago)*time.Millisecond)
		if err != nil {
			return answer{}, err
		}
		return recordingAnswer(http.StatusCreated, out)
	})
}

// BeginRecording begins a recording of the claimed job, whose first frame was
// taken so long ago.
func (a *API) BeginRecording(ctx context.Context, cause command.Cause, claim command.Claim, ago time.Duration) (Recording, error) {
	accountID, err := a.commands.Record(ctx, cause, claim)
	if err != nil {
		return Recording{}, err
	}
	id := domain.DeriveID(cause.CommandID, "recording")
	row, err := a.recordings.begin(ctx, id, accountID, claim, a.now().Add(-max(0, min(ago, maxStartedAgo*time.Millisecond))))
	return a.shownRecording(row), err
}

// appendRecording is PATCH /v1/checker/jobs/:id/recordings/:recordingId.
func (a *API) appendRecording(r *request) (answer, error) {
	if r.came.size > maxRecordingPart {
		return answer{}, errPartTooLarge
	}
	var p problems
	offset, err := strconv.ParseInt(r.Header.Get(uploadOffsetHeader), 10, 64)
	if err != nil || offset < 0 {
		p.add(uploadOffsetHeader, "must be where in the recording the part goes, in bytes")
	}
	claim, err := claimOf(r, &p)
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		out, err := a.grow(ctx, cause, claim, r.vars["recordingId"], offset, r.came)
		if err != nil {
			return answer{}, err
		}
		return recordingAnswer(http.StatusOK, out)
	})
}

var errPartTooLarge = &domain.Error{
	Kind: domain.KindTooLarge, Code: domain.CodePayloadTooLarge,
	Message: "the part is larger than 8 MB", Hint: "send the recording in smaller parts",
}

// AppendRecording takes the body of a request as the recording's next part.
func (a *API) AppendRecording(
	w http.ResponseWriter, hr *http.Request, cause command.Cause, claim command.Claim, id string, offset int64,
) (Recording, error) {
	came, err := a.spool.readBody(w, hr, caller{actor: cause.Actor, checkerID: claim.CheckerID})
	if err != nil {
		return Recording{}, err
	}
	defer came.close()
	if came.size > maxRecordingPart {
		return Recording{}, errPartTooLarge
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(hr.Context()), commandTime)
	defer cancel()
	return a.grow(ctx, cause, claim, id, offset, came)
}

// grow appends a part. What it answers stays: the file is there, and the row that
// says so is on the disk. A crash before that leaves a part that the sweep removes.
func (a *API) grow(ctx context.Context, cause command.Cause, claim command.Claim, id string, offset int64, came *body) (Recording, error) {
	if _, err := a.commands.Record(ctx, cause, claim); err != nil {
		return Recording{}, err
	}
	row, err := a.claimed(ctx, claim, id)
	switch {
	case err != nil:
		return Recording{}, err
	case row.Finished || offset != row.Size:
		return Recording{}, isGone(row)
	case came.size == 0:
		return a.shownRecording(row), a.recordings.again(ctx, row, recordingSilence)
	}
	if row.Parts >= maxRecordingParts {
		return Recording{}, domain.Conflict("the recording has %d parts, the most it holds", maxRecordingParts).
			WithHint("finish it, begin another, and send larger parts")
	}
	if err := a.roomFor(came.size); err != nil {
		return Recording{}, err
	}
	if row.ContentType == "" {
		if row.ContentType, err = filmed(came); err != nil {
			return Recording{}, err
		}
	}
	part, err := a.recordings.reserve(ctx, row, came.size, a.recordingLimit)
	if err != nil {
		return Recording{}, err
	}
	about := map[string]string{"account": row.AccountID, "job": row.JobID, "checker": row.CheckerID, "recording": row.ID}
	if err := a.evidenceFiles.Write(ctx, part.key(), row.ContentType, about, came.open()); err != nil {
		a.discard(ctx, part)
		return Recording{}, domain.Unavailable(err)
	}
	grown, err := a.recordings.grow(ctx, part, row.ContentType)
	if err != nil {
		return Recording{}, err // it may be the recording's all the same
	}
	if !grown {
		a.discard(ctx, part)
	}
	if row, err = a.claimed(ctx, claim, id); err == nil && !grown {
		err = isGone(row)
	}
	return a.shownRecording(row), err
}

// claimed finds a recording that was begun under the claim.
func (a *API) claimed(ctx context.Context, claim command.Claim, id string) (recordingRow, error) {
	row, err := getRecording(ctx, a.recordings.db, claim.CheckerID, claim.JobID, id)
	if err == nil && !row.of(claim) {
		err = errNoRecording
	}
	return row, err
}

// discard removes a part that is not the recording's, at once: who sends the same
// part again and again fills no disk.
func (a *API) discard(ctx context.Context, part partRow) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTime) // ctx may be what ended
	defer cancel()
	if err := discardPart(ctx, a.recordings.db, a.evidenceFiles, part); err != nil {
		a.log.WithError(err).WithField("recording", part.RecordingID).Warn("a part that is not the recording's stays until the sweep")
	}
}

const (
	// keptFree is what recordings leave free of evidence's disk, in bytes: a
	// twentieth of it, and at most so much. The log, the read models and pictures
	// can then go on.
	keptFree = 1 << 30
	// retryAfterFull is what a client is told to wait, in seconds, for room.
	retryAfterFull = 60
)

// roomFor refuses what would take the last of the disk.
func (a *API) roomFor(more int64) error {
	free, total, err := a.evidenceFiles.Room()
	if err != nil {
		return domain.Unavailable(err)
	}
	if total == 0 || free-more >= min(keptFree, total/20) {
		return nil
	}
	return retryAfter(&domain.Error{
		Kind: domain.KindUnavailable, Code: domain.CodeUnavailable,
		Message: "the service's disk is nearly full: it takes no recordings for now",
		Hint:    "keep the part and send it again later; everything else goes on",
		Cause:   fmt.Errorf("%d of %d bytes are free where evidence is kept", free, total),
	}, retryAfterFull)
}

// filmed is what a recording is, by how it begins.
func filmed(came *body) (contentType string, err error) {
	head := make([]byte, blob.SniffLength)
	n, err := io.ReadFull(came.open(), head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	kind, known := blob.KindOf(head[:n])
	if !known || !kind.Video {
		return "", domain.Invalid(domain.Detail{Path: bodyPath, Message: "must begin as a WebM or MP4 file does"})
	}
	return kind.Media, nil
}

// getRecording is GET and HEAD /v1/checker/jobs/:id/recordings/:recordingId: how
// much is there. It changes nothing, so that a stale claim's can be asked for, too.
func (a *API) getRecording(r *request) (answer, error) {
	out, err := a.RecordingOf(r.Context(), r.caller.checkerID, r.vars["id"], r.vars["recordingId"])
	if err != nil {
		return answer{}, err
	}
	return recordingAnswer(http.StatusOK, out)
}

// RecordingOf says where a recording of the checker stands.
func (a *API) RecordingOf(ctx context.Context, checkerID, jobID, id string) (Recording, error) {
	row, err := getRecording(ctx, a.recordings.db, checkerID, jobID, id)
	return a.shownRecording(row), err
}

// finishRecording is POST /v1/checker/jobs/:id/recordings/:recordingId/finish.
func (a *API) finishRecording(r *request) (answer, error) {
	claim, err := claimOf(r, new(problems))
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		out, err := a.FinishRecording(ctx, cause, claim, r.vars["recordingId"])
		if err != nil {
			return answer{}, err
		}
		return recordingAnswer(http.StatusOK, out)
	})
}

// FinishRecording ends a recording. It becomes the job's a moment later. One that
// has ended is a repeat.
func (a *API) FinishRecording(ctx context.Context, cause command.Cause, claim command.Claim, id string) (Recording, error) {
	if _, err := a.commands.Record(ctx, cause, claim); err != nil {
		return Recording{}, err
	}
	row, err := a.claimed(ctx, claim, id)
	if err != nil || row.Finished {
		return a.shownRecording(row), err
	}
	if err := a.recordings.finish(ctx, row); err != nil {
		return Recording{}, err
	}
	select {
	case a.recorded <- struct{}{}:
	default: // somebody was told already
	}
	row.Finished = true
	return a.shownRecording(row), nil
}

package evidence

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/wire"
	"humanqa/internal/blob"
	"humanqa/internal/tracing"
)

// Recordings: films of a test that are sent while it is under way (decisions,
// "Recordings").

const (
	// MaxRecordingPart bounds one request, in bytes.
	MaxRecordingPart = 8 << 20
	// DefaultRecordingLimit is how much one checker may record of one job, in bytes.
	DefaultRecordingLimit = 1 << 30
	// MaxStartedAgo, in milliseconds, is a day: no claim lives longer.
	MaxStartedAgo = 86_400_000
)

// Recording is a recording as its checker sees it.
type Recording struct {
	ID     string `json:"recordingId"`
	JobID  string `json:"jobId"`
	Status string `json:"status"` // open, finished, attached
	// Offset is the number of bytes that are stored for good.
	Offset    int64          `json:"offset"`
	PartLimit int64          `json:"partLimit"` // bytes of one request
	Limit     int64          `json:"limit"`     // bytes of all the checker's recordings of the job
	StartedAt wire.Timestamp `json:"startedAt"`
}

func (s *Service) shownRecording(row recordingRow) Recording {
	r := Recording{
		ID: row.ID, JobID: row.JobID, Status: "open", Offset: row.Size,
		PartLimit: MaxRecordingPart, Limit: s.RecordingLimit, StartedAt: wire.Timestamp(row.StartedAt),
	}
	switch {
	case row.Attached:
		r.Status = "attached"
	case row.Finished:
		r.Status = "finished"
	}
	return r
}

// BeginRecording begins a recording of the claimed job; ago is the time since its first
// frame.
func (s *Service) BeginRecording(ctx context.Context, cause command.Cause, claim command.Claim, ago time.Duration) (Recording, error) {
	accountID, err := s.Commands.Record(ctx, cause, claim)
	if err != nil {
		return Recording{}, err
	}
	id := domain.DeriveID(cause.CommandID, "recording")
	row, err := s.recordings.begin(ctx, id, accountID, claim, s.Now().Add(-max(0, min(ago, MaxStartedAgo*time.Millisecond))))
	return s.shownRecording(row), err
}

// ErrPartTooLarge refuses a part of more than MaxRecordingPart.
var ErrPartTooLarge = &domain.Error{
	Kind: domain.KindTooLarge, Code: domain.CodePayloadTooLarge,
	Message: "the part is larger than 8 MB", Hint: "send the recording in smaller parts",
}

// AppendRequest takes the body of a request as the recording's next part.
func (s *Service) AppendRequest(
	w http.ResponseWriter, hr *http.Request, cause command.Cause, claim command.Claim, id string, offset int64,
) (Recording, error) {
	came, err := s.Spool.ReadBody(w, hr, wire.Caller{Actor: cause.Actor, CheckerID: claim.CheckerID})
	if err != nil {
		return Recording{}, err
	}
	defer came.Close()
	if came.Size > MaxRecordingPart {
		return Recording{}, ErrPartTooLarge
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(hr.Context()), s.WriteTime)
	defer cancel()
	return s.AppendPart(ctx, cause, claim, id, offset, came)
}

// AppendPart appends a part. A part that it acknowledges stays: the file is there, and
// the row that says so is on the disk. A crash before that leaves a part that the sweep
// removes.
func (s *Service) AppendPart(
	ctx context.Context, cause command.Cause, claim command.Claim, id string, offset int64, came *wire.Body,
) (Recording, error) {
	if _, err := s.Commands.Record(ctx, cause, claim); err != nil {
		return Recording{}, err
	}
	row, err := s.claimed(ctx, claim, id)
	switch {
	case err != nil:
		return Recording{}, err
	case row.Finished || offset != row.Size:
		return Recording{}, isGone(row)
	case came.Size == 0:
		return s.shownRecording(row), s.recordings.again(ctx, row, recordingSilence)
	}
	if row.Parts >= maxRecordingParts {
		return Recording{}, domain.Conflict("the recording has %d parts, the most it holds", maxRecordingParts).
			WithHint("finish it, begin another, and send larger parts")
	}
	if err := s.roomFor(came.Size); err != nil {
		return Recording{}, err
	}
	if row.ContentType == "" {
		if row.ContentType, err = filmed(came); err != nil {
			return Recording{}, err
		}
	}
	part, err := s.recordings.reserve(ctx, row, came.Size, s.RecordingLimit)
	if err != nil {
		return Recording{}, err
	}
	about := map[string]string{"account": row.AccountID, "job": row.JobID, "checker": row.CheckerID, "recording": row.ID}
	if err := s.writeFile(ctx, part.key(), row.ContentType, about, came.Open()); err != nil {
		s.discard(ctx, part)
		return Recording{}, domain.Unavailable(err)
	}
	grown, err := s.recordings.grow(ctx, part, row.ContentType)
	if err != nil {
		return Recording{}, err // the part may be the recording's all the same
	}
	if !grown {
		s.discard(ctx, part)
	}
	if row, err = s.claimed(ctx, claim, id); err == nil && !grown {
		err = isGone(row)
	}
	return s.shownRecording(row), err
}

// claimed finds a recording that was begun under the claim.
func (s *Service) claimed(ctx context.Context, claim command.Claim, id string) (recordingRow, error) {
	row, err := getRecording(ctx, s.DB, claim.CheckerID, claim.JobID, id)
	if err == nil && !row.of(claim) {
		err = errNoRecording
	}
	return row, err
}

// discard removes a part that is not the recording's, at once, so that the same part,
// sent again and again, does not fill the disk.
func (s *Service) discard(ctx context.Context, part partRow) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.WriteTime) // ctx may have ended
	defer cancel()
	if err := discard(ctx, s.DB, s.Files, part.Piece, forgetPartSQL); err != nil {
		log := tracing.Log(ctx, s.Log).WithError(err).WithField("recording", part.RecordingID)
		log.Warn("a part that is not the recording's stays until the sweep")
	}
}

// filmed is the media type of a recording, by its first bytes.
func filmed(came *wire.Body) (contentType string, err error) {
	head := make([]byte, blob.SniffLength)
	n, err := io.ReadFull(came.Open(), head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	kind, known := blob.KindOf(head[:n])
	if !known || !kind.Video {
		return "", domain.Invalid(domain.Detail{Path: wire.BodyPath, Message: "must begin as a WebM or MP4 file does"})
	}
	return kind.Media, nil
}

// RecordingOf shows a recording of the checker.
func (s *Service) RecordingOf(ctx context.Context, checkerID, jobID, id string) (Recording, error) {
	row, err := getRecording(ctx, s.DB, checkerID, jobID, id)
	return s.shownRecording(row), err
}

// FinishRecording ends a recording. It becomes the job's a moment later. To finish one
// that has ended is a repeat.
func (s *Service) FinishRecording(ctx context.Context, cause command.Cause, claim command.Claim, id string) (Recording, error) {
	if _, err := s.Commands.Record(ctx, cause, claim); err != nil {
		return Recording{}, err
	}
	row, err := s.claimed(ctx, claim, id)
	if err != nil || row.Finished {
		return s.shownRecording(row), err
	}
	if err := s.recordings.finish(ctx, row); err != nil {
		return Recording{}, err
	}
	select {
	case s.finished <- struct{}{}:
	default: // it was told already
	}
	row.Finished = true
	return s.shownRecording(row), nil
}

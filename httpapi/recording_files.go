package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/webm"
)

const (
	// recordingsEvery is how often the service looks for recordings that ended
	// without anybody saying so.
	recordingsEvery = 15 * time.Second
	// recordingAgain, in seconds, is when it looks again at one that goes on.
	recordingAgain = 60
	// assembleTime bounds the making of one file; the lease is longer.
	assembleTime = (assembleLease - 60) * time.Second
)

// runRecordings makes files of recordings that are finished, one at a time, until
// ctx ends.
func (a *API) runRecordings(ctx context.Context) {
	tick := time.NewTicker(recordingsEvery)
	defer tick.Stop()
	for {
		for a.nextRecording(ctx) {
		}
		select {
		case <-ctx.Done():
			return
		case <-a.recorded:
		case <-tick.C:
		}
	}
}

// nextRecording looks after one recording that is due; false when there is none.
// What fails is tried again after a while.
func (a *API) nextRecording(ctx context.Context) bool {
	row, found, err := a.recordings.take(ctx)
	if err == nil && found {
		err = a.lookAfter(ctx, row)
	}
	if err != nil && found {
		err = errors.Join(err, a.recordings.again(ctx, row, recordingAgain))
	}
	if err != nil && ctx.Err() == nil {
		a.log.WithError(err).WithField("recording", row.ID).Warn("a recording stays as it is for now")
	}
	return found && err == nil
}

// lookAfter finishes a recording to which nothing can come any more, and makes the
// file of one that is finished.
func (a *API) lookAfter(ctx context.Context, row recordingRow) error {
	erased, err := a.recordings.erased(ctx, row)
	switch {
	case err != nil:
		return err
	case erased:
		return a.eraseRecording(ctx, row)
	}
	if !row.Finished {
		alive, err := a.commands.HoldsClaim(ctx, row.claim())
		switch {
		case err != nil:
			return err
		case alive:
			return a.recordings.again(ctx, row, recordingAgain)
		}
		// The next look sees all that came before this.
		return a.recordings.finish(ctx, row)
	}
	ctx, cancel := context.WithTimeout(ctx, assembleTime)
	defer cancel()
	if row.Size == 0 {
		return a.recordings.attached(ctx, row) // there is nothing to see
	}
	if err := a.roomFor(row.Size); err != nil {
		return err
	}
	size, lasts, err := a.assemble(ctx, row)
	if err != nil {
		return fmt.Errorf("assemble recording %s: %w", row.ID, err)
	}
	switch kept, err := a.recordings.keep(ctx, row, size); {
	case err != nil:
		return err
	case !kept: // erased meanwhile
		return a.eraseRecording(ctx, row)
	}
	// The same command however often it is tried.
	cause := command.Cause{
		CommandID: domain.CommandIDFor("attach recording", row.ID), Actor: "policy:recordings", AccountID: row.AccountID,
	}
	_, err = a.commands.AttachRecording(ctx, cause, row.JobID, job.Recording{
		ID: row.ID, Token: row.ClaimToken, URL: evidencePath + row.ID, ContentType: row.ContentType, Size: size,
		StartedAt: row.StartedAt.UTC(), DurationMs: lasts.Milliseconds(),
	})
	if err != nil {
		return err
	}
	return a.recordings.attached(ctx, row)
}

// eraseRecording removes what may be there of a recording whose account was erased.
func (a *API) eraseRecording(ctx context.Context, row recordingRow) error {
	if err := a.evidenceFiles.Delete(ctx, row.evidence().key()); err != nil {
		return err
	}
	return a.recordings.forget(ctx, row)
}

// assemble makes one file of the parts, seekable if they are WebM; lasts is 0
// where that is not known. Made again, it is the same.
func (a *API) assemble(ctx context.Context, row recordingRow) (size int64, lasts time.Duration, err error) {
	parts, err := a.recordings.parts(ctx, row)
	if err != nil {
		return 0, 0, err
	}
	read := func() *partsReader { return &partsReader{ctx: ctx, files: a.evidenceFiles, parts: parts} }
	first := read()
	plan, err := webm.Scan(first)
	first.close()
	source := read()
	defer source.close()
	content, size := io.Reader(source), row.Size
	switch {
	case errors.Is(err, webm.ErrNot): // as it came, then
	case err != nil:
		return 0, 0, err
	default:
		content, size, lasts = plan.Reader(source), plan.Size(), plan.Duration()
	}
	about := map[string]string{"account": row.AccountID, "job": row.JobID, "checker": row.CheckerID}
	return size, lasts, a.evidenceFiles.Write(ctx, row.evidence().key(), row.ContentType, about, content)
}

// partsReader reads the parts of a recording one after the other.
type partsReader struct {
	ctx   context.Context //nolint:containedctx // of one pass
	files EvidenceFiles
	parts []partRow // those that follow
	open  io.ReadCloser
	left  int64 // of the open one
}

func (r *partsReader) Read(b []byte) (int, error) {
	for r.left == 0 {
		r.close()
		if len(r.parts) == 0 {
			return 0, io.EOF
		}
		p := r.parts[0]
		r.parts = r.parts[1:]
		var err error
		if r.open, err = r.files.Read(r.ctx, p.key(), 0, p.Size); err != nil {
			return 0, err
		}
		r.left = p.Size
	}
	n, err := r.open.Read(b[:min(int64(len(b)), r.left)])
	r.left -= int64(n)
	if errors.Is(err, io.EOF) {
		if err = nil; n == 0 {
			err = fmt.Errorf("a part of the recording is shorter than it was: %d bytes are missing", r.left)
		}
	}
	return n, err
}

func (r *partsReader) close() {
	if r.open != nil {
		_ = r.open.Close() // only read
		r.open = nil
	}
}

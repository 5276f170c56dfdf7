package evidence

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
	// without a request that finished them.
	recordingsEvery = 15 * time.Second
	// recordingAgain, in seconds, is the time until it looks again at a recording that
	// goes on or failed.
	recordingAgain = 60
	// assembleTime bounds the making of one file; the lease is longer.
	assembleTime = (assembleLease - 60) * time.Second
)

// runAssembly makes files of recordings that are finished, one at a time, until
// ctx ends.
func (s *Service) runAssembly(ctx context.Context) {
	tick := time.NewTicker(recordingsEvery)
	defer tick.Stop()
	for {
		for s.AssembleNext(ctx) {
		}
		select {
		case <-ctx.Done():
			return
		case <-s.finished:
		case <-tick.C:
		}
	}
}

// AssembleNext handles one recording that is due. It is false when there is none, or when
// it fails; a failed recording is tried again later.
func (s *Service) AssembleNext(ctx context.Context) bool {
	row, found, err := s.recordings.take(ctx)
	if err == nil && found {
		err = s.lookAfter(ctx, row)
	}
	if err != nil && found {
		err = errors.Join(err, s.recordings.again(ctx, row, recordingAgain))
	}
	if err != nil && ctx.Err() == nil {
		s.Log.WithError(err).WithField("recording", row.ID).Warn("a recording stays as it is for now")
	}
	return found && err == nil
}

// lookAfter finishes a recording that can get no further part, and makes the file of one
// that is finished.
func (s *Service) lookAfter(ctx context.Context, row recordingRow) error {
	erased, err := s.recordings.erased(ctx, row)
	switch {
	case err != nil:
		return err
	case erased:
		return s.eraseRecording(ctx, row)
	}
	if !row.Finished {
		alive, err := s.Commands.HoldsClaim(ctx, row.claim())
		switch {
		case err != nil:
			return err
		case alive:
			return s.recordings.again(ctx, row, recordingAgain)
		}
		// The next look sees every part that came before this.
		return s.recordings.finish(ctx, row)
	}
	ctx, cancel := context.WithTimeout(ctx, assembleTime)
	defer cancel()
	if row.Size == 0 {
		return s.recordings.attached(ctx, row) // there is nothing to see
	}
	if err := s.roomFor(row.Size); err != nil {
		return err
	}
	size, lasts, err := s.assemble(ctx, row)
	if err != nil {
		return fmt.Errorf("assemble recording %s: %w", row.ID, err)
	}
	switch kept, err := s.recordings.keep(ctx, row, size); {
	case err != nil:
		return err
	case !kept: // erased meanwhile
		return s.eraseRecording(ctx, row)
	}
	// Each try issues the same command.
	cause := command.Cause{
		CommandID: domain.CommandIDFor("attach recording", row.ID), Actor: "policy:recordings", AccountID: row.AccountID,
	}
	_, err = s.Commands.AttachRecording(ctx, cause, row.JobID, job.Recording{
		ID: row.ID, Token: row.ClaimToken, URL: Prefix + row.ID, ContentType: row.ContentType, Size: size,
		StartedAt: row.StartedAt.UTC(), DurationMs: lasts.Milliseconds(),
	})
	if err != nil {
		return err
	}
	return s.recordings.attached(ctx, row)
}

// eraseRecording removes the file and the row of a recording whose account or job was
// erased.
func (s *Service) eraseRecording(ctx context.Context, row recordingRow) error {
	if err := s.Files.Delete(ctx, row.evidence().key()); err != nil {
		return err
	}
	return s.recordings.forget(ctx, row)
}

// assemble makes one file of the parts, seekable if they are WebM; lasts is 0 where the
// duration is not known. A repeat makes the same file.
func (s *Service) assemble(ctx context.Context, row recordingRow) (size int64, lasts time.Duration, err error) {
	parts, err := s.recordings.parts(ctx, row)
	if err != nil {
		return 0, 0, err
	}
	read := func() *partsReader { return &partsReader{ctx: ctx, files: s.Files, parts: parts} }
	first := read()
	plan, err := webm.Scan(first)
	first.close()
	source := read()
	defer source.close()
	content, size := io.Reader(source), row.Size
	switch {
	case errors.Is(err, webm.ErrNot): // the file is as it came
	case err != nil:
		return 0, 0, err
	default:
		content, size, lasts = plan.Reader(source), plan.Size(), plan.Duration()
	}
	about := map[string]string{"account": row.AccountID, "job": row.JobID, "checker": row.CheckerID}
	return size, lasts, s.writeClean(ctx, row.evidence(), about, content)
}

// partsReader reads the parts of a recording one after the other.
type partsReader struct {
	ctx   context.Context // of one pass
	files Files
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

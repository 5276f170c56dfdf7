package evidence

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/wire"
	"humanqa/internal/blob"
)

const (
	maxImage = 10 << 20
	// maxVideo leaves a body of the largest size room for the form around it.
	maxVideo = wire.MaxBody - 64<<10
	// fileField is the form's part that holds the file.
	fileField = "file"
	// maxParts bounds the parts of the form that are looked at.
	maxParts = 20
)

// Upload is an uploaded file as its content shows it. The name and the type that
// the form gives it are not looked at.
type Upload struct {
	kind   blob.Kind
	size   int64
	digest []byte
}

// Collect takes the file of the request as evidence under the claim. A crash in here leaves
// at most an upload that the sweep removes; the same file sent again goes on from there.
func (s *Service) Collect(ctx context.Context, r *wire.Request, cause command.Cause, claim command.Claim, p Upload) (Piece, error) {
	accountID, err := s.Commands.CollectEvidence(ctx, cause, claim)
	if err != nil {
		return Piece{}, err
	}
	e, err := s.pieces.reserve(ctx, accountID, claim.JobID, claim.CheckerID, p)
	if err != nil || e.Stored {
		return e, err
	}
	content, err := filePart(r)
	if err != nil {
		return e, err
	}
	about := map[string]string{"account": e.AccountID, "job": e.JobID, "checker": claim.CheckerID}
	writing, cancel := context.WithTimeout(ctx, s.WriteTime) // Erase counts on it, as in writeFile
	defer cancel()
	if err := s.writeClean(writing, e, about, content); err != nil {
		return e, domain.Unavailable(err)
	}
	kept, err := s.pieces.stored(ctx, e)
	if err == nil && !kept {
		err = domain.Unavailable(errors.Join(errors.New("the upload took so long that it was swept, or its account was erased"),
			discard(ctx, s.DB, s.Files, e, forgetEvidenceSQL)))
	}
	return e, err
}

// writeClean writes a piece's file without what tells of its maker. It has the size of the
// content.
func (s *Service) writeClean(ctx context.Context, e Piece, about map[string]string, content io.Reader) error {
	clean, w := io.Pipe()
	var cleaning sync.WaitGroup
	cleaning.Go(func() { _ = w.CloseWithError(blob.Kind{Media: e.ContentType}.Clean(w, content)) }) // it never fails
	err := s.Files.Write(ctx, e.key(), e.ContentType, about, clean)
	_ = clean.Close() // it was read, or is given up
	cleaning.Wait()
	return err
}

// writeFile writes an uploaded file, within a time that Erase counts on.
func (s *Service) writeFile(ctx context.Context, key, contentType string, about map[string]string, content io.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, s.WriteTime)
	defer cancel()
	return s.Files.Write(ctx, key, contentType, about, content)
}

// formError is a problem of a form; it is told beside the problems of the rest of the
// request.
type formError domain.Detail

func (e formError) Error() string { return e.Path + ": " + e.Message }

// words are the message for a page, which has one field.
func (e formError) words() string {
	if strings.HasPrefix(e.Message, "the ") {
		return e.Message
	}
	return "the " + e.Path + " " + e.Message
}

var errBrokenForm = formError{wire.BodyPath, "must be a whole form, ends early or is broken"}

// form is the request's form, from its start.
func form(r *wire.Request) (*multipart.Reader, error) {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return nil, formError{wire.BodyPath, "must be multipart/form-data with the file in its part " + fileField}
	}
	return multipart.NewReader(r.Upload.Open(), params["boundary"]), nil
}

// ReadUpload checks the form, and finds the kind, size and digest of its file. It adds a
// problem of the form to the problems of the request.
func ReadUpload(r *wire.Request, p *wire.Problems) (Upload, error) {
	found, err := readUpload(r)
	var bad formError
	if errors.As(err, &bad) {
		p.Add(bad.Path, "%s", bad.Message)
		return Upload{}, nil
	}
	return found, err
}

// readUpload checks the form, and finds the kind, size and digest of its file.
func readUpload(r *wire.Request) (Upload, error) {
	parts, err := form(r)
	if err != nil {
		return Upload{}, err
	}
	var found *Upload
	for range maxParts {
		part, err := parts.NextRawPart()
		switch {
		case errors.Is(err, io.EOF) && found == nil:
			return Upload{}, formError{fileField, "is required: a part of the form that holds the file"}
		case errors.Is(err, io.EOF):
			return *found, nil
		case err != nil:
			return Upload{}, errBrokenForm
		case part.FormName() != fileField:
			continue
		case found != nil:
			return Upload{}, formError{fileField, "must be one file: send the others on their own"}
		}
		measured, err := measure(part)
		if err != nil {
			return Upload{}, err
		}
		found = &measured
	}
	return Upload{}, formError{wire.BodyPath, fmt.Sprintf("must have less than %d parts", maxParts)}
}

// measure reads a file to its end. It counts what is kept of it (blob.Kind.Clean).
func measure(file io.Reader) (Upload, error) {
	content := bufio.NewReaderSize(file, blob.SniffLength)
	head, err := content.Peek(blob.SniffLength)
	if err != nil && !errors.Is(err, io.EOF) {
		return Upload{}, errBrokenForm
	}
	kind, known := blob.KindOf(head)
	if !known {
		return Upload{}, formError{fileField, "must be a PNG, JPEG, WebP, GIF, MP4 or WebM file, by its content"}
	}
	sum, size := sha256.New(), length(0)
	var broken blob.BrokenError
	if err := kind.CleanWhole(io.MultiWriter(sum, &size), content); err != nil && !errors.As(err, &broken) {
		return Upload{}, errBrokenForm
	}
	limit := int64(maxImage)
	if kind.Video {
		limit = maxVideo
	}
	if int64(size) > limit {
		return Upload{}, &domain.Error{
			Kind: domain.KindTooLarge, Code: domain.CodePayloadTooLarge,
			Message: fmt.Sprintf("a file of the type %s may have %d bytes, this one has %d", kind.Media, limit, size),
			Hint:    "send a smaller picture, or a shorter video",
		}
	}
	if broken != "" {
		return Upload{}, formError{fileField, string(broken)}
	}
	return Upload{kind: kind, size: int64(size), digest: sum.Sum(nil)}, nil
}

// length counts what is written to it.
type length int64

func (l *length) Write(p []byte) (int, error) {
	*l += length(len(p))
	return len(p), nil
}

// filePart is the file in a form that readUpload accepted.
func filePart(r *wire.Request) (io.Reader, error) {
	parts, err := form(r)
	if err != nil {
		return nil, err
	}
	for {
		part, err := parts.NextRawPart()
		if err != nil || part.FormName() == fileField {
			return part, err
		}
	}
}

// CollectRequest takes the file in the request's form as evidence under the claim,
// and gives the reference to it that a verdict may hold.
func (s *Service) CollectRequest(
	w http.ResponseWriter, hr *http.Request, cause command.Cause, claim command.Claim,
) (stored string, err error) {
	body, err := s.Spool.ReadBody(w, hr, wire.Caller{Actor: cause.Actor, CheckerID: claim.CheckerID})
	if err != nil {
		return "", err
	}
	defer body.Close()
	r := &wire.Request{Request: hr, Upload: body}
	found, err := readUpload(r)
	var bad formError
	switch {
	case errors.As(err, &bad):
		return "", &domain.Error{Kind: domain.KindInvalid, Code: domain.CodeInvalidRequest, Message: bad.words()}
	case err != nil:
		return "", err
	}
	e, err := s.Collect(hr.Context(), r, cause, claim, found)
	return e.Reference(), err
}

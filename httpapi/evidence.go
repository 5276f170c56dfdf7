package httpapi

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
	"strconv"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/internal/blob"
)

// Evidence: what checkers show beside what they say (decisions, "Checker work").

const (
	maxImage = 10 << 20
	// maxVideo leaves a body of the largest size room for the form around it.
	maxVideo = maxBody - 64<<10
	// evidenceField is the form's part that holds the file.
	evidenceField = "file"
	// maxParts bounds what is looked at beside it.
	maxParts = 20
)

// EvidenceFiles is where the files lie: *blob.Bucket.
type EvidenceFiles interface {
	Write(ctx context.Context, key, contentType string, about map[string]string, content io.Reader) error
	Read(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	Delete(ctx context.Context, key string) error
	// Erase deletes every file whose key begins with the folder, and says how many.
	Erase(ctx context.Context, folder string) (files int, err error)
	// Room is what is free of the disk, in bytes; total 0 where nothing bounds it.
	Room() (free, total int64, err error)
}

// piece is an uploaded file as its content shows it. What the form calls it,
// its name and its type, is nowhere looked at.
type piece struct {
	kind   blob.Kind
	size   int64
	digest []byte
}

type evidenceBody struct {
	URL         string `json:"url"`
	ContentType string `json:"contentType"`
	Size        int64  `json:"size"`
}

// uploadEvidence is POST /v1/checker/jobs/:id/evidence. The body is there by
// then, a large one on the disk: however many upload at once, the memory is
// bounded.
func (a *API) uploadEvidence(r *request) (answer, error) {
	var p problems
	found, err := readPiece(r)
	var bad formError
	switch {
	case errors.As(err, &bad):
		p.add(bad.Path, "%s", bad.Message)
	case err != nil:
		return answer{}, err
	}
	claim, err := claimOf(r, &p)
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		e, err := a.collect(ctx, r, cause, claim, found)
		if err != nil {
			return answer{}, err
		}
		link, err := a.evidenceLink(ctx, e.AccountID, evidencePath+e.ID)
		if err != nil {
			return answer{}, err
		}
		return reply(http.StatusCreated, evidenceBody{URL: link, ContentType: e.ContentType, Size: e.Size})
	})
}

// collect takes the file of the request as evidence under the claim.
func (a *API) collect(ctx context.Context, r *request, cause command.Cause, claim command.Claim, p piece) (evidenceRow, error) {
	accountID, err := a.commands.CollectEvidence(ctx, cause, claim)
	if err != nil {
		return evidenceRow{}, err
	}
	return a.keep(ctx, r, accountID, claim, p)
}

// keep stores the file of the request. A crash in here leaves at most an upload
// that the sweep removes; the same file sent again goes on from there.
func (a *API) keep(ctx context.Context, r *request, accountID string, claim command.Claim, p piece) (evidenceRow, error) {
	e, err := a.evidence.reserve(ctx, accountID, claim.JobID, claim.CheckerID, p)
	if err != nil || e.Stored {
		return e, err
	}
	content, err := evidencePart(r)
	if err != nil {
		return e, err
	}
	about := map[string]string{"account": e.AccountID, "job": e.JobID, "checker": claim.CheckerID}
	if err := a.evidenceFiles.Write(ctx, e.key(), e.ContentType, about, content); err != nil {
		return e, domain.Unavailable(err)
	}
	kept, err := a.evidence.stored(ctx, e)
	if err == nil && !kept {
		err = domain.Unavailable(errors.Join(errors.New("the upload took so long that it was swept, or its account was erased"),
			discardEvidence(ctx, a.evidence.db, a.evidenceFiles, e)))
	}
	return e, err
}

// formError is what is wrong with a form; it is told beside the problems of the
// rest of the request.
type formError domain.Detail

func (e formError) Error() string { return e.Path + ": " + e.Message }

var errBrokenForm = formError{bodyPath, "must be a whole form, ends early or is broken"}

// form is the request's form, from its start.
func form(r *request) (*multipart.Reader, error) {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return nil, formError{bodyPath, "must be multipart/form-data with the file in its part " + evidenceField}
	}
	return multipart.NewReader(r.came.open(), params["boundary"]), nil
}

// readPiece checks the form, and finds out what the file in it is.
func readPiece(r *request) (piece, error) {
	parts, err := form(r)
	if err != nil {
		return piece{}, err
	}
	var found *piece
	for range maxParts {
		part, err := parts.NextRawPart()
		switch {
		case errors.Is(err, io.EOF) && found == nil:
			return piece{}, formError{evidenceField, "is required: a part of the form that holds the file"}
		case errors.Is(err, io.EOF):
			return *found, nil
		case err != nil:
			return piece{}, errBrokenForm
		case part.FormName() != evidenceField:
			continue
		case found != nil:
			return piece{}, formError{evidenceField, "must be one file: send the others on their own"}
		}
		measured, err := measure(part)
		if err != nil {
			return piece{}, err
		}
		found = &measured
	}
	return piece{}, formError{bodyPath, fmt.Sprintf("must have less than %d parts", maxParts)}
}

// measure reads a file to its end.
func measure(file io.Reader) (piece, error) {
	content := bufio.NewReaderSize(file, blob.SniffLength)
	head, err := content.Peek(blob.SniffLength)
	if err != nil && !errors.Is(err, io.EOF) {
		return piece{}, errBrokenForm
	}
	kind, known := blob.KindOf(head)
	if !known {
		return piece{}, formError{evidenceField, "must be a PNG, JPEG, WebP, GIF, MP4 or WebM file, by its content"}
	}
	sum := sha256.New()
	size, err := io.Copy(sum, content)
	if err != nil {
		return piece{}, errBrokenForm
	}
	limit := int64(maxImage)
	if kind.Video {
		limit = maxVideo
	}
	if size > limit {
		return piece{}, &domain.Error{
			Kind: domain.KindTooLarge, Code: domain.CodePayloadTooLarge,
			Message: fmt.Sprintf("a file of the type %s may have %d bytes, this one has %d", kind.Media, limit, size),
			Hint:    "send a smaller picture, or a shorter video",
		}
	}
	return piece{kind: kind, size: size, digest: sum.Sum(nil)}, nil
}

// evidencePart is the file in a form that readPiece found good.
func evidencePart(r *request) (io.Reader, error) {
	parts, err := form(r)
	if err != nil {
		return nil, err
	}
	for {
		part, err := parts.NextRawPart()
		if err != nil || part.FormName() == evidenceField {
			return part, err
		}
	}
}

// evidencePolicy keeps whatever a browser may yet take a file for from doing
// anything.
const evidencePolicy = "sandbox; default-src 'none'"

// getEvidence is GET /v1/evidence/:id. The signature in the query is the whole
// credential. A file never changes, so its id is its tag.
func (a *API) getEvidence(r *request) (answer, error) {
	e, found, err := a.evidence.get(r.Context(), r.vars["id"])
	switch {
	case err != nil:
		return answer{}, err
	case !found:
		return answer{}, errNoEvidence
	}
	if err := a.signed(r, e); err != nil {
		return answer{}, err
	}
	return a.evidenceFile(r, e)
}

// evidenceFile answers with a piece of evidence, or with the part of it that is
// asked for.
func (a *API) evidenceFile(r *request, e evidenceRow) (answer, error) {
	tag := `"` + e.ID + `"`
	header := http.Header{
		"Etag":          {tag},
		"Accept-Ranges": {"bytes"},
		// Who has seen it may go on seeing it for as long as a link works.
		"Cache-Control": {"private, max-age=" + strconv.Itoa(int(linkValid.Seconds()))},
		// A page of any origin may show it: the signature is what lets it.
		"Cross-Origin-Resource-Policy": {"cross-origin"},
		"Content-Security-Policy":      {evidencePolicy},
	}
	if matches(r.Header.Values("If-None-Match"), tag) {
		return answer{status: http.StatusNotModified, header: header}, nil
	}
	from, length, part := askedRange(r.Header, tag, e.Size)
	status := http.StatusOK
	switch {
	case part && length <= 0:
		return noSuchRange(r, e.Size), nil
	case part:
		status = http.StatusPartialContent
		header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+length-1, e.Size))
	}
	header.Set("Content-Type", e.ContentType)
	header.Set("Content-Length", strconv.FormatInt(length, 10))
	header.Set("Content-Disposition", fmt.Sprintf("inline; filename=%q", "evidence-"+e.ID+e.extension()))
	return a.evidenceAnswer(r, e, answer{status: status, header: header}, from, length)
}

func (e evidenceRow) extension() string {
	_, kind, _ := strings.Cut(e.ContentType, "/")
	return "." + kind
}

// openTime bounds the wait for a bucket to begin.
const openTime = 20 * time.Second

// evidenceAnswer opens the file before a status is sent, and reads it while the
// answer is.
func (a *API) evidenceAnswer(r *request, e evidenceRow, ans answer, from, length int64) (answer, error) {
	// The handler's time ends with the handler, the file is read after it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	late := time.AfterFunc(openTime, cancel)
	content, err := a.evidenceFiles.Read(ctx, e.key(), from, length)
	if err != nil {
		cancel()
		return answer{}, domain.Unavailable(err)
	}
	late.Stop() // at the last moment it may be too late: then the read below fails
	ans.stream = func(client context.Context, w *streamWriter) {
		defer cancel()
		defer func() { _ = content.Close() }() // only read
		defer context.AfterFunc(client, cancel)()
		buffer := make([]byte, 64<<10)
		for {
			n, err := content.Read(buffer)
			if n > 0 && w.write(buffer[:n]) != nil {
				return // the client is gone
			}
			if errors.Is(err, io.EOF) || client.Err() != nil {
				return
			}
			if err != nil {
				panic(fmt.Errorf("read evidence %s: %w", e.ID, err)) // the length was promised: cut the connection off
			}
		}
	}
	return ans, nil
}

// askedRange is what of size bytes the client asks for (RFC 9110, section 14); a
// part without length is one that is not there. One range is served; several,
// other units than bytes, and what cannot be read are passed over, as the RFC
// allows: the answer is the whole file.
func askedRange(h http.Header, tag string, size int64) (from, length int64, part bool) {
	spec, inBytes := strings.CutPrefix(h.Get("Range"), "bytes=")
	if condition := h.Get("If-Range"); !inBytes || condition != "" && condition != tag {
		return 0, size, false
	}
	rawFirst, rawLast, _ := strings.Cut(strings.TrimSpace(spec), "-")
	first, noFirst := strconv.ParseUint(rawFirst, 10, 63)
	last, noLast := strconv.ParseUint(rawLast, 10, 63)
	switch {
	case noFirst == nil && rawLast == "" && strings.HasSuffix(strings.TrimSpace(spec), "-"): // from there to the end
		return int64(first), size - int64(first), true
	case noFirst == nil && noLast == nil && first <= last:
		return int64(first), min(size-1, int64(last)) - int64(first) + 1, true
	case rawFirst == "" && noLast == nil: // so many bytes before the end
		length = min(size, int64(last))
		return size - length, length, true
	}
	return 0, size, false
}

// noSuchRange says how long the file is, in the envelope's shape.
func noSuchRange(r *request, size int64) answer {
	return answer{
		status: http.StatusRequestedRangeNotSatisfiable,
		header: http.Header{"Content-Range": {fmt.Sprintf("bytes */%d", size)}},
		body: envelope(&domain.Error{
			Code: domain.CodeInvalidRequest, Message: "the file has no such range",
			Hint: fmt.Sprintf("it has %d bytes", size),
		}, r.id),
	}
}

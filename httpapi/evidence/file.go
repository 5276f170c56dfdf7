package evidence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/httpapi/wire"
)

// contentPolicy keeps a file from doing anything, even if a browser takes it for another
// type.
const contentPolicy = "sandbox; default-src 'none'"

// Answer is GET /v1/evidence/:id: it serves a piece to a client that has a link. The
// signature in the query is the whole credential. A file never changes, so its id is its tag.
func (s *Service) Answer(r *wire.Request) (wire.Answer, error) {
	e, found, err := s.pieces.get(r.Context(), r.Vars["id"])
	switch {
	case err != nil:
		return wire.Answer{}, err
	case !found:
		return wire.Answer{}, errNoEvidence
	}
	if err := s.signed(r, e); err != nil {
		return wire.Answer{}, err
	}
	return s.fileAnswer(r, e)
}

// fileAnswer answers with a piece of evidence, or with the part of it that is
// asked for.
func (s *Service) fileAnswer(r *wire.Request, e Piece) (wire.Answer, error) {
	if err := e.gone(); err != nil {
		return wire.Answer{}, err
	}
	tag := `"` + e.ID + `"`
	header := http.Header{
		"Etag":          {tag},
		"Accept-Ranges": {"bytes"},
		// A reader may see it again for as long as a link works.
		"Cache-Control": {"private, max-age=" + strconv.Itoa(int(linkValid.Seconds()))},
		// A page of any origin may show it: the signature permits that.
		"Cross-Origin-Resource-Policy": {"cross-origin"},
		"Content-Security-Policy":      {contentPolicy},
	}
	if wire.Matches(r.Header.Values("If-None-Match"), tag) {
		return wire.Answer{Status: http.StatusNotModified, Header: header}, nil
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
	header.Set("Content-Disposition", fmt.Sprintf("inline; filename=%q", e.fileName()))
	return s.streamFile(r, e, wire.Answer{Status: status, Header: header}, from, length)
}

// fileName is the name that a browser saves the piece under.
func (e Piece) fileName() string { return "evidence-" + e.ID + e.extension() }

func (e Piece) extension() string {
	_, kind, _ := strings.Cut(e.ContentType, "/")
	return "." + kind
}

// openTime bounds the wait for a bucket to begin.
const openTime = 20 * time.Second

// streamFile opens the file before a status is sent, and reads it while the answer is
// sent.
func (s *Service) streamFile(r *wire.Request, e Piece, ans wire.Answer, from, length int64) (wire.Answer, error) {
	// The handler's time ends with the handler, the file is read after it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	late := time.AfterFunc(openTime, cancel)
	content, err := s.Files.Read(ctx, e.key(), from, length)
	if err != nil {
		cancel()
		return wire.Answer{}, domain.Unavailable(err)
	}
	late.Stop() // it may come too late: then the read below fails
	ans.Stream = func(client context.Context, w *wire.StreamWriter) {
		defer cancel()
		defer func() { _ = content.Close() }() // only read
		defer context.AfterFunc(client, cancel)()
		buffer := make([]byte, 64<<10)
		for {
			n, err := content.Read(buffer)
			if n > 0 && w.Send(buffer[:n]) != nil {
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

// askedRange is the part of size bytes that the client asks for (RFC 9110, section 14); a
// part without length does not exist. One range is served. Several ranges, other units
// than bytes, and a malformed range are ignored, as the RFC allows: the answer is the
// whole file.
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
	case rawFirst == "" && noLast == nil: // the last bytes
		length = min(size, int64(last))
		return size - length, length, true
	}
	return 0, size, false
}

// noSuchRange says how long the file is, in the envelope's shape.
func noSuchRange(r *wire.Request, size int64) wire.Answer {
	return wire.Answer{
		Status: http.StatusRequestedRangeNotSatisfiable,
		Header: http.Header{"Content-Range": {fmt.Sprintf("bytes */%d", size)}},
		Body: wire.Envelope(&domain.Error{
			Code: domain.CodeInvalidRequest, Message: "the file has no such range",
			Hint: fmt.Sprintf("it has %d bytes", size),
		}, r.ID),
	}
}

// File serves a piece of the account's evidence to a reader who may see it. A player
// may ask for parts. NotFound where there is no such piece.
func (s *Service) File(ctx context.Context, accountID, stored string) (http.Handler, error) {
	e, err := s.pieceOf(ctx, accountID, stored)
	return s.serving(e, s.fileAnswer), err
}

// Picture serves a picture to a reader who may lose the right to see it at any moment, so
// no cache keeps it. NotFound where there is no such picture.
func (s *Service) Picture(ctx context.Context, accountID, stored string) (http.Handler, error) {
	e, err := s.pieceOf(ctx, accountID, stored)
	if err == nil && !strings.HasPrefix(e.ContentType, "image/") {
		err = domain.NotFound("picture")
	}
	return s.serving(e, func(r *wire.Request, e Piece) (wire.Answer, error) {
		ans, err := s.fileAnswer(r, e)
		if err == nil {
			ans.Header.Set("Cache-Control", "no-store")
		}
		return ans, err
	}), err
}

func (s *Service) pieceOf(ctx context.Context, accountID, stored string) (Piece, error) {
	e, found, err := s.pieces.get(ctx, ID(stored))
	if err == nil && (!found || e.AccountID != accountID) {
		err = domain.NotFound("evidence")
	}
	return e, err
}

func (s *Service) serving(e Piece, file func(*wire.Request, Piece) (wire.Answer, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		r := &wire.Request{Request: hr, Log: s.Log}
		ans, err := file(r, e)
		if err != nil {
			ans = wire.Refuse(r, err)
		}
		if ans.Stream != nil {
			ans.SendStream(r, w)
			return
		}
		ans.Send(w)
	})
}

package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"humanqa/domain"
)

const (
	// maxBody is the specification's limit (section "Limits").
	maxBody = 50 << 20
	// smallBody is read without asking. No request of ours is larger; what is
	// waits for one of the few places of largeBodies, so that many of them at
	// once cannot exhaust the memory.
	smallBody   = 1 << 20
	largeBodies = 4
	// placeWait bounds the wait for such a place.
	placeWait = 5 * time.Second
	// drainLimit and drainTime bound how much of a refused body is read only to
	// be thrown away: a client that is still sending would otherwise see a
	// reset connection instead of the 413.
	drainLimit = 16 << 20
	drainTime  = 10 * time.Second
)

// places lets a few requests with large bodies in at a time.
type places chan struct{}

func (p places) take(ctx context.Context) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, placeWait)
	defer cancel()
	select {
	case p <- struct{}{}:
		return func() { <-p }, nil
	case <-ctx.Done():
		return nil, domain.Unavailable(errors.New("too many large bodies at once"))
	}
}

// readBody reads the whole body, up to the limit. It stands between the
// credential and everything that parses. leave is to be called when the body
// is no longer needed. A stranger's is nobody's to look at: no route that asks
// for no credential takes one.
func readBody(w http.ResponseWriter, r *http.Request, stranger bool, large places) (body []byte, leave func(), err error) {
	leave = func() {}
	if r.ContentLength > maxBody {
		if r.Header.Get("Expect") == "" { // else the client has not begun to send
			drain(w, r.Body, r.ContentLength-maxBody)
		}
		return nil, leave, errTooLarge
	}
	if stranger || r.Body == nil || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil, leave, nil
	}
	limited := http.MaxBytesReader(w, r.Body, maxBody)
	var buf bytes.Buffer
	_, err = buf.ReadFrom(io.LimitReader(limited, smallBody))
	if err == nil && buf.Len() == smallBody {
		if leave, err = large.take(r.Context()); err != nil {
			return nil, func() {}, err
		}
		if more := r.ContentLength - smallBody; more > 0 {
			buf.Grow(int(more) + bytes.MinRead)
		}
		_, err = buf.ReadFrom(limited)
	}
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		leave()
		drain(w, r.Body, 0)
		return nil, func() {}, errTooLarge
	case err != nil:
		leave()
		return nil, func() {}, &domain.Error{
			Kind: domain.KindInvalid, Code: domain.CodeInvalidRequest,
			Message: "the body ended early or could not be read", Cause: err,
			Extras: map[string]any{"details": []domain.Detail{{Path: bodyPath, Message: "ended early or could not be read"}}},
		}
	}
	return buf.Bytes(), leave, nil
}

var errTooLarge = &domain.Error{
	Kind: domain.KindTooLarge, Code: domain.CodePayloadTooLarge,
	Message: "the body is larger than 50 MB",
	Hint:    "send less than 50 MB in one request",
}

// drain throws away what a refused client is still sending, when it is not much
// more than was allowed. Errors only mean that the client has stopped.
func drain(w http.ResponseWriter, body io.Reader, excess int64) {
	if excess > drainLimit {
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime)) // not every writer can
	_, _ = io.Copy(io.Discard, io.LimitReader(body, maxBody+drainLimit))
}

package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"humanqa/domain"
)

const (
	// maxBody is the specification's limit (section "Limits").
	maxBody = 50 << 20
	// smallBody is read into memory at once. What is larger goes to the disk
	// (spool.go) until it is there, so that neither many of them nor slow ones
	// exhaust the memory.
	smallBody = 1 << 20
	// minRate, in bytes a second, is the least that who sends a larger body has
	// to send on average once placeGrace is over.
	minRate    = 64 << 10
	placeGrace = 10 * time.Second
	// drainLimit and drainTime bound how much of a refused body is read only to
	// be thrown away: a client that is still sending would otherwise see a
	// reset connection instead of the 413.
	drainLimit = 16 << 20
	drainTime  = 10 * time.Second
)

// paced is the body of a request that goes to the disk. Before each read it says
// until when more has to be there.
type paced struct {
	io.Reader
	due      func(time.Time) error
	begun    time.Time
	grace    time.Duration
	latest   time.Time // the server's own limit, whatever the rate
	received int64
}

func (p *paced) Read(b []byte) (int, error) {
	earned := time.Duration(p.received) * time.Second / minRate
	due := p.begun.Add(max(p.grace, earned))
	if due.After(p.latest) {
		due = p.latest
	}
	_ = p.due(due) // not every writer can
	n, err := p.Reader.Read(b)
	p.received += int64(n)
	if errors.Is(err, io.EOF) {
		// All is there: the connection's next read waits for the client to hang
		// up, and a due time would take the handler's for up.
		_ = p.due(time.Time{})
	}
	return n, err
}

// readBody reads the whole body, up to the limit. It stands between the
// credential and everything that parses. A stranger's is nobody's to look at: no
// route that asks for no credential takes one.
func (s *spool) readBody(w http.ResponseWriter, r *http.Request, c caller) (*body, error) {
	latest := time.Now().Add(readTime)
	if r.ContentLength > maxBody {
		if r.Header.Get("Expect") == "" { // else the client has not begun to send
			drain(w, r.Body, r.ContentLength-maxBody)
		}
		return nil, errTooLarge
	}
	if c.actor == "" || r.Body == nil || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return &body{}, nil
	}
	limited := http.MaxBytesReader(w, r.Body, maxBody)
	var head bytes.Buffer
	_, err := head.ReadFrom(io.LimitReader(limited, smallBody))
	if err == nil && head.Len() < smallBody {
		return &body{head: head.Bytes(), size: int64(head.Len())}, nil
	}
	var whole *body
	if err == nil {
		if whole, err = s.receive(r.Context(), w, c.owner(), head.Bytes(), limited, latest); err == nil {
			return whole, nil
		}
	}
	var refusal *domain.Error
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		drain(w, r.Body, 0)
		return nil, errTooLarge
	case errors.As(err, &refusal):
		return nil, err
	}
	wrong := "ended early or could not be read"
	if errors.Is(err, os.ErrDeadlineExceeded) {
		wrong = "arrived too slowly"
	}
	return nil, &domain.Error{
		Kind: domain.KindInvalid, Code: domain.CodeInvalidRequest, Message: "the body " + wrong, Cause: err,
		Extras: map[string]any{"details": []domain.Detail{{Path: bodyPath, Message: wrong}}},
	}
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

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
	// minRate, in bytes a second, is the least that a client has to send of a body
	// on average once bodyGrace is over.
	minRate   = 64 << 10
	bodyGrace = 10 * time.Second
	// drainLimit bounds how much of a refused body is read only to be thrown away,
	// at the same least rate: a client that reads no answer before it has sent
	// everything would otherwise see a reset connection instead of the 413.
	drainLimit = maxBody + 16<<20
)

// pacedBodies gives a handler bodies that have to keep the least rate, whatever
// their size and whether the handler reads them or leaves them to net/http.
func pacedBodies(h http.Handler, grace time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			h.ServeHTTP(w, r)
			return
		}
		now := time.Now()
		body := &paced{
			ReadCloser: r.Body, due: http.NewResponseController(w).SetReadDeadline,
			begun: now, grace: grace, latest: now.Add(readTime),
		}
		_ = body.due(now.Add(grace)) // not every writer can
		own := *r                    // net/http looks at the body of its own request
		own.Body = body
		h.ServeHTTP(w, &own)
	})
}

// paced is the body of a request. Before each read it says until when more has
// to be there.
type paced struct {
	io.ReadCloser
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
	n, err := p.ReadCloser.Read(b)
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
	if r.ContentLength > maxBody {
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
		if whole, err = s.receive(r.Context(), c.owner(), head.Bytes(), limited); err == nil {
			return whole, nil
		}
	}
	var refusal *domain.Error
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
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

// drain throws away what a refused client is still sending, once it has its
// answer. Errors only mean that the client has stopped.
func drain(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.ContentLength > maxBody && r.Header.Get("Expect") != "" {
		return // in the second case the client has not begun to send
	}
	if http.NewResponseController(w).Flush() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, drainLimit))
	}
}

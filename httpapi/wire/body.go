package wire

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
	// MaxBody is the specification's limit (section "Limits").
	MaxBody = 50 << 20
	// SmallBody is read into memory at once. What is larger goes to the disk
	// (spool.go) until it is there, so that neither many of them nor slow ones
	// exhaust the memory.
	SmallBody = 1 << 20
	// MinRate, in bytes a second, is the least that a client has to send of a body
	// on average once bodyGrace is over.
	MinRate   = 64 << 10
	BodyGrace = 10 * time.Second
	// drainLimit bounds how much of a refused body is read only to be thrown away,
	// at the same least rate: a client that reads no answer before it has sent
	// everything would otherwise see a reset connection instead of the 413.
	drainLimit = MaxBody + 16<<20
)

// ReadBody reads the whole body, up to the limit. It stands between the
// credential and everything that parses. A stranger's is nobody's to look at: no
// route that asks for no credential takes one.
func (s *Spool) ReadBody(w http.ResponseWriter, r *http.Request, c Caller) (*Body, error) {
	if r.ContentLength > MaxBody {
		return nil, ErrTooLarge
	}
	if c.Actor == "" || r.Body == nil || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return &Body{}, nil
	}
	limited := http.MaxBytesReader(w, r.Body, MaxBody)
	var head bytes.Buffer
	_, err := head.ReadFrom(io.LimitReader(limited, SmallBody))
	if err == nil && head.Len() < SmallBody {
		return &Body{head: head.Bytes(), Size: int64(head.Len())}, nil
	}
	var whole *Body
	if err == nil {
		if whole, err = s.receive(r.Context(), c.Owner(), head.Bytes(), limited); err == nil {
			return whole, nil
		}
	}
	var refusal *domain.Error
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, ErrTooLarge
	case errors.As(err, &refusal):
		return nil, err
	}
	wrong := "ended early or could not be read"
	if errors.Is(err, os.ErrDeadlineExceeded) {
		wrong = "arrived too slowly"
	}
	return nil, &domain.Error{
		Kind: domain.KindInvalid, Code: domain.CodeInvalidRequest, Message: "the body " + wrong, Cause: err,
		Extras: map[string]any{"details": []domain.Detail{{Path: BodyPath, Message: wrong}}},
	}
}

var ErrTooLarge = &domain.Error{
	Kind: domain.KindTooLarge, Code: domain.CodePayloadTooLarge,
	Message: "the body is larger than 50 MB",
	Hint:    "send less than 50 MB in one request",
}

// Drain throws away what a refused client is still sending, once it has its
// answer. Errors only mean that the client has stopped.
func Drain(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.ContentLength > MaxBody && r.Header.Get("Expect") != "" {
		return // in the second case the client has not begun to send
	}
	if http.NewResponseController(w).Flush() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, drainLimit))
	}
}

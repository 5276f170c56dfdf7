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
	// SmallBody is the size below which a body is read into memory at once. A larger one
	// goes to the disk (spool.go) until it is complete, so that neither many large bodies
	// nor slow ones exhaust the memory.
	SmallBody = 1 << 20
	// MinRate, in bytes a second, is the least average rate at which a client has to send
	// a body once BodyGrace is over.
	MinRate   = 64 << 10
	BodyGrace = 10 * time.Second
	// drainLimit bounds the bytes of a refused body that are read and discarded, at the
	// same least rate. A client that reads no answer before it has sent everything would
	// otherwise see a reset connection instead of the 413.
	drainLimit = MaxBody + 16<<20
)

// ReadBody reads the whole body, up to the limit. It runs after the check of the
// credential and before all parsing. Without a caller it reads nothing: a public route
// that takes a body reads it itself, without its encoding, too.
func (s *Spool) ReadBody(w http.ResponseWriter, r *http.Request, c Caller) (*Body, error) {
	if r.ContentLength > MaxBody {
		return nil, ErrTooLarge
	}
	if err := Inflate(r); err != nil {
		return nil, err
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

// Drain discards the bytes that a refused client still sends after its answer. Errors
// only mean that the client has stopped.
func Drain(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.ContentLength > MaxBody && r.Header.Get("Expect") != "" {
		return // in the second case the client has not begun to send
	}
	if http.NewResponseController(w).Flush() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, drainLimit))
	}
}

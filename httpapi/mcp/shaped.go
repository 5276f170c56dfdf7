package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"humanqa/httpapi/wire"
	"humanqa/internal/mcptools"
)

// shaped gives an answer the form that its client takes. Refusals of the API, and those that
// the library sends as plain text, become errors of the protocol with the request's id. A
// client that takes no events gets the answer at their end as JSON.
type shaped struct {
	http.ResponseWriter
	id     json.RawMessage // as it came
	json   bool            // no events
	status int
	held   bool
	body   bytes.Buffer // while it is held
}

// WriteHeader implements http.ResponseWriter.
func (s *shaped) WriteHeader(status int) {
	s.status = status
	events := s.Header().Get("Content-Type") == wire.EventStream
	if s.held = status >= http.StatusBadRequest || s.json && events; s.held {
		return
	}
	if events {
		wire.SendsEvents(s.Header())
	}
	s.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (s *shaped) Write(p []byte) (int, error) {
	if s.status == 0 {
		s.WriteHeader(http.StatusOK)
	}
	if s.held {
		return s.body.Write(p)
	}
	return s.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (s *shaped) Flush() {
	if s.status != 0 && !s.held {
		_ = http.NewResponseController(s.ResponseWriter).Flush() // a client that is gone shows at the next write
	}
}

// Unwrap is for http.ResponseController.
func (s *shaped) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// end sends what was held.
func (s *shaped) end() {
	if !s.held {
		return
	}
	s.held = false
	body := s.body.Bytes()
	switch {
	case s.status < http.StatusBadRequest:
		_, body, _ = bytes.Cut(body[bytes.LastIndex(body, []byte("\ndata: "))+1:], []byte("data: "))
	case !bytes.Contains(body, []byte(`"jsonrpc"`)):
		body = s.fault(body)
	}
	s.Header().Del("Content-Length")
	s.Header().Set("Content-Type", "application/json")
	s.ResponseWriter.WriteHeader(s.status)
	_, _ = s.ResponseWriter.Write(body) // the client is gone
}

// fault is a refusal as an error of the protocol. The API's envelope is its data.
func (s *shaped) fault(body []byte) []byte {
	refusal := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: cmp.Or(strings.TrimSpace(string(body)), http.StatusText(s.status))}
	if s.status >= http.StatusInternalServerError {
		refusal.Code = jsonrpc.CodeInternalError
	}
	var envelope struct{ Error, Hint string }
	if json.Unmarshal(body, &envelope) == nil && envelope.Error != "" {
		refusal.Message, refusal.Data = strings.TrimSuffix(envelope.Error+": "+envelope.Hint, ": "), body
	}
	return mcptools.Fault(s.id, refusal)
}

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// answer is what a handler decided to say. body is complete, empty for 204, and
// JSON unless header has another Content-Type.
type answer struct {
	status int
	header http.Header
	body   []byte
	// stream, when it is set, writes the body bit by bit instead, for as long as
	// it takes. Its context is the connection's.
	stream func(context.Context, *streamWriter)
}

// reply encodes a value as the answer's body.
func reply(status int, body any) (answer, error) {
	raw, err := encode(body)
	if err != nil {
		return answer{}, fmt.Errorf("encode answer: %w", err)
	}
	return answer{status: status, body: raw}, nil
}

// encode is the one way JSON leaves this package: no HTML escapes, no trailing
// newline.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// send puts the answer on the wire and says how many bytes of body went out.
func (a answer) send(w http.ResponseWriter) int {
	h := w.Header()
	for name, values := range a.header {
		h[name] = values
	}
	if len(a.body) > 0 {
		if h.Get("Content-Type") == "" {
			h.Set("Content-Type", "application/json; charset=utf-8")
		}
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	n, _ := w.Write(a.body) // the client is gone; the access log shows the bytes that went out
	return n
}

// timestamp is a time as the API writes it: RFC 3339, UTC, Z, milliseconds.
// Equal instants are equal strings.
type timestamp time.Time

const timestampLayout = "2006-01-02T15:04:05.000Z"

func (t timestamp) MarshalJSON() ([]byte, error) {
	return []byte(`"` + time.Time(t).UTC().Format(timestampLayout) + `"`), nil
}

// stamp is a timestamp or null.
func stamp(t *time.Time) *timestamp {
	if t == nil {
		return nil
	}
	s := timestamp(*t)
	return &s
}

// orNull is a string or, when it is empty, null.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

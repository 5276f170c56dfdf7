package wire

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"

	"humanqa/domain"
)

// Answer is the answer of a handler. Body is complete, empty for 204, and JSON unless
// Header has another Content-Type.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Stream, when it is set, writes the body bit by bit instead, for as long as
	// it takes. Its context is the connection's.
	Stream func(context.Context, *StreamWriter)
}

// Reply encodes a value as the answer's body.
func Reply(status int, body any) (Answer, error) {
	raw, err := domain.EncodeJSON(body)
	if err != nil {
		return Answer{}, fmt.Errorf("encode answer: %w", err)
	}
	return Answer{Status: status, Body: raw}, nil
}

// ReplyUnless is Reply, unless err says that the work failed before.
func ReplyUnless(err error, status int, body any) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	return Reply(status, body)
}

// Send puts the answer on the wire and says how many bytes of body went out.
func (a Answer) Send(w http.ResponseWriter) int {
	h := w.Header()
	maps.Copy(h, a.Header)
	if len(a.Body) > 0 {
		if h.Get("Content-Type") == "" {
			h.Set("Content-Type", "application/json") // which has no charset (RFC 8259, section 11)
		}
		h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	w.WriteHeader(a.Status)
	n, _ := w.Write(a.Body) // the client is gone; the access log shows the bytes that went out
	return n
}

// AsGet gives a HEAD to the handlers of GET, so that its answer has the same headers. A
// stream ends at its first part.
func AsGet(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request) {
	if r.Method != http.MethodHead {
		return w, r
	}
	get := *r
	get.Method = http.MethodGet
	return bodiless{w}, &get
}

type bodiless struct{ http.ResponseWriter }

func (bodiless) Write([]byte) (int, error) { return 0, http.ErrBodyNotAllowed }

// Unwrap is for http.ResponseController.
func (w bodiless) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Timestamp is a time as the API writes it: RFC 3339, UTC, Z, milliseconds.
// Equal instants are equal strings.
type Timestamp time.Time

const TimestampLayout = "2006-01-02T15:04:05.000Z"

func (t Timestamp) MarshalJSON() ([]byte, error) {
	return []byte(`"` + time.Time(t).UTC().Format(TimestampLayout) + `"`), nil
}

// Stamp is a timestamp or null.
func Stamp(t *time.Time) *Timestamp {
	if t == nil {
		return nil
	}
	return new(Timestamp(*t))
}

// OrNull is a string or, when it is empty, null.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// OrZero is the value behind a pointer or, where it is nil, the zero value.
func OrZero[T any](p *T) (held T) {
	if p != nil {
		held = *p
	}
	return held
}

// The values of priority.
const (
	Normal = "normal"
	Urgent = "urgent"
)

// Priority is the value of priority in an answer.
func Priority(isUrgent bool) string {
	if isUrgent {
		return Urgent
	}
	return Normal
}

// List shows each of the values found; the list is never null.
func List[T, B any](found []T, show func(T) B) []B {
	out := make([]B, len(found))
	for i, one := range found {
		out[i] = show(one)
	}
	return out
}

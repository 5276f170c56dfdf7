package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
)

// A stranger needs no key to send a body to a path that takes none. It must
// neither be kept nor hold any room for large ones.
func TestBodiesThatNobodyAskedForAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := shared(t)
	addr := s.online().Listener.Addr()
	for target, want := range map[string]int{
		"/docs": http.StatusMethodNotAllowed, "/healthz": http.StatusMethodNotAllowed, "/nowhere": http.StatusNotFound,
		"/v1/openapi.json": http.StatusMethodNotAllowed, "/v1/hooks/nowhere": http.StatusNotFound,
	} {
		begun := time.Now()
		status, _, body := raw(t, addr, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s",
			target, wire.MaxBody, make([]byte, wire.SmallBody+1))) // and the rest never comes
		if status != want || time.Since(begun) > wire.PlaceWait {
			t.Errorf("POST %s: %d after %v, want %d: %s", target, status, time.Since(begun), want, body)
		}
	}
	status, _, _ := raw(t, addr, fmt.Sprintf("POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", wire.MaxBody+1))
	equal(t, status, http.StatusRequestEntityTooLarge) // what was announced is counted all the same
}

// deafWriter is a connection that broke between the handler and the stream.
type deafWriter struct{ *httptest.ResponseRecorder }

func (deafWriter) SetReadDeadline(time.Time) error {
	return errors.New("use of closed network connection")
}

func (deafWriter) SetWriteDeadline(time.Time) error {
	return errors.New("use of closed network connection")
}

func TestAStreamThatNeverBeginsLeavesItsPlace(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(0)
	for range v1.StreamsPerKey + 1 { // the last one has a place only where another was given back
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/events", nil)
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Accept", wire.EventStream)
		w := deafWriter{httptest.NewRecorder()}
		s.ServeHTTP(w, r)
		equal(t, w.Code, http.StatusOK)
	}
}

package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"

	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
)

// net/http refuses an expectation that is none before any handler, and with
// nothing in it.
func TestAnUnknownExpectationGetsTheEnvelope(t *testing.T) {
	t.Parallel()
	s := shared(t)
	addr := s.online().Listener.Addr()
	for _, version := range []string{"1.0", "1.1"} {
		status, id, body := raw(t, addr, fmt.Sprintf("POST /v1/jobs HTTP/%s\r\nHost: x\r\nExpect: wonders\r\nContent-Length: 2\r\n\r\n{}", version))
		var e struct{ Error, Code, RequestID string }
		if err := json.Unmarshal([]byte(body), &e); err != nil || status != http.StatusExpectationFailed ||
			!wire.ValidRequestID(id) || e.RequestID != id || e.Code != "INVALID_REQUEST" || e.Error == "" {
			t.Errorf("HTTP/%s: %d, request id %q: %q", version, status, id, body)
		}
	}
}

// What a handler sends is its own affair, also when a checker's file holds the
// very bytes of net/http's refusals where one write ends and the next begins.
// Were they taken for one, fewer bytes than promised would go out, and whoever
// has the connection next would get the wrong answer.
func TestAFileMayHoldTheBytesOfARefusal(t *testing.T) {
	t.Parallel()
	refusals := [][]byte{
		[]byte("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"),
		[]byte("HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
	}
	var parts [][]byte
	var file []byte
	for range 3 {
		for _, refusal := range refusals {
			page := append(slices.Clone(refusal), make([]byte, 64<<10-len(refusal))...)
			parts = append(parts, page, refusal)
			file = slices.Concat(file, page, refusal)
		}
	}
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(file)))
		out := wire.NewStreamWriter(w)
		for _, part := range parts {
			if out.Send(part) != nil {
				return
			}
		}
	}), quiet())
	srv.Listener = envelopeListener{srv.Listener}
	srv.Start()
	t.Cleanup(srv.Close)
	for range 2 { // on one connection
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		must.NoError(t, err)
		res, err := srv.Client().Do(r)
		must.NoError(t, err)
		got, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || !bytes.Equal(got, file) {
			t.Fatalf("got %d bytes of %d, changed or cut: %v", len(got), len(file), err)
		}
	}
}

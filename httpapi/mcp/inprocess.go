package mcp

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// inProcess is a transport to a handler of this process. An answer counts in the share of the
// request that it is for (underWay).
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	share, _ := r.Context().Value(underWayKey{}).(*underWay)
	answer := &recorder{header: http.Header{}, status: http.StatusOK, grow: func(n int) error {
		if n > maxAnswer {
			return fmt.Errorf("it has more than %d bytes", maxAnswer)
		}
		return share.grow(r.Context(), int64(n))
	}}
	t.handler.ServeHTTP(answer, r)
	if answer.refused != nil {
		return nil, fmt.Errorf("the answer of %s cannot be taken: %w", r.URL.Path, answer.refused)
	}
	return &http.Response{
		Status: http.StatusText(answer.status), StatusCode: answer.status, Header: answer.header,
		Body: io.NopCloser(&answer.body), Request: r,
	}, nil
}

// recorder keeps an answer.
type recorder struct {
	header  http.Header
	status  int
	wrote   bool
	body    bytes.Buffer
	grow    func(bytes int) error // says whether the body may have so many
	refused error                 // by grow
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	if !w.wrote && status >= http.StatusOK {
		w.status, w.wrote = status, true
	}
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.refused == nil {
		w.refused = w.grow(w.body.Len() + len(p))
	}
	if w.refused != nil {
		return 0, w.refused
	}
	return w.body.Write(p)
}

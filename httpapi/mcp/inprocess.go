package mcp

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// maxAnswer bounds one answer of the API, in bytes. Reports have at most some megabytes.
const maxAnswer = 32 << 20

// inProcess is a transport to a handler of this process.
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
	t.handler.ServeHTTP(answer, r)
	if answer.tooLarge {
		return nil, fmt.Errorf("the answer of %s has more than %d bytes", r.URL.Path, maxAnswer)
	}
	return &http.Response{
		Status: http.StatusText(answer.status), StatusCode: answer.status, Header: answer.header,
		Body: io.NopCloser(&answer.body), Request: r,
	}, nil
}

// recorder keeps an answer.
type recorder struct {
	header   http.Header
	status   int
	wrote    bool
	tooLarge bool
	body     bytes.Buffer
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
	if w.body.Len()+len(p) > maxAnswer {
		w.tooLarge = true
		return 0, io.ErrShortWrite
	}
	return w.body.Write(p)
}

package mcptools

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/testing/must"
)

// ending tells when it was read to its end.
type ending struct {
	io.Reader
	ended chan struct{}
}

func (e *ending) Read(p []byte) (n int, err error) {
	if n, err = e.Reader.Read(p); err == io.EOF {
		close(e.ended)
	}
	return n, err
}

// late is a service that answers once the client has sent its last line.
type late struct{ ended chan struct{} }

func (l late) RoundTrip(*http.Request) (*http.Response, error) {
	<-l.ended
	answer := httptest.NewRecorder()
	answer.WriteHeader(http.StatusNotFound)
	return answer.Result(), nil
}

func TestALastLineIsAnsweredBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for range 20 {
		ended := make(chan struct{})
		in := &ending{strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_report","arguments":{"jobId":"j"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_report","arguments":{"jobId":"j"}}}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
`), ended}
		var out strings.Builder
		server := New(humanqa.Within("http://qa.example.com", late{ended}, "test"), "test")
		must.NoError(t, Run(t.Context(), server, in, &out))
		if !strings.Contains(out.String(), `"id":2,`) {
			t.Errorf("it said only %s", &out)
		}
	}
}

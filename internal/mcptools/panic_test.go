package mcptools

import (
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/testing/must"
)

// panics is a service whose every answer is a panic.
type panics struct{}

func (panics) RoundTrip(*http.Request) (*http.Response, error) { panic("out of order") }

func TestAPanicEndsTheRequestAlone(t *testing.T) {
	t.Parallel()
	here, there := sdk.NewInMemoryTransports()
	running, err := New(humanqa.Within("http://qa.example.com", panics{}, "test"), "test").Connect(t.Context(), there, nil)
	must.NoError(t, err)
	defer func() { _ = running.Close() }()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), here, nil)
	must.NoError(t, err)
	defer func() { _ = session.Close() }()
	call := &sdk.CallToolParams{Name: toolReport, Arguments: map[string]any{"jobId": "j"}}
	for range 2 { // the second finds the server alive
		if _, err := session.CallTool(t.Context(), call); err == nil || !strings.Contains(err.Error(), "out of order") {
			t.Errorf("got %v", err)
		}
	}
}

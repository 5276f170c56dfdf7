package mcptools

import (
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/internal/fence"
)

// WaitLimit is the longest that a tool waits: clients give up after a minute.
const WaitLimit = 45 * time.Second

// Options say where the API is.
type Options struct {
	Version string            // of this program
	API     http.RoundTripper // sends a request to the service, with the caller's key
	BaseURL string            // of the service, without a slash at its end
}

// server holds what the tools share.
type server struct {
	api  http.RoundTripper
	base string
}

const instructions = `Human testers check a web app for you. A test costs credits and takes minutes to an hour.
Ask estimate for the price. Call test_with_a_human once, then wait_for_report until it is done.
Fix what failed, call prepare_next_test with the fixes, and retest. Stop when a report passes.
Use one idempotencyKey per intended test: a repeat under the same key is never paid twice.
Ask for no human test of what a unit test or a browser script can check.
` + fence.Rule

// Tools is the server with its tools. Listen serves the streams that the library cannot.
type Tools struct {
	*sdk.Server
	calls *server
}

// New makes the server with its tools.
func New(o Options) *Tools {
	s := &server{api: o.API, base: strings.TrimSuffix(o.BaseURL, "/")}
	capabilities := &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}
	capabilities.AddExtension(tasksExtension, nil)
	server := sdk.NewServer(&sdk.Implementation{Name: "humanqa", Title: "Human QA", Version: o.Version, WebsiteURL: o.BaseURL},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: capabilities})
	s.addTools(server)
	s.addTasks(server)
	server.AddReceivingMiddleware(withHeader, s.makeTasks)
	return &Tools{Server: server, calls: s}
}

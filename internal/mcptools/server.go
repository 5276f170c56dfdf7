package mcptools

import (
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/fence"
)

// WaitLimit is the longest that a tool waits: clients give up after a minute.
const WaitLimit = 45 * time.Second

// server holds the part that the tools share.
type server struct{ api *humanqa.Client }

const instructions = `Human testers check a web app for you. A test costs credits and takes minutes to an hour.
Ask estimate for the price. Call test_with_a_human once, then wait_for_report until it is done.
Fix what failed, call prepare_next_test with the fixes, and retest. Stop when a report passes.
Use one idempotencyKey per intended test: a repeat under the same key is never paid twice.
Ask for no human test of what a unit test or a browser script can check.
` + fence.Rule

// New makes the server with its tools. The client of the API has the caller's key, unless
// the requests of the callers bring it. version is that of this program.
func New(client *humanqa.Client, version string) *sdk.Server {
	s := &server{api: client}
	capabilities := &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}
	capabilities.AddExtension(tasksExtension, nil)
	server := sdk.NewServer(&sdk.Implementation{Name: "humanqa", Title: "Human QA", Version: version, WebsiteURL: client.Base()},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: capabilities})
	s.addTools(server)
	s.addTasks(server)
	server.AddReceivingMiddleware(withHeader, s.makeTasks)
	return server
}

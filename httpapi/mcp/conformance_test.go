package mcp

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
)

var clients = flag.String("clients", "", "the folder of clients by others, installed; see make contract")

// open is an API that admits every request.
type open struct{}

func (open) ServeHTTP(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }
func (open) Stop()                                            {}

func (open) Authorize(http.ResponseWriter, *http.Request, string) (actor string, refusal *wire.Answer) {
	return "key:suite", nil
}

// TestTheOfficialSuiteIsPassed runs the protocol's conformance suite against a server of
// fixtures behind our handlers. testdata/conformance.yml names what is not passed, and why.
func TestTheOfficialSuiteIsPassed(t *testing.T) {
	if *clients == "" {
		t.Skip("make contract runs it")
	}
	suite := filepath.Join(*clients, "node_modules/@modelcontextprotocol/conformance/dist/index.js")
	node, err := filepath.Glob(filepath.Join(*clients, "node_modules/node-*/bin/node")) // the suite needs Node.js 22
	must.NoError(t, err)
	node = append(node, "node")
	baseline, err := filepath.Abs("testdata/conformance.yml")
	must.NoError(t, err)
	var h *Handler
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer suite") // it has no key
		h.ServeHTTP(w, r)
	}))
	h = New(open{}, "http://"+server.Listener.Addr().String(), "test")
	h.stateless, h.stateful = h.serving(fixtures())
	server.Start()
	defer server.Close()
	defer h.Stop()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			run := exec.CommandContext(t.Context(), node[0], suite, "server", "--url", server.URL+Path, //nolint:gosec // our own paths
				"--spec-version", version, "--suite", "all", "--expected-failures", baseline, "-o", t.TempDir())
			run.Env = append(os.Environ(), "NO_COLOR=1")
			out, err := run.CombinedOutput()
			_, summary, _ := strings.Cut(string(out), "=== SUMMARY ===")
			t.Log(summary)
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// fixtures are the tools, resources and prompts that the suite asks for by name.
func fixtures() *sdk.Server {
	accept := func(context.Context, *sdk.SubscribeRequest) error { return nil }
	leave := func(context.Context, *sdk.UnsubscribeRequest) error { return nil }
	complete := func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
		return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}, nil
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "fixtures", Version: "1"},
		&sdk.ServerOptions{SubscribeHandler: accept, UnsubscribeHandler: leave, CompletionHandler: complete})
	text := func(words string) sdk.Content { return &sdk.TextContent{Text: words} }
	picture := &sdk.ImageContent{Data: []byte("\x89PNG\r\n\x1a\n"), MIMEType: "image/png"}
	embedded := &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "test://embedded", MIMEType: "text/plain", Text: "embedded"}}
	for name, content := range map[string][]sdk.Content{
		"test_simple_text":            {text("This is a simple text response for testing.")},
		"test_image_content":          {picture},
		"test_audio_content":          {&sdk.AudioContent{Data: []byte("RIFF"), MIMEType: "audio/wav"}},
		"test_embedded_resource":      {embedded},
		"test_multiple_content_types": {text("words"), picture, embedded},
	} {
		tool(s, name, func(context.Context, *sdk.CallToolRequest) ([]sdk.Content, error) { return content, nil })
	}
	tool(s, "test_error_handling", func(context.Context, *sdk.CallToolRequest) ([]sdk.Content, error) {
		return nil, errors.New("This tool intentionally returns an error for testing")
	})
	tool(s, "test_tool_with_logging", func(ctx context.Context, req *sdk.CallToolRequest) ([]sdk.Content, error) {
		for _, step := range []string{"started", "processing data", "completed"} {
			err := req.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: "Tool execution " + step}) //nolint:staticcheck // older clients
			if err != nil {
				return nil, err
			}
		}
		return []sdk.Content{text("logged")}, nil
	})
	tool(s, "test_tool_with_progress", func(ctx context.Context, req *sdk.CallToolRequest) ([]sdk.Content, error) {
		for _, done := range []float64{0, 50, 100} {
			p := &sdk.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: done, Total: 100}
			if err := req.Session.NotifyProgress(ctx, p); err != nil {
				return nil, err
			}
		}
		return []sdk.Content{text("done")}, nil
	})
	asking(s, "test_elicitation", map[string]any{"username": map[string]any{"type": "string"}, "email": map[string]any{"type": "string"}})
	asking(s, "test_elicitation_sep1034_defaults", map[string]any{
		"name": map[string]any{"type": "string", "default": "John Doe"}, "age": map[string]any{"type": "integer", "default": 30},
		"score":    map[string]any{"type": "number", "default": 95.5},
		"status":   map[string]any{"type": "string", "enum": []string{"active", "inactive", "pending"}, "default": "active"},
		"verified": map[string]any{"type": "boolean", "default": true},
	})
	titled := []map[string]any{{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}}
	asking(s, "test_elicitation_sep1330_enums", map[string]any{
		"untitledSingle": map[string]any{"type": "string", "enum": []string{"option1", "option2"}},
		"titledSingle":   map[string]any{"type": "string", "oneOf": titled},
		"legacyEnum":     map[string]any{"type": "string", "enum": []string{"opt1", "opt2"}, "enumNames": []string{"Option One", "Option Two"}},
		"untitledMulti":  map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": []string{"option1"}}},
		"titledMulti":    map[string]any{"type": "array", "items": map[string]any{"anyOf": titled}},
	})
	tool(s, "test_sampling", func(ctx context.Context, req *sdk.CallToolRequest) ([]sdk.Content, error) {
		answer, err := req.Session.CreateMessage(ctx, &sdk.CreateMessageParams{ //nolint:staticcheck // older clients
			MaxTokens: 100, Messages: []*sdk.SamplingMessage{{Role: "user", Content: text("Test prompt for sampling")}}, //nolint:staticcheck // as above
		})
		if err != nil {
			return nil, err
		}
		return []sdk.Content{text(fmt.Sprint("LLM response: ", answer.Content))}, nil
	})
	read := func(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		c := &sdk.ResourceContents{URI: req.Params.URI, MIMEType: "text/plain", Text: "text of " + req.Params.URI}
		if strings.HasSuffix(c.URI, "binary") {
			c.MIMEType, c.Text, c.Blob = "image/png", "", picture.Data
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{c}}, nil
	}
	for _, name := range []string{"static-text", "static-binary", "watched-resource"} {
		s.AddResource(&sdk.Resource{Name: name, Description: "a fixture", MIMEType: "text/plain", URI: "test://" + name}, read)
	}
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "template", Description: "a fixture", URITemplate: "test://template/{id}/data"}, read)
	for name, content := range map[string]sdk.Content{
		"test_simple_prompt": text("This is a simple prompt for testing."), "test_prompt_with_image": picture,
	} {
		prompt(s, name, func(map[string]string) sdk.Content { return content })
	}
	prompt(s, "test_prompt_with_arguments",
		func(in map[string]string) sdk.Content { return text(in["arg1"] + " and " + in["arg2"]) }, "arg1", "arg2")
	prompt(s, "test_prompt_with_embedded_resource", func(in map[string]string) sdk.Content {
		return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: in["resourceUri"], MIMEType: "text/plain", Text: "embedded"}}
	}, "resourceUri")
	return s
}

func tool(s *sdk.Server, name string, do func(context.Context, *sdk.CallToolRequest) ([]sdk.Content, error)) {
	sdk.AddTool(s, &sdk.Tool{Name: name, Description: "a fixture"},
		func(ctx context.Context, req *sdk.CallToolRequest, _ any) (*sdk.CallToolResult, any, error) {
			content, err := do(ctx, req)
			return &sdk.CallToolResult{Content: content}, nil, err
		})
}

// asking adds a tool that asks the client's person for a form.
func asking(s *sdk.Server, name string, properties map[string]any) {
	tool(s, name, func(ctx context.Context, req *sdk.CallToolRequest) ([]sdk.Content, error) {
		answer, err := req.Session.Elicit(ctx, &sdk.ElicitParams{
			Message: "Please fill in", RequestedSchema: map[string]any{"type": "object", "properties": properties},
		})
		if err != nil {
			return nil, err
		}
		return []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("action=%s, content=%v", answer.Action, answer.Content)}}, nil
	})
}

func prompt(s *sdk.Server, name string, content func(map[string]string) sdk.Content, arguments ...string) {
	p := &sdk.Prompt{Name: name, Description: "a fixture"}
	for _, argument := range arguments {
		p.Arguments = append(p.Arguments, &sdk.PromptArgument{Name: argument, Required: true})
	}
	s.AddPrompt(p, func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: content(req.Params.Arguments)}}}, nil
	})
}

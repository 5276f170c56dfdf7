package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

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
	inputs(s)
	diagnostics(s)
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

// form asks the client's person for one text, or for a yes.
func form(message, field, kind string) *sdk.ElicitParams {
	return &sdk.ElicitParams{Message: message, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{field: map[string]any{"type": kind}}, "required": []string{field},
	}}
}

// filled is a field of the form that came back; nil: none did.
func filled(in sdk.InputResponseMap, form, field string) any {
	if answer, ok := in[form].(*sdk.ElicitResult); ok && answer.Action == "accept" {
		return answer.Content[field]
	}
	return nil
}

// completed is the text of a model's answer.
func completed(in sdk.InputResponseMap, question string) string {
	if answer, ok := in[question].(*sdk.CreateMessageWithToolsResult); ok { //nolint:staticcheck // the suite asks for it
		for _, c := range answer.Content {
			if text, ok := c.(*sdk.TextContent); ok {
				return text.Text
			}
		}
	}
	return ""
}

// needing adds a tool that gives words once it has what it asks for.
func needing(s *sdk.Server, name string, answer func(*sdk.CallToolRequest) (words string, ask sdk.InputRequestMap, state string, err error)) {
	sdk.AddTool(s, &sdk.Tool{Name: name, Description: "a fixture"},
		func(_ context.Context, req *sdk.CallToolRequest, _ any) (*sdk.CallToolResult, any, error) {
			words, ask, state, err := answer(req)
			switch {
			case err != nil:
				return nil, nil, err
			case words != "":
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: words}}}, nil, nil
			}
			return &sdk.CallToolResult{InputRequests: ask, RequestState: state}, nil, nil
		})
}

// signed is a state that the suite changes on its way back.
const signed = "signed"

// inputs are the tools and the prompt that ask within their result.
func inputs(s *sdk.Server) {
	name, confirm := form("What is your name?", "name", "string"), form("Please confirm", "ok", "boolean")
	question := func(text string) *sdk.CreateMessageParams { //nolint:staticcheck // the suite asks for it
		return &sdk.CreateMessageParams{MaxTokens: 50, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}}} //nolint:staticcheck // as above
	}
	roots := &sdk.ListRootsParams{} //nolint:staticcheck // as above
	one := func(tool string, ask sdk.InputRequestMap, words func(sdk.InputResponseMap) string) {
		needing(s, "test_input_required_result_"+tool, func(req *sdk.CallToolRequest) (string, sdk.InputRequestMap, string, error) {
			return words(req.Params.InputResponses), ask, signed, nil
		})
	}
	one("elicitation", sdk.InputRequestMap{"user_name": name}, func(in sdk.InputResponseMap) string {
		if got, _ := filled(in, "user_name", "name").(string); got != "" {
			return "Hello, " + got + "!"
		}
		return ""
	})
	one("sampling", sdk.InputRequestMap{"capital_question": question("What is the capital of France?")}, func(in sdk.InputResponseMap) string {
		return completed(in, "capital_question")
	})
	one("list_roots", sdk.InputRequestMap{"client_roots": roots}, func(in sdk.InputResponseMap) string {
		if got, ok := in["client_roots"].(*sdk.ListRootsResult); ok { //nolint:staticcheck // as above
			return fmt.Sprintf("%d roots", len(got.Roots))
		}
		return ""
	})
	one("multiple_inputs", sdk.InputRequestMap{"user_name": name, "greeting": question("Generate a greeting"), "client_roots": roots},
		func(in sdk.InputResponseMap) string {
			if len(in) < 3 {
				return ""
			}
			return fmt.Sprint(completed(in, "greeting"), " ", filled(in, "user_name", "name"))
		})
	for _, tool := range []string{"request_state", "tampered_state"} {
		needing(s, "test_input_required_result_"+tool, func(req *sdk.CallToolRequest) (string, sdk.InputRequestMap, string, error) {
			if state := req.Params.RequestState; state != "" && state != signed {
				return "", nil, "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the state is another one"}
			}
			if filled(req.Params.InputResponses, "confirm", "ok") != nil && req.Params.RequestState == signed {
				return "state-ok", nil, "", nil
			}
			return "", sdk.InputRequestMap{"confirm": confirm}, signed, nil
		})
	}
	needing(s, "test_input_required_result_multi_round", func(req *sdk.CallToolRequest) (string, sdk.InputRequestMap, string, error) {
		first, again := strings.CutPrefix(req.Params.RequestState, "2 ")
		switch {
		case req.Params.RequestState == "":
			return "", sdk.InputRequestMap{"step1": name}, "1", nil
		case !again:
			color := form("What is your favorite color?", "color", "string")
			return "", sdk.InputRequestMap{"step2": color}, fmt.Sprint("2 ", filled(req.Params.InputResponses, "step1", "name")), nil
		}
		return fmt.Sprint(first, " likes ", filled(req.Params.InputResponses, "step2", "color")), nil, "", nil
	})
	needing(s, "test_input_required_result_capabilities", func(req *sdk.CallToolRequest) (string, sdk.InputRequestMap, string, error) {
		ask, has := sdk.InputRequestMap{}, req.ClientCapabilities()
		if has != nil && has.Elicitation != nil {
			ask["user_name"] = name
		}
		if has != nil && has.Sampling != nil { //nolint:staticcheck // the suite asks for it
			ask["greeting"] = question("Generate a greeting")
		}
		if has != nil && has.RootsV2 != nil { //nolint:staticcheck // the suite asks for it
			ask["client_roots"] = roots
		}
		if len(req.Params.InputResponses) > 0 || len(ask) == 0 {
			return "done", nil, "", nil
		}
		return "", ask, "", nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "test_input_required_result_prompt", Description: "a fixture"},
		func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			if got := filled(req.Params.InputResponses, "user_context", "context"); got != nil {
				words := &sdk.TextContent{Text: fmt.Sprint("Context: ", got)}
				return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: words}}}, nil
			}
			return &sdk.GetPromptResult{InputRequests: sdk.InputRequestMap{"user_context": form("Which context?", "context", "string")}}, nil
		})
}

// diagnostics are the tools by which the suite looks at schemas, headers, capabilities and
// lists that change.
func diagnostics(s *sdk.Server) {
	words := func(text string) ([]sdk.Content, error) { return []sdk.Content{&sdk.TextContent{Text: text}}, nil }
	for name, schema := range map[string]string{
		"json_schema_2020_12_tool": `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
			"$defs": {"address": {"$anchor": "addressDef", "type": "object",
				"properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
			"properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
				"contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}},
			"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
			"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
			"then": {"required": ["phone"]}, "else": {"required": ["email"]}, "additionalProperties": false}`,
		"test_x_mcp_header": `{"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "level": {"type": "integer"}}}`,
	} {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "a fixture", InputSchema: json.RawMessage(schema)},
			func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, any, error) {
				content, err := words("called")
				return &sdk.CallToolResult{Content: content}, nil, err
			})
	}
	tool(s, "test_missing_capability", func(_ context.Context, req *sdk.CallToolRequest) ([]sdk.Content, error) {
		if has := req.ClientCapabilities(); has != nil && has.Sampling != nil { //nolint:staticcheck // the suite asks for it
			return words("sampling is there")
		}
		needs := &sdk.ClientCapabilities{Sampling: &sdk.SamplingCapabilities{}} //nolint:staticcheck // the suite asks for it
		data, err := json.Marshal(sdk.MissingRequiredClientCapabilityData{RequiredCapabilities: needs})
		if err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "it needs sampling", Data: data}
	})
	tool(s, "test_streaming_elicitation", func(context.Context, *sdk.CallToolRequest) ([]sdk.Content, error) {
		return words("no request of the server's")
	})
	tool(s, "test_logging_tool", func(ctx context.Context, req *sdk.CallToolRequest) ([]sdk.Content, error) {
		if err := req.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: "dropped unless asked for"}); err != nil { //nolint:staticcheck // the suite asks for it
			return nil, err
		}
		return words("logged")
	})
	tool(s, "test_trigger_tool_change", func(context.Context, *sdk.CallToolRequest) ([]sdk.Content, error) {
		tool(s, "another", func(context.Context, *sdk.CallToolRequest) ([]sdk.Content, error) { return nil, nil })
		return words("another tool")
	})
	tool(s, "test_trigger_prompt_change", func(context.Context, *sdk.CallToolRequest) ([]sdk.Content, error) {
		prompt(s, "another", func(map[string]string) sdk.Content { return &sdk.TextContent{} })
		return words("another prompt")
	})
}

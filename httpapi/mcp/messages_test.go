package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"humanqa/domain/account"
	"humanqa/httpapi/mcp"
	"humanqa/internal/testing/must"
)

// flat finds the parts of a schema for which some clients refuse all tools of a session.
func flat(t *testing.T, at string, schema map[string]any) {
	t.Helper()
	kind, one := schema["type"].(string)
	if !one || schema["$ref"] != nil {
		t.Errorf("%s has the type %v and refers to %v", at, schema["type"], schema["$ref"])
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		flat(t, at+"."+name, property.(map[string]any))
	}
	if items, ok := schema["items"].(map[string]any); ok {
		flat(t, at+"[]", items)
	} else if kind == "array" {
		t.Errorf("%s is an array without items", at)
	}
}

func TestEachClientCanReadTheInputOfEveryTool(t *testing.T) {
	t.Parallel()
	a := start(t)
	c := a.connect(a.key(account.ScopeFull), "")
	for tool, err := range c.Tools(t.Context(), nil) {
		must.NoError(t, err)
		raw, err := json.Marshal(tool.InputSchema)
		must.NoError(t, err)
		var schema map[string]any
		must.NoError(t, json.Unmarshal(raw, &schema))
		flat(t, tool.Name, schema)
	}
}

const begin = `{"jsonrpc":"2.0","id":7,"method":"initialize",
	"params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`

const listTools = `{"jsonrpc":"2.0","id":%s,"method":"tools/list"}`

// Some clients take JSON alone, some take events alone, and some name nothing.
func TestAnAnswerHasTheFormThatItsClientTakes(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.key(account.ScopeFull)
	for accept, want := range map[string]string{
		"application/json, text/event-stream": "text/event-stream", "text/event-stream": "text/event-stream",
		"text/event-stream;q=0.9, application/json;q=0.5": "text/event-stream", "application/json": "application/json", "": "application/json",
		"*/*": "application/json", "application/json, text/plain, */*": "application/json", "application/json, text/event-stream;q=0": "application/json",
	} {
		for _, version := range []string{"", "2025-11-25"} {
			got := a.send(key, "POST", mcp.Path, begin, "Accept", accept, "Mcp-Protocol-Version", version)
			if got.status != http.StatusOK || got.header.Get("Content-Type") != want {
				t.Errorf("%q of version %q: %d %s %s", accept, version, got.status, got.header.Get("Content-Type"), got.body)
			}
			if passedOn := got.header.Get("X-Accel-Buffering") == "no"; passedOn != (want != "application/json") {
				t.Errorf("%q of version %q: a proxy passes it on at once: %v", accept, version, passedOn)
			}
			text := got.body
			if want != "application/json" {
				_, text, _ = strings.Cut(text, "data: ")
			}
			var answer struct {
				ID     int
				Result struct{ ProtocolVersion string }
			}
			if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.ID != 7 || answer.Result.ProtocolVersion != "2025-11-25" {
				t.Errorf("%q of version %q: %v in %s", accept, version, err, text)
			}
		}
	}
}

func TestEachRefusalIsAnErrorOfTheProtocol(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.key(account.ScopeFull)
	one := func(id string) string { return fmt.Sprintf(listTools, id) }
	for name, sent := range map[string]struct {
		key, method, body string
		headers           []string
		status            int
		code              int
		id                string
	}{
		"no key":                     {"", "POST", one("7"), nil, 401, -32600, "null"},
		"no JSON":                    {key, "POST", `{"jsonrpc":`, nil, 400, -32700, "null"},
		"no message":                 {key, "POST", `{"id":"x"}`, nil, 400, -32600, `"x"`},
		"another encoding":           {key, "POST", one("7"), []string{"Content-Encoding", "br"}, 415, -32600, "null"},
		"an unknown session":         {key, "POST", one(`"a-7"`), []string{"Mcp-Session-Id", "x"}, 404, -32600, `"a-7"`},
		"an old version":             {key, "POST", one("0"), []string{"Mcp-Protocol-Version", "2020-01-01"}, 400, -32600, "0"},
		"another type":               {key, "POST", one("-1"), []string{"Content-Type", "text/plain"}, 415, -32600, "-1"},
		"a fraction":                 {key, "POST", one("1.5"), nil, 400, -32600, "1.5"},
		"a large number":             {key, "POST", one("9007199254740993"), nil, 400, -32600, "9007199254740993"},
		"no id":                      {key, "POST", one("null"), nil, 400, -32600, "null"},
		"another site":               {key, "POST", one("7"), []string{"Origin", "https://evil.example"}, 403, -32600, "null"},
		"another method":             {key, "PUT", one("7"), nil, 405, -32600, "null"},
		"a stream without a session": {key, "GET", "", nil, 400, -32600, "null"},
	} {
		got := a.send(sent.key, sent.method, mcp.Path, sent.body, sent.headers...)
		var fault struct {
			JSONRPC string
			ID      json.RawMessage
			Error   struct {
				Code    int
				Message string
			}
		}
		err := json.Unmarshal([]byte(got.body), &fault)
		if err != nil || got.status != sent.status || got.header.Get("Content-Type") != "application/json" || fault.JSONRPC != "2.0" ||
			fault.Error.Code != sent.code || fault.Error.Message == "" || string(fault.ID) != sent.id {
			t.Errorf("%s: %d %v %s", name, got.status, got.header, got.body)
		}
	}
}

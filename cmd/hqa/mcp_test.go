package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/internal/testing/must"
)

// agentStartsClient has an agent start the client, which speaks the protocol on its input and output.
func agentStartsClient(t *testing.T, s *qa) {
	key := s.account(100, true)
	started := exec.CommandContext(t.Context(), os.Args[0], "mcp")
	started.Env = append(os.Environ(), runAsClient+"=1", "HQA_URL="+s.url, "HQA_API_KEY="+key)
	started.Stderr = os.Stderr
	client := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: started}, nil)
	must.NoError(t, err)
	defer func() { _ = session.Close() }()
	made, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "test_with_a_human", Arguments: map[string]any{
		"url": "https://shop.example.com/", "feature": "Pay by card", "checks": []string{"pay by card"}, "idempotencyKey": "k",
	}})
	must.NoError(t, err)
	out, _ := made.StructuredContent.(map[string]any)
	if made.IsError || out["jobId"] == "" || out["creditsCharged"] != 5.0 {
		t.Fatalf("got %+v", made)
	}
	now, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "get_report", Arguments: map[string]any{"jobId": out["jobId"]}})
	must.NoError(t, err)
	if report, _ := now.StructuredContent.(map[string]any); report["done"] != false {
		t.Errorf("got %+v", now)
	}
}

// A line that is no message costs the client an error, and not its session.
func TestABadLineDoesNotEndTheSession(t *testing.T) {
	t.Parallel()
	in, lines := io.Pipe()
	answers, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(t.Context(), []string{"mcp"}, world{
			environ: []string{"HQA_URL=http://127.0.0.1:1", "HQA_API_KEY=x"}, in: in, out: out, told: os.Stderr, dir: os.TempDir(),
		})
	}()
	go func() {
		for _, line := range []string{
			"\ufeff" + `{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Starting up …", "", `{"jsonrpc":"2.0",`, "[]", `{"id":7}`,
			`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `{"jsonrpc":"2.0","id":"b","method":"no/such"}`, `{"jsonrpc":"2.0","id":9,"method":"ping"}`,
		} {
			_, _ = io.WriteString(lines, line+"\n") // a client that ended shows below
		}
	}()
	got, want := map[string]int{}, map[string]int{`"a" 0`: 1, "null -32700": 2, "null -32600": 1, "7 -32600": 1, "1.5 -32600": 1, `"b" -32601`: 1, "9 0": 1}
	told := bufio.NewScanner(answers)
	for range 8 {
		if !told.Scan() {
			t.Fatalf("it ends behind %v", got)
		}
		var answer struct {
			ID    json.RawMessage
			Error struct{ Code int }
		}
		must.NoError(t, json.Unmarshal(told.Bytes(), &answer))
		got[fmt.Sprintf("%s %d", answer.ID, answer.Error.Code)]++
	}
	if !maps.Equal(got, want) {
		t.Errorf("answers: %v, want %v", got, want)
	}
	must.NoError(t, lines.Close())
	if code := <-code; code != exitPassed {
		t.Errorf("exit %d", code)
	}
}

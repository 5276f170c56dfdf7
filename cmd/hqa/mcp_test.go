package main

import (
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

package mcp_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/domain/account"
	"humanqa/httpapi/mcp"
	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/mcptools"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// A wait that brings no news tells what is known. While it lasts, a client that gave a
// token hears of each item.
func TestAWaitTellsOfItsProgress(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.keyOf(a.Account("acme", 100, false), account.ScopeFull)
	notified := make(chan *sdk.ProgressNotificationParams, 10)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, n *sdk.ProgressNotificationClientRequest) { notified <- n.Params },
	})
	c, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: a.url + mcp.Path, HTTPClient: &http.Client{Transport: bearer{key: key}}, DisableStandaloneSSE: true,
	}, nil)
	must.NoError(t, err)
	defer func() { _ = c.Close() }()
	id, _ := a.did(c, "test_with_a_human", shop(nil))["jobId"].(string)
	now := a.did(c, "wait_for_report", map[string]any{"jobId": id, "seconds": 4})
	if now["status"] != "pending" || now["progress"] == "" || now["counts"].(map[string]any)["totalItems"] != 2.0 {
		t.Errorf("a wait without news: %v", now)
	}
	w := a.claims(id)
	wait := &sdk.CallToolParams{Name: "wait_for_report", Arguments: map[string]any{"jobId": id}}
	wait.SetProgressToken("token")
	over := make(chan map[string]any, 1)
	go func() {
		result, err := c.CallTool(t.Context(), wait)
		if err != nil {
			t.Error(err)
			close(over)
			return
		}
		out, _ := result.StructuredContent.(map[string]any)
		over <- out
	}()
	hears := func(progress float64, words string) {
		t.Helper()
		select {
		case got := <-notified:
			if got.ProgressToken != "token" || got.Progress != progress || got.Total != 2 || got.Message != words {
				t.Errorf("notified of %+v, want %s", got, words)
			}
		case got := <-over:
			t.Fatalf("the wait ended first: %v", got)
		case <-time.After(eventually.Patience):
			t.Fatalf("nothing says %s", words)
		}
	}
	hears(0, "0 of 2 checked, 0 failed")
	w.checks("item-1", "fail")
	hears(1, "1 of 2 checked, 1 failed")
	w.checks("item-2", "pass")
	hears(2, "2 of 2 checked, 1 failed")
	w.does("POST", "/complete", `{"summary":"done"}`)
	if got := <-over; got["done"] != true || got["passed"] != false {
		t.Errorf("the wait ended with %v", got)
	}
}

// Tasks are polled: the library would acknowledge a stream of notifications that never come.
func TestAStreamOfTasksIsNoMethod(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.key(account.ScopeFull)
	const method = "subscriptions/listen"
	listen := map[string]any{"notifications": map[string]any{"taskIds": []string{"job"}, "toolsListChanged": true}}
	if got, refused := a.call(key, method, "", listen, true); refused["code"] != -32601.0 {
		t.Errorf("by HTTP: %v, %v", got, refused)
	}
	client, err := humanqa.New(a.url, key, "test")
	must.NoError(t, err)
	var out strings.Builder
	must.NoError(t, mcptools.Run(t.Context(), mcptools.New(client, "test"), strings.NewReader(a.message(method, listen, true)+"\n"), &out))
	if !strings.Contains(out.String(), "-32601") {
		t.Errorf("on standard output: %s", &out)
	}
}

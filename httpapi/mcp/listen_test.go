package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
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
		case <-time.After(time.Minute):
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

// drawnMark is a fence's, which is drawn anew for each answer.
var drawnMark = regexp.MustCompile(`[A-Z2-7]{26}`)

// stream is an open request for notifications.
type stream struct {
	*agents
	status int
	header http.Header
	lines  *bufio.Scanner
	end    context.CancelFunc
}

// listens asks for notifications of tasks.
func (a *agents) listens(key string, declares bool, tasks ...string) *stream {
	a.T.Helper()
	return a.listensAs(key, declares, tasks)
}

func (a *agents) listensAs(key string, declares bool, tasks []string, more ...string) *stream {
	a.T.Helper()
	ctx, cancel := context.WithCancel(a.T.Context())
	body := a.message(mcptools.ListenMethod, map[string]any{"notifications": map[string]any{"taskIds": tasks}}, declares)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+mcp.Path, strings.NewReader(body))
	a.Must(err)
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	of := append(headers(mcptools.ListenMethod, ""), more...)
	for i := 0; i < len(of); i += 2 {
		r.Header.Set(of[i], of[i+1])
	}
	begins := time.AfterFunc(eventually.Patience, cancel)
	resp, err := http.DefaultClient.Do(r)
	a.Must(err)
	begins.Stop()
	a.T.Cleanup(func() { cancel(); _ = resp.Body.Close() })
	return &stream{agents: a, status: resp.StatusCode, header: resp.Header, lines: bufio.NewScanner(resp.Body), end: cancel}
}

// message is the next one of the stream.
type message struct {
	Method string
	Params map[string]any
	Result map[string]any
	Error  map[string]any
}

func (s *stream) next() (m message) {
	s.T.Helper()
	for s.lines.Scan() {
		data, ok := strings.CutPrefix(s.lines.Text(), "data: ")
		if !ok && !strings.HasPrefix(s.lines.Text(), "{") {
			continue
		}
		if !ok {
			data = s.lines.Text()
		}
		s.Must(json.Unmarshal([]byte(data), &m))
		return m
	}
	s.T.Fatalf("the stream ended: %v", s.lines.Err())
	return m
}

// tells waits for a notification of that task with that status and words.
func (s *stream) tells(id, status, words string) map[string]any {
	s.T.Helper()
	m := s.next()
	of, _ := m.Params["_meta"].(map[string]any)
	said, _ := m.Params["statusMessage"].(string)
	if m.Method != "notifications/tasks" || m.Params["taskId"] != id || m.Params["status"] != status || !strings.Contains(said, words) ||
		of["io.modelcontextprotocol/subscriptionId"] != 1.0 || m.Params["resultType"] != nil {
		s.T.Fatalf("told %+v, want %s, %q", m, status, words)
	}
	return m.Params
}

// Notifications have no other form, and must not gather in the service.
func TestAClientThatTakesNoEventsGetsThemWhenItListens(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.keyOf(a.Account("acme", 100, false), account.ScopeFull)
	id, _ := a.submitted(key, "one", true)["taskId"].(string)
	heard := a.listensAs(key, true, []string{id}, "Accept", "application/json")
	if m := heard.next(); heard.header.Get("Content-Type") != "text/event-stream" || fmt.Sprint(m.Params["notifications"]) != "map[taskIds:["+id+"]]" {
		t.Errorf("%s: %+v", heard.header.Get("Content-Type"), m)
	}
}

func TestAClientHearsOfItsTasks(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.keyOf(a.Account("acme", 100, false), account.ScopeFull)
	id, _ := a.submitted(key, "one", true)["taskId"].(string)
	if got := a.listens(key, false, id); got.status != http.StatusBadRequest || got.next().Error["code"] != -32021.0 {
		t.Errorf("a client that declares no tasks got %d", got.status)
	}
	strange := a.listens(a.key(account.ScopeFull), true, id)
	if m := strange.next(); fmt.Sprint(m.Params["notifications"]) != "map[taskIds:[]]" {
		t.Errorf("another account was promised %+v", m)
	}
	if m := strange.next(); m.Result["resultType"] != "complete" {
		t.Errorf("another account was told %+v", m)
	}

	s := a.listens(key, true, id, "no-job", id)
	if m := s.next(); m.Method != "notifications/subscriptions/acknowledged" || fmt.Sprint(m.Params["notifications"]) != "map[taskIds:["+id+"]]" {
		t.Fatalf("acknowledged %+v", m)
	}
	s.tells(id, "working", "")
	w := a.claims(id)
	s.tells(id, "working", "0 of 2 checked")
	w.checks("item-1", "fail")
	s.tells(id, "working", "1 of 2 checked, 1 failed")
	asked := w.asks(hostile)
	got := s.tells(id, "input_required", "1 of 2 checked")
	if form, err := json.Marshal(got["inputRequests"]); err != nil || !strings.Contains(string(form), asked) || !strings.Contains(string(form), "[data ") {
		t.Errorf("the question is %s, %v", form, err)
	}
	answer := map[string]any{"taskId": id, "inputResponses": map[string]any{
		asked: map[string]any{"action": "accept", "content": map[string]any{"answer": "yes"}},
	}}
	if _, refused := a.call(key, "tasks/update", id, answer, true); refused != nil {
		t.Error(refused)
	}
	s.tells(id, "working", "1 of 2 checked")
	w.checks("item-2", "pass")
	s.tells(id, "working", "2 of 2 checked, 1 failed")
	w.does("POST", "/complete", `{"summary":"done"}`)
	last := s.tells(id, "completed", "")
	polled := a.task(key, id)
	for _, meta := range []map[string]any{last, polled} {
		delete(meta, "_meta")
	}
	delete(polled, "resultType")
	words := func(task map[string]any) string { return drawnMark.ReplaceAllString(fmt.Sprint(task), "MARK") }
	if words(last) != words(polled) {
		t.Errorf("the notification %v is not the task %v", last, polled)
	}
	if m := s.next(); m.Result["resultType"] != "complete" {
		t.Errorf("the stream ended with %+v", m)
	}
	for s.lines.Scan() {
		if s.lines.Text() != "" {
			t.Errorf("behind the end comes %s", s.lines.Text())
		}
	}
}

// A key has a bounded number of streams. One that is given up is given back, and none
// holds up a service that stops.
func TestStreamsOfTasksAreBounded(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.keyOf(a.Account("acme", 100, false), account.ScopeFull)
	id, _ := a.submitted(key, "one", true)["taskId"].(string)
	open := make([]*stream, mcptools.MaxListens)
	for i := range open {
		open[i] = a.listens(key, true, id)
		open[i].next()
	}
	if got := a.listens(key, true, id); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("one stream too many got %d", got.status)
	}
	open[0].end()
	for deadline := time.Now().Add(time.Minute); ; { // the service finds out that the client left
		got := a.listens(key, true, id)
		if got.status == http.StatusOK {
			open[0] = got
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a stream that was left is not given back")
		}
	}
	ended := make(chan struct{}, len(open))
	for _, s := range open {
		go func() {
			for s.lines.Scan() {
				continue
			}
			ended <- struct{}{}
		}()
	}
	a.handler.Stop()
	for range open {
		<-ended
	}
}

// A client on standard input and output hears of its tasks, too.
func TestAClientOnItsInputHearsOfItsTasks(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.keyOf(a.Account("acme", 100, false), account.ScopeFull)
	id, _ := a.submitted(key, "one", true)["taskId"].(string)
	in, write := io.Pipe()
	read, out := io.Pipe()
	client, err := humanqa.New(a.url, key, "test")
	must.NoError(t, err)
	tools := mcptools.New(client, "test")
	over := make(chan error, 1)
	go func() { over <- tools.Run(t.Context(), in, out) }()
	s := &stream{agents: a, lines: bufio.NewScanner(read)}
	say := func(text string) {
		_, err := io.WriteString(write, text+"\n")
		must.NoError(t, err)
	}
	say(a.message(mcptools.ListenMethod, map[string]any{"notifications": map[string]any{"taskIds": []string{id}}}, true))
	if m := s.next(); m.Method != "notifications/subscriptions/acknowledged" {
		t.Fatalf("acknowledged %+v", m)
	}
	s.tells(id, "working", "")
	a.claims(id)
	s.tells(id, "working", "0 of 2 checked")
	say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	say(strings.Replace(a.message("tasks/get", map[string]any{"taskId": id}, true), `"id":1`, `"id":2`, 1))
	if m := s.next(); m.Result["taskId"] != id {
		t.Errorf("behind the cancelled stream comes %+v", m)
	}
	must.NoError(t, write.Close())
	if err := <-over; err != nil {
		t.Logf("the client left: %v", err)
	}
}

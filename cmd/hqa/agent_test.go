package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/internal/testing/must"
)

var reportAfter = flag.Duration("report.after", 3*time.Second, "how long an agent waits for its report; make torture takes 8 minutes")

// requestLimit is how long one request of a usual client may last.
const requestLimit = time.Minute

// rpc is a JSON-RPC request of a client that takes tasks, of revision 2026-07-28.
func rpc(id int, method string, params map[string]any) []byte {
	params["_meta"] = map[string]any{
		sdk.MetaKeyProtocolVersion: "2026-07-28",
		sdk.MetaKeyClientCapabilities: map[string]any{
			"extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}},
		},
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		panic(err) // it is made of texts
	}
	return body
}

// resultOf reads the answer to a request; refusals are errors.
func resultOf(answer []byte) (map[string]any, error) {
	for line := range strings.Lines(string(answer)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			answer = []byte(data)
		}
	}
	var out struct{ Result, Error map[string]any }
	if err := json.Unmarshal(answer, &out); err != nil {
		return nil, fmt.Errorf("%w in %s", err, answer)
	}
	if out.Error != nil {
		return nil, fmt.Errorf("refused: %v", out.Error)
	}
	return out.Result, nil
}

// post sends a JSON-RPC request by HTTP. name is that of the tool, or the task's id.
func (s *qa) post(key, method, name string, params map[string]any) (map[string]any, error) {
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/mcp", bytes.NewReader(rpc(1, method, params)))
	if err != nil {
		return nil, err
	}
	for header, value := range map[string]string{
		"Authorization": "Bearer " + key, "Accept": "application/json, text/event-stream", "Content-Type": "application/json",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		req.Header.Set(header, value)
	}
	res, err := (&http.Client{Timeout: requestLimit}).Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	return resultOf(answer)
}

func (s *qa) task(key, id string) (map[string]any, error) {
	return s.post(key, "tasks/get", id, map[string]any{"taskId": id})
}

// submitTask submits a test as a task and gives its id.
func (s *qa) submitTask(key string) string {
	s.t.Helper()
	made, err := s.post(key, "tools/call", "test_with_a_human", map[string]any{"name": "test_with_a_human", "arguments": map[string]any{
		"url": "https://shop.example.com/", "feature": "Pay by card", "idempotencyKey": "k",
		"checks": []string{"The page opens", "The cart works", "A mail arrives"},
	}})
	must.NoError(s.t, err)
	id, _ := made["taskId"].(string)
	if made["resultType"] != "task" || made["status"] != "working" || id == "" {
		s.t.Fatalf("got %v", made)
	}
	return id
}

// agent is a client on standard input and output, in a process of its own.
type agent struct {
	*launched
	in io.WriteCloser
	id int
}

func (u *user) agent() *agent {
	u.t.Helper()
	read, write, err := os.Pipe()
	must.NoError(u.t, err)
	defer func() { _ = read.Close() }() // the process has its own
	return &agent{launched: u.launchOn(read, "mcp"), in: write}
}

func (a *agent) send(method string, params map[string]any) {
	a.t.Helper()
	a.id++
	_, err := a.in.Write(append(rpc(a.id, method, params), '\n'))
	must.NoError(a.t, err)
}

func (a *agent) task(id string) map[string]any {
	a.t.Helper()
	a.send("tasks/get", map[string]any{"taskId": id})
	got, err := resultOf([]byte(a.until(fmt.Sprintf(`"id":%d`, a.id))))
	must.NoError(a.t, err)
	return got
}

// The task's id is the job's, and the log keeps it: neither side remembers it.
func taskOutlivesKills(t *testing.T, s *qa) {
	key := s.account(100, true)
	id := s.submitTask(key)
	u := s.user(t, key)
	first := u.agent()
	if got := first.task(id); got["status"] != "working" {
		t.Errorf("at first %v", got)
	}
	s.kill()
	if got, err := s.task(key, id); err == nil {
		t.Errorf("a dead service answered %v", got)
	}
	must.NoError(t, first.cmd.Process.Kill())
	first.exit()

	s.start()
	got, err := s.task(key, id)
	must.NoError(t, err)
	if got["status"] != "working" || got["taskId"] != id {
		t.Errorf("behind the restart %v", got)
	}
	if again := s.submitTask(key); again != id || s.credits(key) != 95 {
		t.Errorf("the same submission made %s beside %s, and left %d credits of 100", again, id, s.credits(key))
	}
	second := u.agent()
	if got := second.task(id); got["status"] != "working" {
		t.Errorf("before the second end %v", got)
	}
	s.kill() // this client stays, and asks again
	s.start()
	s.play(key, id, "item-2")
	got = second.task(id)
	result, _ := got["result"].(map[string]any)
	report, _ := result["structuredContent"].(map[string]any)
	if got["status"] != "completed" || report["passed"] != false || report["jobId"] != id ||
		!strings.Contains(fmt.Sprint(report), "[data ") {
		t.Errorf("at last %v", got)
	}
}

// waited is what a client saw until its report came.
type waited struct {
	requests int
	longest  time.Duration // of one request
	whole    time.Duration
	progress []string
	err      error
}

// until repeats a request until it says that the report is there.
func (w *waited) until(done func() (bool, error)) {
	began := time.Now()
	for over := false; !over && w.err == nil; {
		asked := time.Now()
		over, w.err = done()
		w.requests++
		w.longest = max(w.longest, time.Since(asked))
	}
	w.whole = time.Since(began)
}

// A report that takes far longer than a client's longest request reaches it by repeated
// waits and by polls of the task.
func waitOutlastsRequests(t *testing.T, s *qa) {
	key, checker := s.account(100, false), s.checker()
	id := s.submitTask(key)
	claim := s.call("POST", "/v1/checker/claims", checker, map[string]string{"jobId": id})
	raw, err := json.Marshal(claim["claimToken"])
	must.NoError(t, err)
	under := func(method, path string, body any) {
		s.call(method, "/v1/checker/jobs/"+id+path, checker, body, "X-Claim-Token", strings.Trim(string(raw), `"`))
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: s.url + "/mcp", DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Timeout: requestLimit, Transport: keyed(key)},
	}, nil)
	must.NoError(t, err)
	defer func() { _ = session.Close() }()

	var calls, polls waited
	var clients sync.WaitGroup
	clients.Go(func() {
		seconds := min(45, max(1, int(*reportAfter/time.Second)/3))
		calls.until(func() (bool, error) {
			answer, err := session.CallTool(t.Context(), &sdk.CallToolParams{
				Name: "wait_for_report", Arguments: map[string]any{"jobId": id, "seconds": seconds},
			})
			if err != nil {
				return false, err
			}
			now, _ := answer.StructuredContent.(map[string]any)
			calls.progress = append(calls.progress, fmt.Sprint(now["progress"]))
			if now["done"] != true && now["status"] != "in_progress" {
				return false, fmt.Errorf("a wait told %v", now)
			}
			return now["done"] == true, nil
		})
	})
	clients.Go(func() {
		polls.until(func() (bool, error) {
			now, err := s.task(key, id)
			if err != nil {
				return false, err
			}
			pause, _ := now["pollIntervalMs"].(float64)
			if now["status"] != "completed" {
				<-time.After(min(time.Duration(pause)*time.Millisecond, *reportAfter/3))
			}
			return now["status"] == "completed", nil
		})
	})
	for i := range 3 {
		<-time.After(*reportAfter / 4) // the checker works that long
		under("PUT", fmt.Sprintf("/items/item-%d", i+1), map[string]string{"status": "pass"})
	}
	<-time.After(*reportAfter / 4)
	under("POST", "/complete", map[string]string{"summary": "done"})
	clients.Wait()
	for by, w := range map[string]waited{"wait_for_report": calls, "tasks/get": polls} {
		t.Logf("%s: the report came after %s and %d requests, the longest of %s", by, w.whole.Round(time.Second), w.requests, w.longest.Round(time.Second))
		// No client is kept busy, either.
		if w.err != nil || w.requests < 2 || w.longest >= requestLimit || w.requests > 2+int(w.whole/time.Second) {
			t.Errorf("%s: %+v", by, w)
		}
	}
	t.Logf("the waits told: %s", strings.Join(slices.Compact(calls.progress), "; "))
}

// keyed sends a key with each request.
type keyed string

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

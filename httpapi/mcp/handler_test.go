package mcp_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"humanqa/domain/account"
	"humanqa/httpapi/mcp"
	"humanqa/internal/testing/must"
)

func TestAnAgentLoopsUntilAHumanSaysThatItWorks(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.key(account.ScopeFull)
	c := a.connect(key, "")

	var names []string
	for tool, err := range c.Tools(t.Context(), nil) {
		must.NoError(t, err)
		names = append(names, tool.Name)
		if tool.OutputSchema == nil || tool.Annotations == nil || tool.Description == "" {
			t.Errorf("%s lacks a schema, annotations or a description", tool.Name)
		}
	}
	slices.Sort(names)
	if len(names) > 9 || !slices.Contains(names, "test_with_a_human") {
		t.Errorf("tools: %v", names)
	}

	price := a.did(c, "estimate", map[string]any{"url": "https://shop.example.com/", "feature": "Pay by card"})
	if price["creditsRequired"].(float64) <= 0 || !strings.Contains(price["price"].(string), "of your 100 credits") {
		t.Errorf("price: %v", price)
	}
	if _, refused := a.use(c, "test_with_a_human", shop(map[string]any{"maxCredits": 0.5})); !strings.Contains(refused, "Nothing was charged") {
		t.Errorf("a dearer test was bought: %q", refused)
	}
	for _, most := range []float64{0, -1} {
		if _, refused := a.use(c, "test_with_a_human", shop(map[string]any{"maxCredits": most})); !strings.Contains(refused, "Nothing was charged") {
			t.Errorf("with maxCredits %g a test was bought: %q", most, refused)
		}
	}
	if _, refused := a.use(c, "test_with_a_human", shop(map[string]any{"idempotencyKey": ""})); !strings.Contains(refused, "idempotencyKey") {
		t.Errorf("a test without a key: %q", refused)
	}
	project := a.api(key, "POST", "/v1/projects", `{"name":"Shop"}`)["projectId"]
	made := a.did(c, "test_with_a_human", shop(map[string]any{"projectId": project}))
	again := a.did(c, "test_with_a_human", shop(map[string]any{"projectId": project}))
	left := a.api(key, "GET", "/v1/credits", "")
	if made["jobId"] != again["jobId"] || left["available"] != 100-made["creditsCharged"].(float64) {
		t.Errorf("a repeat was paid again: %v, %v, %v", made, again, left)
	}

	began := time.Now()
	now := a.did(c, "wait_for_report", map[string]any{"jobId": made["jobId"], "seconds": 1})
	if now["done"] != false || now["next"] != "call wait_for_report again" || time.Since(began) > 20*time.Second {
		t.Errorf("after a second: %v", now)
	}
	a.api(key, "POST", fmt.Sprintf("/v1/sandbox/jobs/%s/play", made["jobId"]),
		`{"results":[{"item":"item-1","status":"fail","note":"`+hostile+`"}],"summary":"`+hostile+`"}`)
	now = a.did(c, "wait_for_report", map[string]any{"jobId": made["jobId"]})
	if now["done"] != true || now["passed"] != false || now["counts"].(map[string]any)["failedItems"] != 1.0 {
		t.Errorf("the report: %v", now)
	}
	if open := a.did(c, "open_failures", map[string]any{"projectId": project})["failures"].([]any); len(open) != 1 {
		t.Errorf("open failures: %v", open)
	}
	if next := a.did(c, "prepare_next_test", map[string]any{"projectId": project, "fixedDescriptions": []string{"cards work"}}); next["regressionItems"] != 1.0 {
		t.Errorf("prepared: %v", next)
	}
	for tool, in := range map[string]map[string]any{
		"retest":          {"jobId": made["jobId"], "idempotencyKey": "k2", "maxCredits": 0},
		"open_failures":   {"projectId": project, "limit": 0},
		"wait_for_report": {"jobId": made["jobId"], "seconds": -1},
	} {
		if out, refused := a.use(c, tool, in); refused == "" {
			t.Errorf("%s of %v: %v", tool, in, out)
		}
	}
	if now := a.did(c, "wait_for_report", map[string]any{"jobId": made["jobId"], "seconds": 0}); now["done"] != true {
		t.Errorf("a look: %v", now)
	}
	retest := a.did(c, "retest", map[string]any{"jobId": made["jobId"], "idempotencyKey": "k2", "maxCredits": 50})
	a.api(key, "POST", fmt.Sprintf("/v1/sandbox/jobs/%s/play", retest["jobId"]), `{}`)
	if now = a.did(c, "get_report", map[string]any{"jobId": retest["jobId"]}); now["passed"] != true {
		t.Errorf("the retest: %v", now)
	}
	third := a.did(c, "test_with_a_human", shop(map[string]any{"idempotencyKey": "k3"}))
	if gone := a.did(c, "cancel_test", map[string]any{"jobId": third["jobId"]}); gone["creditsRefunded"] != third["creditsCharged"] {
		t.Errorf("cancelled: %v", gone)
	}

	reader := a.connect(a.key(account.ScopeRead), "")
	if _, refused := a.use(reader, "test_with_a_human", shop(nil)); !strings.Contains(refused, "FORBIDDEN") {
		t.Errorf("a key for reading bought a test: %q", refused)
	}
}

// An agent that knows the tools' own words only gets from nothing to a pass, and pays twice.
func TestTheAdviceOfTheToolsLeadsToAPass(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.key(account.ScopeFull)
	c := a.connect(key, "")
	advises := func(told map[string]any, tools ...string) {
		t.Helper()
		for _, tool := range tools {
			if next, _ := told["next"].(string); !strings.Contains(next, tool) {
				t.Errorf("the advice %q does not name %s", next, tool)
			}
		}
	}
	made := a.did(c, "test_with_a_human", shop(nil))
	advises(made, "wait_for_report", "jobId")
	advises(a.did(c, "wait_for_report", map[string]any{"jobId": made["jobId"], "seconds": 0}), "wait_for_report")
	a.api(key, "POST", fmt.Sprintf("/v1/sandbox/jobs/%s/play", made["jobId"]), `{"results":[{"item":"item-1","status":"fail","note":"no"}]}`)
	failed := a.did(c, "wait_for_report", map[string]any{"jobId": made["jobId"]})
	advises(failed, "prepare_next_test", "jobId", "retest")
	item, _ := failed["items"].([]any)[0].(map[string]any)
	prepared := a.did(c, "prepare_next_test", map[string]any{
		"jobId": made["jobId"], "fixedBugIds": []any{item["id"]}, "fixedDescriptions": []string{"The mail names the shop"},
	})
	if prepared["regressionItems"] != 2.0 {
		t.Errorf("prepared: %v", prepared)
	}
	advises(prepared, "retest")
	again := a.did(c, "retest", map[string]any{"jobId": made["jobId"], "idempotencyKey": "k2"})
	advises(again, "wait_for_report")
	a.api(key, "POST", fmt.Sprintf("/v1/sandbox/jobs/%s/play", again["jobId"]), `{}`)
	passed := a.did(c, "wait_for_report", map[string]any{"jobId": again["jobId"]})
	if passed["passed"] != true || passed["projectId"] != failed["projectId"] || passed["projectId"] == nil || len(passed["items"].([]any)) != 3 {
		t.Errorf("the retest: %v", passed)
	}
	if left := a.api(key, "GET", "/v1/credits", ""); left["available"] != 100-2*made["creditsCharged"].(float64) {
		t.Errorf("%v is left of 100", left)
	}
	loose := a.api(key, "POST", "/v1/jobs", `{"url":"https://other.example.com/","title":"x","description":"x","jobType":"custom"}`)
	if _, refused := a.use(c, "prepare_next_test", map[string]any{"jobId": loose["jobId"], "fixedDescriptions": []string{"x"}}); !strings.Contains(refused, "no project") {
		t.Errorf("a fix without a project: %q", refused)
	}
}

func TestAPersonIsAskedAboutAPriceAboveTheLimit(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.key(account.ScopeFull)
	if _, refused := a.use(a.connect(key, "decline"), "test_with_a_human", shop(map[string]any{"maxCredits": 0.5})); !strings.Contains(refused, "declined") {
		t.Errorf("declined: %q", refused)
	}
	if left := a.api(key, "GET", "/v1/credits", ""); left["available"] != 100.0 {
		t.Errorf("a declined test was charged: %v", left)
	}
	made := a.did(a.connect(key, "accept"), "test_with_a_human", shop(map[string]any{"maxCredits": 0.5}))
	if made["jobId"] == "" || made["creditsCharged"].(float64) <= 0.5 {
		t.Errorf("accepted: %v", made)
	}
}

func TestTheProtocolAsksForAKey(t *testing.T) {
	t.Parallel()
	a := start(t)
	got := a.send("", "POST", mcp.Path, `{}`)
	if got.status != http.StatusUnauthorized || !strings.Contains(got.body, "UNAUTHORIZED") ||
		!strings.Contains(got.header.Get("WWW-Authenticate"), `resource_metadata="`+a.BaseURL+`/.well-known/oauth-protected-resource/mcp"`) {
		t.Errorf("got %+v", got)
	}
	if metadata := a.api("", "GET", "/.well-known/oauth-protected-resource/mcp", ""); metadata["resource"] != a.BaseURL+"/mcp" {
		t.Errorf("metadata: %v", metadata)
	}
	got = a.send(a.key(account.ScopeFull), "POST", mcp.Path, strings.Repeat("x", 2<<20), "Accept", "application/json, text/event-stream")
	if got.status/100 != 4 {
		t.Errorf("a large body: %+v", got)
	}
}

// A client that names no version might send a batch, whose calls would be one request of
// the rate.
func TestABatchIsRefusedBeforeItsFirstCall(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.key(account.ScopeFull)
	const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"test_with_a_human","arguments":{
		"url":"https://shop.example.com/","feature":"Pay","checks":["pay"],"idempotencyKey":"k"}}}`
	one := fmt.Sprintf(call, 1)
	two := "[" + one + "," + fmt.Sprintf(call, 2) + "]"
	post := func(key, version, body string) answer {
		return a.send(key, "POST", mcp.Path, body, "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", version)
	}
	for name, batch := range map[string]string{
		"two calls": two, "one call": "[" + one + "]", "none": "[]", "behind white space": "\r\n\t " + two, "of a batch": "[" + two + "]", "null": "null",
	} {
		for _, version := range []string{"", "2025-03-26", "2025-11-25", "2026-07-28"} {
			got := post(key, version, batch)
			if got.status != http.StatusBadRequest || got.header.Get("Content-Type") != "application/json" || !strings.Contains(got.body, `"code":-32600`) {
				t.Errorf("%s of version %q: %d %s", name, version, got.status, got.body)
			}
		}
	}
	if left := a.api(key, "GET", "/v1/credits", ""); left["available"] != 100.0 {
		t.Errorf("%v credits are left", left["available"])
	}
	if got := post(a.key(account.ScopeFull), "", two); got.header.Get("X-RateLimit-Remaining") != "59" {
		t.Errorf("a refused batch is no request: %s of 60 are left", got.header.Get("X-RateLimit-Remaining"))
	}
}

// An older client keeps a session, and its open stream does not hold up a service that stops.
// The database answers nothing: the requests beyond those that are looked up at once
// are refused, as the API's are.
func TestMoreThanTheServiceCanTakeIsRefusedHereToo(t *testing.T) {
	t.Parallel()
	const atOnce, beyond = 128, 40
	a := start(t)
	key := a.key(account.ScopeFull)
	tx, err := a.DB.BeginTxx(t.Context(), nil)
	a.Must(err)
	release := sync.OnceFunc(func() { _ = tx.Rollback() })
	defer release()
	_, err = tx.ExecContext(t.Context(), `LOCK TABLE http_rate IN ACCESS EXCLUSIVE MODE`)
	a.Must(err)
	answers := make(chan *httptest.ResponseRecorder, atOnce+beyond)
	for range atOnce + beyond {
		go func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, mcp.Path, strings.NewReader("{}"))
			r.Header.Set("Authorization", "Bearer "+key)
			w := httptest.NewRecorder()
			a.handler.ServeHTTP(w, r)
			answers <- w
		}()
	}
	const overload = "the service has more requests than it can take"
	refused := 0
	for range atOnce + beyond {
		w := <-answers
		if strings.Contains(w.Body.String(), overload) && w.Code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") != "" {
			refused++
			release()
		}
	}
	if refused == 0 || refused > beyond {
		t.Errorf("%d are refused as too many, not %d", refused, beyond)
	}
}

func TestASessionOfAnOlderClientIsItsKeys(t *testing.T) {
	t.Parallel()
	a := start(t)
	key := a.key(account.ScopeFull)
	accept := []string{"Accept", "application/json, text/event-stream"}
	const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize",
		"params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`
	got := a.send(key, "POST", mcp.Path, begin, accept...)
	session := got.header.Get("Mcp-Session-Id")
	if session == "" || !strings.Contains(got.body, `"protocolVersion":"2025-11-25"`) {
		t.Fatalf("got %+v", got)
	}
	of := slices.Concat(accept, []string{"Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-11-25"})
	a.send(key, "POST", mcp.Path, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, of...)
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	if got := a.send(key, "POST", mcp.Path, list, of...); !strings.Contains(got.body, "test_with_a_human") {
		t.Errorf("tools: %+v", got)
	}
	if got := a.send(a.key(account.ScopeFull), "POST", mcp.Path, list, of...); got.status/100 != 4 {
		t.Errorf("another key used the session: %+v", got)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url+mcp.Path, nil)
	must.NoError(t, err)
	for name, value := range map[string]string{
		"Authorization": "Bearer " + key, "Accept": "text/event-stream", "Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25",
	} {
		r.Header.Set(name, value)
	}
	stream, err := http.DefaultClient.Do(r)
	must.NoError(t, err)
	defer func() { _ = stream.Body.Close() }()
	a.handler.Stop()
	if _, err := io.Copy(io.Discard, stream.Body); err != nil { // it ends
		t.Error(err)
	}
}

// The official TypeScript client calls every tool, and checks each answer against the tool's
// output schema.
func TestTheOfficialClientHasATestDone(t *testing.T) {
	t.Parallel()
	clients := flag.Lookup("clients").Value.String()
	if clients == "" {
		t.Skip("make contract runs it")
	}
	a := start(t)
	node, err := filepath.Glob(filepath.Join(clients, "node_modules/node-*/bin/node"))
	must.NoError(t, err)
	program := append(node, "node")[0]
	run := exec.CommandContext(t.Context(), program, filepath.Join(clients, "agent.mjs"), a.url+mcp.Path, a.key(account.ScopeFull))
	out, err := run.CombinedOutput()
	const want = `{"tools":9,"price":5,"charged":5,"done":false,"answer":"answered","first":false,"items":2,"failures":1,"next":1,` +
		`"second":true,"refunded":5}`
	if err != nil || string(out) != want+"\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

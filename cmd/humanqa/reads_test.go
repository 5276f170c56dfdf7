package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"humanqa/internal/testing/must"
)

const (
	// readsAtOnce is how often each read is asked for at the same moment.
	readsAtOnce = 50
	// readsMost is what the service may take in memory meanwhile, in MB, and
	// readsPatience another account's slowest request but one in a hundred.
	readsMost     = 500
	readsPatience = 300 * time.Millisecond
)

// One key asks for each read fifty times at once, of now, of the past and by the tools, of a
// project with a long history: the service's memory stays bounded, and another
// account does not feel it. For make torture; alone by
// go test ./cmd/humanqa -run TestReadsAtOnce -v -args -torture
func TestReadsAtOnce(t *testing.T) {
	if !*torture {
		t.Skip("it takes minutes: -args -torture")
	}
	p := newProgram(t)
	s := p.spawn()
	_, key := p.newSandbox(100_000)
	_, otherKey := p.newAccount(1_000_000)
	project := p.call(http.StatusCreated, "POST", "/v1/projects", key, map[string]any{"name": "long"}).text("projectId")
	job, batch := p.longHistory(key, project, 1000)
	session := p.newSession(key, 2)
	for range 20 {
		p.call(http.StatusCreated, "POST", "/v1/jobs", otherKey, submission(5))
	}
	events := p.call(http.StatusOK, "GET", "/v1/events?limit=100", key, nil)
	for events.field("hasMore") == true {
		events = p.call(http.StatusOK, "GET", "/v1/events?limit=100&after="+events.text("next"), key, nil)
	}
	cursor := events.text("next")

	var targets []read
	for _, path := range []string{
		"/v1/jobs", "/v1/jobs?status=pending", "/v1/jobs/" + job, "/v1/jobs/" + job + "/report", "/v1/jobs/" + job + "/ai-report",
		"/v1/jobs/bulk/" + batch, "/v1/jobs/bulk/" + batch + "/report", "/v1/hosted/status/" + job, "/v1/hosted/sessions", "/v1/hosted/sessions/" + session.id,
		"/v1/projects", "/v1/projects/" + project, "/v1/projects/" + project + "/history", "/v1/credits", "/v1/credits/ledger?limit=100",
		"/v1/credits/statement", "/v1/analytics/pass-rate?by=week,project",
		"/v1/exports/jobs", "/v1/exports/items", "/v1/exports/tests", "/v1/exports/ledger", "/v1/exports/projects", "/v1/exports/accounts", "/v1/exports/events",
	} {
		sep := map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]
		targets = append(targets, read{path: path}, read{path: path + sep + "asOf=" + cursor})
	}
	targets = append(targets, read{tool: "get_report", argument: `"jobId":"` + job + `"`}, read{tool: "wait_for_report", argument: `"jobId":"` + job + `"`},
		read{tool: "open_failures", argument: `"projectId":"` + project + `","limit":100`})
	// Not p's client, which holds every answer against the document.
	client := &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 2 * readsAtOnce}}
	defer client.CloseIdleConnections()
	ask := func(key string, one read) int {
		r := one.request(t, p)
		r.Header.Set("Authorization", "Bearer "+key)
		res, err := client.Do(r)
		if err != nil {
			t.Errorf("%s: %v", one, err)
			return 0
		}
		defer func() { _ = res.Body.Close() }() // read to its end
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Errorf("%s: %v", one, err)
		}
		return res.StatusCode
	}
	must.NoError(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.Cmd.Process.Pid), []byte("5"), 0)) // the peak begins anew

	stop := p.beside([]string{otherKey})
	for _, target := range targets {
		var mu sync.Mutex
		answers := map[int]int{}
		begun := time.Now()
		var asked sync.WaitGroup
		for range readsAtOnce {
			asked.Go(func() {
				status := ask(key, target)
				mu.Lock()
				defer mu.Unlock()
				answers[status]++
			})
		}
		asked.Wait()
		t.Logf("%-90s %6d ms, %4d MB: %v", target, time.Since(begun).Milliseconds(), s.peak(), answers)
		for status := range answers {
			if status >= 500 || status == http.StatusBadRequest {
				t.Errorf("%s: %v", target, answers)
			}
		}
		if answers[http.StatusTooManyRequests] == readsAtOnce {
			t.Errorf("%s: nobody was answered", target)
		}
	}
	took := stop()
	p99 := quantile(took, 0.99)
	t.Logf("%d targets, %d at once: the service took %d MB at most; another account's %d requests took %s (p50), %s (p99), %s at most",
		len(targets), readsAtOnce, s.peak(), len(took), quantile(took, 0.5), p99, quantile(took, 1))
	if s.peak() > readsMost {
		t.Errorf("%d MB are more than %d", s.peak(), readsMost)
	}
	if p99 > readsPatience {
		t.Errorf("another account's p99 is %s", p99)
	}
	s.stop()
}

// read is a GET of the API, or a call of a tool that reads.
type read struct{ path, tool, argument string }

func (r read) String() string { return cmp.Or(r.path, "/mcp "+r.tool) }

func (r read) request(t *testing.T, p *program) *http.Request {
	t.Helper()
	if r.tool == "" {
		get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url(r.path), nil)
		must.NoError(t, err)
		return get
	}
	const revision = "2026-07-28"
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url("/mcp"), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call",
		"params":{"name":"`+r.tool+`","arguments":{`+r.argument+`},"_meta":{
		"io.modelcontextprotocol/protocolVersion":"`+revision+`","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	must.NoError(t, err)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": revision,
		"Mcp-Method": "tools/call", "Mcp-Name": r.tool,
	} {
		post.Header.Set(name, value)
	}
	return post
}

// longHistory has n jobs of a project tested, each with thirty items and notes, and
// leaves a batch more in the queue; the first job and its batch are given.
func (p *program) longHistory(key, project string, n int) (job, batch string) {
	p.t.Helper()
	const perBatch = 20
	var results []any
	for i := range 30 {
		results = append(results, map[string]any{"item": fmt.Sprintf("item-%d", i+1), "status": "fail", "note": strings.Repeat("it is broken ", 40)})
	}
	var work sync.WaitGroup
	ids := make(chan string, n)
	for range n/perBatch + 1 {
		var jobs []any
		for range perBatch {
			jobs = append(jobs, submission(30, "projectId", project))
		}
		r := p.call(http.StatusCreated, "POST", "/v1/jobs/bulk", key, map[string]any{"jobs": jobs})
		batch = cmp.Or(batch, r.text("batchId"))
		for _, id := range r.list("jobIds") {
			job = cmp.Or(job, id.(string))
			if len(ids) < n {
				ids <- id.(string)
			}
		}
	}
	close(ids)
	for range 4 {
		work.Go(func() {
			for id := range ids {
				p.call(http.StatusOK, "POST", "/v1/sandbox/jobs/"+id+"/play", key, map[string]any{"results": results, "summary": "Broken."})
			}
		})
	}
	work.Wait()
	return job, batch
}

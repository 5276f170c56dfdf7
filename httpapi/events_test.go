package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// feed reads the events from a path. Whatever was answered before is there at
// once.
func (s *service) feed(key, path string, n int) (events []map[string]any) {
	s.t.Helper()
	list, _ := s.call(key, "GET", path, "").want(http.StatusOK)["events"].([]any)
	for _, e := range list {
		event, _ := e.(map[string]any)
		events = append(events, event)
	}
	if len(events) < n {
		s.t.Errorf("%d events at %s, want %d", len(events), path, n)
	}
	return events
}

// each gives one field of every event.
func each(events []map[string]any, name string) (values []string) {
	for _, e := range events {
		values = append(values, fmt.Sprint(e[name]))
	}
	return values
}

func TestAJobsEventsAreShownAsWebhooksAre(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	id := s.submittedWith(key, checklistOf(1)+`,"credentials":{"username":"u","password":"s3cr3t-pass"},"accessInstructions":"door-4711"`)
	s.claims(s.checker(), id).checks(fails).completes("Broken.")
	s.analysed(accountID, id)
	path := "/v1/jobs/" + id + "/events"
	events := s.feed(key, path, 4)
	kinds := []string{"job.created", "job.claimed", "job.completed", "job.ai_report_ready"}
	equal(t, each(events, "event"), kinds)
	equal(t, each(events, "type"), kinds)
	raw := s.call(key, "GET", path, "").Body.String()
	if strings.Contains(raw, "s3cr3t") || strings.Contains(raw, "door-4711") || strings.Contains(raw, "sealed") {
		t.Errorf("a secret is shown: %s", raw)
	}
	j := s.call(key, "GET", "/v1/jobs/"+id, "")
	completed := events[2]
	data, _ := completed["data"].(map[string]any)
	if _, err := uuid.Parse(fmt.Sprint(completed["id"])); err != nil || completed["cursor"] == "" {
		t.Errorf("id %v, cursor %v", completed["id"], completed["cursor"])
	}
	if _, err := time.Parse(wire.TimestampLayout, fmt.Sprint(completed["timestamp"])); err != nil {
		t.Error(err)
	}
	with(t, completed, map[string]any{
		"jobId": id, "projectId": nil, "dashboardReportUrl": "https://qa.example/dashboard/jobs/" + id,
	})
	with(t, data, map[string]any{
		"jobId": id, "projectId": nil, "title": "Checkout", "url": "https://example.com/shop", "jobType": "Payment Flow",
		"status": "completed", "priority": "normal", "sessionId": nil, "overallStatus": "fail", "failCount": 1.0,
		"summary": "Broken.", "aiReport": nil,
	})
	var job struct{ ReportID string }
	must.NoError(t, json.Unmarshal(j.Body.Bytes(), &job))
	for _, n := range []int{2, 3} {
		of, _ := events[n]["data"].(map[string]any)
		equal(t, of["reportId"], any(job.ReportID))
	}

	_, stranger := s.account(0)
	s.call(stranger, "GET", path, "").refused(http.StatusNotFound, domain.CodeNotFound)
	bound := s.key(accountID, command.IssueKey{Scope: account.ScopeRead, ProjectID: s.project(key, `{"name":"Other"}`)})
	s.call(bound, "GET", path, "").refused(http.StatusForbidden, domain.CodeForbidden)
}

func TestTheAccountsFeedIsReadPageByPage(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(500)
	projectID := s.project(key, `{"name":"Shop"}`)
	var want []string
	for i := range 6 {
		fields := `"priority":"normal"`
		if i%2 == 0 {
			fields = `"projectId":"` + projectID + `"`
		}
		want = append(want, s.submittedWith(key, fields))
	}
	cancelled := want[3]
	s.call(key, "POST", "/v1/jobs/"+cancelled+"/cancel", "").want(http.StatusOK)
	_, other := s.account(100)
	s.submitted(other)
	want = append(want, cancelled)
	equal(t, each(s.feed(key, "/v1/events", 7), "jobId"), want)

	var read []string
	after := ""
	for more := true; more; {
		page := s.call(key, "GET", "/v1/events?limit=3&after="+after, "").want(http.StatusOK)
		list, _ := page["events"].([]any)
		for i := range list {
			read = append(read, fmt.Sprint(field(page["events"], i, "jobId")))
		}
		more, _ = page["hasMore"].(bool)
		equal(t, more, len(read) < len(want))
		after, _ = page["next"].(string)
		equal(t, any(after), field(page["events"], len(list)-1, "cursor"))
	}
	equal(t, read, want)
	end := s.call(key, "GET", "/v1/events?after="+after, "").want(http.StatusOK)
	equal(t, end, map[string]any{"events": []any{}, "next": after, "hasMore": false})

	equal(t, each(s.feed(key, "/v1/events?types=job.cancelled,%20job.claimed", 1), "event"), []string{"job.cancelled"})
	bound := s.key(accountID, command.IssueKey{Scope: account.ScopeRead, ProjectID: projectID})
	equal(t, each(s.feed(bound, "/v1/events", 3), "jobId"), []string{want[0], want[2], want[4]})

	_, fresh := s.account(0)
	equal(t, s.call(fresh, "GET", "/v1/events", "").want(http.StatusOK), map[string]any{"events": []any{}, "next": nil, "hasMore": false})
	for query, paths := range map[string][]string{
		"?types=job.exploded":                 {"types"},
		"?types=job.created,":                 {"types"},
		"?types=JOB.CREATED":                  {"types"},
		"?types=session.started":              {"types"},
		"?after=yesterday":                    {"after"},
		"?after=-1--1":                        {"after"},
		"?after=" + strings.Repeat("9", 30):   {"after"},
		"?limit=0":                            {"limit"},
		"?limit=101&after=x&types=y":          {"after", "limit", "types"},
		"?after=1-9223372036854775808&limit=": {"after"},
	} {
		equal(t, s.call(key, "GET", "/v1/events"+query, "").paths(), paths)
	}
}

// stream is a connection that follows the feed.
type stream struct {
	t      *testing.T
	res    *http.Response
	lines  *bufio.Reader
	hangUp context.CancelFunc
}

// sent is one server-sent event.
type sent struct{ id, event, data string }

func (s *service) follow(base, key, query, last string) *stream {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/events"+query, nil)
	must.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	must.NoError(s.t, err)
	s.t.Cleanup(func() {
		cancel()
		_ = res.Body.Close()
	})
	return &stream{t: s.t, res: res, lines: bufio.NewReader(res.Body), hangUp: cancel}
}

// opened wants the stream to be there.
func (f *stream) opened() *stream {
	f.t.Helper()
	equal(f.t, f.res.StatusCode, http.StatusOK)
	equal(f.t, f.res.Header.Get("Content-Type"), "text/event-stream")
	if line := f.line(); !strings.HasPrefix(line, ":") {
		f.t.Fatalf("a stream begins with %q", line)
	}
	return f
}

func (f *stream) close() {
	f.hangUp()
	_ = f.res.Body.Close()
}

// line gives the next line that is not blank; empty at the end.
func (f *stream) line() string {
	f.t.Helper()
	for {
		line, err := f.lines.ReadString('\n')
		switch {
		case errors.Is(err, io.EOF):
			return ""
		case err != nil:
			f.t.Fatal(err)
		}
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			return line
		}
	}
}

// next gives the next event, signs of life left out.
func (f *stream) next() sent {
	f.t.Helper()
	var e sent
	for e.data == "" {
		line := f.line()
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.event = value
		case "data":
			e.data = value
		case "":
			if line == "" {
				f.t.Fatal("the stream has ended")
			}
		}
	}
	return e
}

func TestAStreamGoesOnWhereItWasCutOff(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(500)
	srv := s.online()
	_, other := s.account(500)
	const jobs = 28
	var submitting sync.WaitGroup
	defer submitting.Wait()
	submitting.Go(func() {
		for i := range jobs {
			for _, k := range []string{key, other}[:1+i%2] {
				if r := s.call(k, "POST", "/v1/jobs", aJob); r.Code != http.StatusCreated {
					t.Errorf("submit: %d", r.Code)
				}
			}
		}
	})
	var got []sent
	for last := ""; len(got) < jobs; {
		f := s.follow(srv.URL, key, "", last).opened()
		for range min(7, jobs-len(got)) {
			e := f.next()
			got = append(got, e)
			last = e.id
		}
		f.close()
	}
	var data, feed, ids []string
	for _, e := range got {
		data = append(data, e.data)
		equal(t, e.event, "job.created")
	}
	for after := ""; len(feed) < jobs; {
		var page struct {
			Events []json.RawMessage
			Next   string
		}
		must.NoError(t, json.Unmarshal(s.call(key, "GET", "/v1/events?after="+after, "").Body.Bytes(), &page))
		for _, e := range page.Events {
			feed = append(feed, string(e))
		}
		after = page.Next
	}
	equal(t, data, feed) // none lost, none twice, byte for byte what the pages show
	for _, e := range got {
		ids = append(ids, e.id)
	}
	if slices.Sort(ids); len(slices.Compact(ids)) != jobs {
		t.Error("two events have one id")
	}

	f := s.follow(srv.URL, key, "?types=job.cancelled&after="+got[3].id, "").opened()
	var first struct{ JobID string }
	must.NoError(t, json.Unmarshal([]byte(got[0].data), &first))
	s.call(key, "POST", "/v1/jobs/"+first.JobID+"/cancel", "").want(http.StatusOK)
	if e := f.next(); e.event != "job.cancelled" || !strings.Contains(e.data, first.JobID) {
		t.Errorf("got %+v", e)
	}
}

func TestAStreamOutlivesTheServersTimeOuts(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	s.clients.Beat = 20 * time.Millisecond
	srv := httptest.NewUnstartedServer(s.API)
	srv.Config = NewServer(s.API, quiet())
	srv.Config.ReadTimeout, srv.Config.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	srv.Start()
	t.Cleanup(srv.Close)
	f := s.follow(srv.URL, key, "", "").opened()
	opened := time.Now()
	for time.Since(opened) < 500*time.Millisecond { // five times what an answer has
		if line := f.line(); line != ": alive" {
			t.Fatalf("got %q", line)
		}
	}
	id := s.submitted(key)
	if e := f.next(); !strings.Contains(e.data, id) {
		t.Errorf("got %+v", e)
	}
}

func TestAStreamEndsWithItsKey(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	accountID, _ := s.account(100)
	s.clients.Beat = time.Hour // nothing else looks after the stream
	srv := s.online()
	k, err := s.commands.IssueKey(t.Context(), operator(uuid.New()), accountID, command.IssueKey{Scope: account.ScopeRead})
	s.visible(k.Position, err)
	f := s.follow(srv.URL, k.Token, "", "").opened()
	at, err := s.commands.RevokeKey(t.Context(), operator(uuid.New()), accountID, k.KeyID)
	s.visible(at, err)
	if line := f.line(); line != "" {
		t.Errorf("got %q", line)
	}
	again := s.follow(srv.URL, k.Token, "", "")
	equal(t, again.res.StatusCode, http.StatusUnauthorized)
}

func TestStreamsEndWithTheService(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, NewServer(s.API, quiet()), ln, time.Minute) }()
	f := s.follow("http://"+ln.Addr().String(), key, "", "").opened()
	stop()
	if line := f.line(); line != "" {
		t.Errorf("got %q", line)
	}
	if err := <-served; err != nil {
		t.Errorf("the drain: %v", err)
	}
	if s.clients.Followers() > 0 {
		t.Error("somebody still listens")
	}
}

func TestAKeyHasSoManyStreamsAndNoMore(t *testing.T) {
	t.Parallel()
	s := own(t)
	accountID, key := s.account(100)
	srv := s.online()
	var open []*stream
	for range v1.StreamsPerKey {
		open = append(open, s.follow(srv.URL, key, "", "").opened())
	}
	refused := s.follow(srv.URL, key, "", "")
	equal(t, refused.res.StatusCode, http.StatusTooManyRequests)
	equal(t, refused.res.Header.Get("Retry-After"), "15")
	s.follow(srv.URL, s.key(accountID, command.IssueKey{Scope: account.ScopeRead}), "", "").opened() // another key

	open[0].close()
	eventually.True(t, "the place is free again", func() bool {
		f := s.follow(srv.URL, key, "", "")
		defer f.close()
		return f.res.StatusCode == http.StatusOK
	})
	eventually.True(t, "no stream that waits holds a connection to the database", func() bool { return s.db.Stats().InUse == 0 })
}

func TestABadStreamIsRefusedBeforeItBegins(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	sse := []string{"Accept", "text/event-stream"}
	equal(t, s.call(key, "GET", "/v1/events?after=x&types=y", "", sse...).paths(), []string{"after", "types"})
	equal(t, s.call(key, "GET", "/v1/events", "", append(sse, "Last-Event-ID", "x")...).paths(), []string{"Last-Event-ID"})
	s.call("", "GET", "/v1/events", "", sse...).refused(http.StatusUnauthorized, domain.CodeUnauthorized)
	for range v1.StreamsPerKey + 1 { // a refused one takes no place
		equal(t, s.call(key, "GET", "/v1/events?limit=0", "", sse...).paths(), []string{"limit"})
	}
}

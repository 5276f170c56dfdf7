package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

var abuseCount = flag.Int("abuse.count", 20_000, "how many requests TestAbuseIsNotFeltByOthers sends")

const (
	// abusersAtOnce send at the same time.
	abusersAtOnce = 48
	// heldOpen is how many connections stay open without being read, at most.
	heldOpen = 400
)

// A client with a key and a session, and none of a client's manners, sends bodies that are
// huge, deep, slow or no JSON, batches, strange methods and headers, hostile strings and
// unknown ids, and opens streams that it does not read. No answer is a 500, the service's memory stays bounded, and
// another account does not feel it. Each account has a dozen keys, under the usual limits. For
// make torture; alone by
//
//	go test ./cmd/humanqa -run TestAbuseIsNotFeltByOthers -v -args -torture
func TestAbuseIsNotFeltByOthers(t *testing.T) {
	if !*torture {
		t.Skip("it takes minutes: -args -torture")
	}
	p := newProgram(t, "HUMANQA_RATE_LIMIT=60", "HUMANQA_LOG_LEVEL=error")
	s := p.spawn()
	account, key := p.newAccount(1_000_000)
	other, _ := p.newAccount(1_000_000)
	others := p.newKeys(other)
	a := &abuse{program: p, keys: p.newKeys(account), answers: map[string]int{}, client: &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: abusersAtOnce}}}
	defer a.client.CloseIdleConnections()
	a.signsIn(account)
	project := p.call(http.StatusCreated, "POST", "/v1/projects", key, map[string]any{"name": "long"}).text("projectId")
	a.ids = []string{project}
	for range 30 {
		job := p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(30, "projectId", project, "description", strings.Repeat("it is broken ", 300)))
		a.ids = append(a.ids, job.text("jobId"))
	}

	const alone = 20 * time.Second
	stop := p.beside(others)
	time.Sleep(alone) // the same calls, with nothing beside them
	before := stop()
	must.NoError(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.Cmd.Process.Pid), []byte("5"), 0)) // the peak begins anew
	stop = p.beside(others)
	began := time.Now()
	var abusers sync.WaitGroup
	turns := make(chan int)
	for range abusersAtOnce {
		abusers.Go(func() {
			for i := range turns {
				one := abuses[i%len(abuses)]
				a.note(one.name, one.send(a))
			}
		})
	}
	for i := range *abuseCount {
		turns <- i
	}
	close(turns)
	abusers.Wait()
	took := time.Since(began)
	during := stop()
	a.hangUp()
	for _, what := range slices.Sorted(maps.Keys(a.answers)) {
		t.Logf("%6d  %s", a.answers[what], what)
	}
	p99, quiet := quantile(during, 0.99), quantile(before, 0.99)
	t.Logf("%d requests in %s; the service took %d MB at most; another account's %d calls took %s (p50), %s (p99), %s at most; alone its %d calls took %s (p50), %s (p99): %.1f times",
		*abuseCount, took.Round(time.Second), s.peak(), len(during), quantile(during, 0.5), p99, quantile(during, 1),
		len(before), quantile(before, 0.5), quiet, float64(p99)/float64(quiet))
	if s.peak() > readsMost {
		t.Errorf("%d MB are more than %d", s.peak(), readsMost)
	}
	if p99 > readsPatience {
		t.Errorf("another account's p99 is %s", p99)
	}
	p.fsck()
	s.stop()
}

// newKeys are as many as ten calls a second need.
func (p *program) newKeys(account string) (keys []string) {
	p.t.Helper()
	for range 12 {
		var made struct{ APIKey string }
		p.cli(&made, "key", "create", "--account", account)
		keys = append(keys, made.APIKey)
	}
	return keys
}

// beside makes another account's ordinary calls, up to ten a second, until it is stopped,
// and gives the time that each took.
func (p *program) beside(keys []string) (stop func() (took []time.Duration)) {
	p.t.Helper()
	body, err := json.Marshal(submission(1))
	must.NoError(p.t, err)
	// Not p's client, which holds every answer against the document.
	client := &http.Client{Timeout: eventually.Patience, Transport: &http.Transport{}}
	call := func(n int) error {
		method, path, content := http.MethodGet, []string{"/v1/jobs", "/v1/credits", "/v1/projects", ""}[n/len(keys)%4], io.Reader(nil)
		if path == "" {
			method, path, content = http.MethodPost, "/v1/jobs", bytes.NewReader(body)
		}
		r, err := http.NewRequest(method, p.url(path), content) //nolint:noctx // the client has a time-out
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+keys[n%len(keys)])
		res, err := client.Do(r)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }() // read to its end
		said, err := io.ReadAll(res.Body)
		if err == nil && res.StatusCode/100 != 2 {
			err = fmt.Errorf("%s %s: %d %s", method, path, res.StatusCode, said)
		}
		return err
	}
	var took []time.Duration
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			case <-time.After(100 * time.Millisecond):
			}
			begun := time.Now()
			if err := call(n); err != nil {
				p.t.Errorf("another account: %v", err)
			}
			took = append(took, time.Since(begun))
		}
	}()
	return func() []time.Duration {
		close(over)
		<-ended
		client.CloseIdleConnections()
		return took
	}
}

// abuse is such a client.
type abuse struct {
	*program
	client *http.Client
	keys   []string
	cookie string
	ids    []string // its own

	mu      sync.Mutex
	answers map[string]int // by kind and status
	held    []net.Conn
}

// signsIn makes an owner of the account and signs them in.
func (a *abuse) signsIn(account string) {
	a.t.Helper()
	var invited personLink
	a.cli(&invited, "person", "invite", "--account", account, "--role", "owner", "--name", "Ann")
	form := url.Values{"name": {"Ann"}, "login": {"ann"}, "password": {"a long word and another"}}
	r, err := http.NewRequest(http.MethodPost, strings.Replace(invited.Link, "localhost", "127.0.0.1", 1), strings.NewReader(form.Encode())) //nolint:noctx // the client has a time-out
	must.NoError(a.t, err)
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	res, err := a.client.Transport.RoundTrip(r) // which follows no redirect
	must.NoError(a.t, err)
	defer func() { _ = res.Body.Close() }()
	for _, c := range res.Cookies() {
		a.cookie += c.Name + "=" + c.Value + "; "
	}
	if a.cookie == "" {
		said, err := io.ReadAll(res.Body)
		a.t.Fatalf("signed in: %d %s %v", res.StatusCode, said, err)
	}
}

func (a *abuse) note(kind, answer string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[kind+": "+answer]++
	if answer == "500" {
		a.t.Errorf("%s: an answer is 500", kind)
	}
}

// send makes a request that net/http can make, and reads its answer.
func (a *abuse) send(method, path string, body io.Reader, header ...string) (answer string) {
	r, err := http.NewRequest(method, a.url(path), body) //nolint:noctx // the client has a time-out
	if err != nil {
		return "no request"
	}
	r.Host = "localhost"
	for name, value := range map[string]string{
		"Authorization": "Bearer " + drawn(a.keys...), "Cookie": a.cookie, "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Sec-Fetch-Site": "same-origin",
	} {
		r.Header.Set(name, value)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := a.client.Do(r)
	if err != nil {
		return "cut off"
	}
	defer func() { _ = res.Body.Close() }() // read to its end
	_, _ = io.Copy(io.Discard, res.Body)
	return fmt.Sprint(res.StatusCode)
}

// raw writes bytes that net/http would not write. The connection stays open unread if it is
// held, among the newest.
func (a *abuse) raw(text string, held bool) (answer string) {
	conn, err := net.DialTimeout("tcp", a.addr, 10*time.Second) //nolint:noctx // it has a time-out
	if err != nil {
		return "refused"
	}
	if held {
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	}
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		_ = conn.Close()
		return "cut off"
	}
	if held {
		a.hold(conn)
		return "held"
	}
	defer func() { _ = conn.Close() }()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || len(line) < 12 {
		return "cut off"
	}
	return line[9:12]
}

func (a *abuse) hold(conn net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held = append(a.held, conn); len(a.held) > heldOpen {
		_ = a.held[0].Close()
		a.held = a.held[1:]
	}
}

func (a *abuse) hangUp() {
	for _, conn := range a.held {
		_ = conn.Close()
	}
}

// head begins a request with the key and the session.
func (a *abuse) head(line string, header ...string) string {
	return line + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + drawn(a.keys...) + "\r\nCookie: " + a.cookie + "\r\n" + strings.Join(header, "\r\n") + "\r\n"
}

// mcp sends a message over /mcp, of the newest revision or of one that keeps sessions.
func (a *abuse) mcp(body io.Reader, version string) string {
	return a.send("POST", "/mcp", body, "Mcp-Protocol-Version", version, "Mcp-Method", "tools/call", "Mcp-Name", "get_report")
}

func drawn[T any](from ...T) T { return from[rand.N(len(from))] }

// endless gives so many times a text.
func endless(text string, n int) io.Reader {
	readers := make([]io.Reader, n)
	for i := range readers {
		readers[i] = strings.NewReader(text)
	}
	return io.MultiReader(readers...)
}

var (
	mebibyte = strings.Repeat(" ", 1<<20)
	toolCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_report","arguments":{"jobId":"%s"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	opening  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

	targets  = []string{"/v1/jobs", "/v1/jobs/bulk", "/v1/projects", "/v1/hosted/test", "/mcp", "/signin", "/dashboard/jobs/preview"}
	hurtful  = []string{"'; DROP TABLE jobs; --", "\x00", "\u202e", "../../etc/passwd", "%s%n", "{{7*7}}", "<script>alert(1)</script>", "a\r\nSet-Cookie: x=1", strings.Repeat("ü", 5001), "🧨", "1e999", "-1"}
	unstream = []string{"GET /v1/events", "GET /mcp", "GET /live", "GET /v1/exports/items", "GET /v1/exports/events"}
)

// abuses take turns. A huge body and a session of an older client are one in two hundred of
// all requests: so many sessions are what a key with a rate limit can have at once.
var abuses = []struct {
	name string
	send func(a *abuse) string
}{
	{"a large body", func(a *abuse) string {
		if rand.N(20) == 0 {
			return a.send("POST", drawn(targets...), endless(mebibyte, 60))
		}
		return a.send("POST", drawn(targets...), endless(mebibyte, 2))
	}},
	{"deep JSON", func(a *abuse) string {
		deep := endless(drawn("[", `{"a":`, `{"jobs":[`), 150_000)
		return a.send("POST", drawn(targets...), io.MultiReader(strings.NewReader(drawn("", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":`)), deep))
	}},
	{"a batch for /mcp", func(a *abuse) string {
		one := fmt.Sprintf(toolCall, drawn(a.ids...))
		return a.mcp(strings.NewReader("["+strings.Repeat(one+",", 3000)+one+"]"), drawn("", "2025-03-26", "2026-07-28"))
	}},
	{"a slow body", func(a *abuse) string {
		return a.raw(a.head("POST "+drawn(targets...), "Content-Type: application/json", "Content-Length: 1000000", "", `{"a`), true)
	}},
	{"a slow header", func(a *abuse) string {
		return a.raw("POST "+drawn(targets...)+" HTTP/1.1\r\nHost: loc", true)
	}},
	{"a strange request", func(a *abuse) string {
		return a.raw(drawn(
			a.head("QUERY /v1/jobs", ""), a.head("TRACE /mcp", ""), a.head("CONNECT 127.0.0.1:5432", ""), a.head("OPTIONS *", ""), a.head("G\x00T /", ""),
			a.head("GET /v1/jobs", "X: "+strings.Repeat("x", 200_000), ""), a.head("GET /", strings.Repeat("X: y\r\n", 20_000)), a.head("GET /v1/jobs", "Host: other", ""),
			a.head("POST /v1/jobs", "Transfer-Encoding: chunked", "Content-Length: 3", "", "zz\r\n"), a.head("POST /mcp", "Transfer-Encoding: chunked", "", "ffffffffffffffff\r\n"),
			a.head("POST /v1/jobs", "Content-Length: -1", ""), a.head("POST /v1/jobs", "Content-Length: 99999999999999999999", ""),
			"GET /\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", strings.Repeat("\x00", 5000)+"\r\n\r\n",
		), false)
	}},
	{"hostile strings", func(a *abuse) string {
		text := drawn(hurtful...)
		body, err := json.Marshal(submission(1, drawn("title", "url", "jobType", "projectId", "description"), text))
		if err != nil {
			return err.Error()
		}
		path := drawn("/v1/jobs", "/v1/jobs", "/v1/projects", "/v1/estimate") + "?limit=" + url.QueryEscape(text)
		return a.send(drawn("GET", "POST", "PATCH"), path, bytes.NewReader(body), "Idempotency-Key", url.QueryEscape(text), "X-Request-Id", strings.ToValidUTF8(strings.Trim(text, "\x00\r\n"), ""))
	}},
	{"an unknown id", func(a *abuse) string {
		id := drawn(uuid.NewString(), url.PathEscape(drawn(hurtful...)))
		return a.send("GET", drawn("/v1/jobs/", "/v1/projects/", "/v1/hosted/status/", "/v1/jobs/bulk/", "/dashboard/jobs/", "/dashboard/projects/", "/join/", "/e/")+id, nil)
	}},
	{"an unknown id for /mcp", func(a *abuse) string {
		return a.mcp(strings.NewReader(fmt.Sprintf(toolCall, uuid.NewString())), "2026-07-28")
	}},
	{"an unread stream", func(a *abuse) string {
		return a.raw(a.head(drawn(unstream...), "Accept: text/event-stream", ""), true)
	}},
	{"an unread answer", func(a *abuse) string {
		return a.raw(strings.Repeat(a.head(drawn("GET /v1/jobs?limit=100", "GET /v1/events?limit=100", "GET /dashboard", "GET /openapi.json"), ""), 20), true)
	}},
	{"a page's form", func(a *abuse) string {
		form := url.Values{}
		for _, name := range []string{"command", "login", "password", "name", "url", "title", "address"} {
			form.Set(name, drawn(hurtful...))
		}
		return a.send("POST", drawn("/signin", "/signin", "/account/name", "/dashboard/jobs", "/dashboard/find"), strings.NewReader(form.Encode()),
			"Content-Type", "application/x-www-form-urlencoded")
	}},
	{"a session of /mcp", func(a *abuse) string {
		if rand.N(12) > 0 {
			return a.mcp(strings.NewReader(drawn("{}", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":[],"method":{}}`, `{"jsonrpc":"1.0","id":1,"method":"\u0000"}`)), drawn("", "x", "2026-07-28"))
		}
		return a.send("POST", "/mcp", strings.NewReader(opening))
	}},
}

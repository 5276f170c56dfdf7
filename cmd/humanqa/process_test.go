package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/domain"
	"humanqa/httpapi/openapi"
	"humanqa/internal/pgdev"
	"humanqa/internal/testing/apicheck"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pagetest/alltest"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/process"
)

// runAsHumanqa makes the test binary be the program under test, so that the
// services that tests kill are built with the race detector too.
const runAsHumanqa = "HUMANQA_TEST_RUN_AS_HUMANQA"

func TestMain(m *testing.M) {
	if step := os.Getenv(dieBefore); step != "" {
		os.Exit(sweepAndDie(step))
	}
	if os.Getenv(runAsHumanqa) != "" {
		main()
	}
	os.Exit(browsertest.Main(func() int { return pgtest.Main(m) }))
}

// program is one data directory and the settings that every process on it
// gets.
type program struct {
	t       testing.TB
	dir     string
	addr    string
	environ []string
	client  *http.Client
}

var documented = sync.OnceValues(func() (*apicheck.Checker, error) { return apicheck.New(openapi.Document()) })

// newProgram prepares a fresh data directory and picks a free port; its database
// is one of the Postgres that all tests share, with every table. extra are NAME=value settings.
func newProgram(t testing.TB, extra ...string) *program {
	t.Helper()
	return newEmbedded(t, append([]string{"HUMANQA_DATABASE_URL=" + alltest.Database.NewDSN(t)}, extra...)...)
}

// newEmbedded is newProgram with the Postgres of a data directory, which costs
// more: for tests that are about it, for backups, and for tests that kill the service,
// since only who starts its Postgres too may end at once what the dead one had leased.
func newEmbedded(t testing.TB, extra ...string) *program {
	t.Helper()
	addr := process.Address(t)
	checker, err := documented()
	must.NoError(t, err)
	p := &program{t: t, dir: pgtest.NewDataDir(t), addr: addr, client: &http.Client{
		Timeout: eventually.Patience,
		// Whatever a test is about, every answer is as the document says.
		Transport: checker.Transport(&http.Transport{MaxIdleConnsPerHost: 128}, func(err error) { t.Error(err) }),
	}}
	t.Cleanup(p.client.CloseIdleConnections)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HUMANQA_") {
			p.environ = append(p.environ, v)
		}
	}
	p.environ = append(p.environ, runAsHumanqa+"=1",
		"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0", // else each command ends a second late
		"HUMANQA_DATA_DIR="+p.dir, "HUMANQA_ADDR="+addr, "HUMANQA_ADMIN_ADDR=off", "HUMANQA_VOICE=off",
		"HUMANQA_LOG_FORMAT=text", "HUMANQA_LOG_LEVEL=warn",
		"HUMANQA_RATE_LIMIT=1000000") // a test is faster than any client may be
	p.environ = append(p.environ, extra...)
	return p
}

func (p *program) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = p.environ
	return cmd
}

// cli runs an operator's command and decodes the one JSON object it prints.
func (p *program) cli(out any, args ...string) {
	p.t.Helper()
	stdout, stderr, err := p.tryCLI(append([]string{"--json"}, args...)...)
	if err != nil {
		p.t.Fatalf("humanqa %s: %v: %s", strings.Join(args, " "), err, stderr)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(stdout), out); err != nil {
			p.t.Fatalf("humanqa %s printed %q: %v", strings.Join(args, " "), stdout, err)
		}
	}
}

// tryCLI runs a command in this process: starting one of its own, with the race
// detector in it, takes longer than most commands.
func (p *program) tryCLI(args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limitOfCommands())
	defer cancel()
	var out, complaint bytes.Buffer
	if code := run(ctx, args, p.environ, &out, &complaint); code != exitDone {
		err = exitError(code)
	}
	return out.String(), complaint.String(), err
}

// limitOfCommands is longer where a torture may have made a long log.
func limitOfCommands() time.Duration {
	if *torture {
		return 20 * time.Minute
	}
	return eventually.Patience
}

// exitError is the status of a command that failed.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// given is the URL of a database that a setting names; empty: the service runs its own.
func (p *program) given() string {
	for _, v := range slices.Backward(p.environ) {
		if dsn, is := strings.CutPrefix(v, "HUMANQA_DATABASE_URL="); is {
			return dsn
		}
	}
	return ""
}

// dsn is the database's URL; that of an embedded Postgres while it runs.
func (p *program) dsn() string {
	p.t.Helper()
	if dsn := p.given(); dsn != "" {
		return dsn
	}
	server, err := pgdev.Running(p.dir)
	must.NoError(p.t, err)
	return server.DSN(pgdev.Database)
}

// instance is the running program: in a process of its own, or in the test's.
type instance struct {
	*program
	*process.Process
}

// start runs the service in the test's process, and waits until it is ready.
func (p *program) start(args ...string) *instance {
	p.t.Helper()
	s := p.serve(args...)
	s.waitReady()
	return s
}

// serve is start that does not wait.
func (p *program) serve(args ...string) *instance {
	p.t.Helper()
	p.plant()
	environ := p.environ
	return &instance{p, process.Inside(p.t, func(ctx context.Context, log io.Writer) error {
		if code := run(ctx, append([]string{"serve"}, args...), environ, io.Discard, log); code != exitDone {
			return exitError(code)
		}
		return nil
	})}
}

// spawn is start in a process of its own: for tests of its kill, its signals, its memory or
// its environment.
func (p *program) spawn(args ...string) *instance {
	p.t.Helper()
	s := p.launch(args...)
	s.waitReady()
	return s
}

// launch is spawn that does not wait.
func (p *program) launch(args ...string) *instance {
	p.t.Helper()
	p.plant()
	return p.launchAs(p.command(context.Background(), append([]string{"serve"}, args...)...))
}

// plant has a service find a migrated cluster in a data directory that does not exist yet.
// launchAs leaves it to the service to make one.
func (p *program) plant() {
	p.t.Helper()
	if p.given() == "" {
		pgtest.Plant(p.t, p.dir)
	}
}

func (p *program) launchAs(cmd *exec.Cmd) *instance {
	p.t.Helper()
	cmd.Env = p.environ
	return &instance{p, process.Start(p.t, cmd)}
}

// waitReady waits until /readyz says that everything is there and caught up.
func (s *instance) waitReady() { s.t.Helper(); s.Ready(s.client, s.url(""), limitOfCommands()) }

func (p *program) url(path string) string { return "http://" + p.addr + path }

func (s *instance) stop() { s.t.Helper(); s.Stop(syscall.SIGTERM) }

func (s *instance) kill() { s.t.Helper(); s.Kill() }

// reply is an answer of the service, read to its end.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// field gives a top-level field of the answer, nil if there is none.
func (r reply) field(name string) any {
	var o map[string]any
	if json.Unmarshal(r.body, &o) != nil {
		return nil
	}
	return o[name]
}

func (r reply) text(name string) string {
	s, _ := r.field(name).(string)
	return s
}

func (r reply) number(name string) int {
	n, _ := r.field(name).(float64)
	return int(n)
}

// try makes a request; body is marshalled unless it is nil. header are
// name-value pairs.
func (p *program) try(method, path, key string, body any, header ...string) (reply, error) {
	return p.tryIn(context.Background(), method, path, key, body, header...)
}

// tryIn is try that ends with its context.
func (p *program) tryIn(ctx context.Context, method, path, key string, body any, header ...string) (reply, error) {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return reply{}, err
		}
		content = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.url(path), content)
	if err != nil {
		return reply{}, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := p.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = res.Body.Close() }() // read to its end
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}, err
	}
	return reply{status: res.StatusCode, header: res.Header, body: raw}, nil
}

// call is try that must get the status. A read that is 503 on a busy machine is sent again,
// as its answer says.
func (p *program) call(status int, method, path, key string, body any, header ...string) reply {
	p.t.Helper()
	var r reply
	var err error
	eventually.True(p.t, method+" "+path+" is answered", func() bool {
		r, err = p.try(method, path, key, body, header...)
		return err != nil || method != http.MethodGet || r.status == status || r.status != http.StatusServiceUnavailable
	})
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	if r.status != status {
		p.t.Fatalf("%s %s: %d %s, want %d", method, path, r.status, r.body, status)
	}
	if r.header.Get("X-Request-Id") == "" {
		p.t.Errorf("%s %s: no x-request-id", method, path)
	}
	return r
}

// newAccount opens an account through the operator's command.
func (p *program) newAccount(credits int) (id, key string) {
	p.t.Helper()
	var out struct{ AccountID, APIKey string }
	p.cli(&out, "account", "create", "--name", "Acme", "--credits", fmt.Sprint(credits))
	return out.AccountID, out.APIKey
}

func (p *program) newChecker() (id, key string) {
	p.t.Helper()
	var out struct{ CheckerID, CheckerKey string }
	p.cli(&out, "checker", "create", "--name", "Ann")
	return out.CheckerID, out.CheckerKey
}

// inCore does what an operator's commands do, in the test's process.
func (p *program) inCore(do func(*service.Core)) {
	p.t.Helper()
	cfg, err := service.ParseConfig(p.environ)
	must.NoError(p.t, err)
	core, err := service.Open(p.t.Context(), cfg, logging.New(cfg.LogFormat, cfg.LogLevel, io.Discard))
	must.NoError(p.t, err)
	defer func() { must.NoError(p.t, core.Close(p.t.Context())) }()
	do(core)
}

// newCheckers are keys of checkers, made by one command's connection.
func (p *program) newCheckers(n int) (keys []string) {
	p.t.Helper()
	p.inCore(func(core *service.Core) {
		var last domain.Position
		for range n {
			checker, err := core.Commands.CreateChecker(p.t.Context(), service.OperatorCause(""), "Ann", nil)
			must.NoError(p.t, err)
			keys, last = append(keys, checker.Token), checker.Position
		}
		core.WaitVisible(p.t.Context(), last)
	})
	return keys
}

// submission is a valid body of POST /v1/jobs with n items, and extra fields
// as name-value pairs.
func submission(n int, extra ...any) map[string]any {
	items := make([]any, 0, n)
	for i := range n {
		items = append(items, map[string]any{"description": fmt.Sprintf("point %d holds", i+1), "severity": "major"})
	}
	body := map[string]any{
		"url": "https://example.com/shop", "title": "Check the shop", "description": "Buy something",
		"jobType": "Payment Flow", "checklistItems": items,
	}
	for i := 0; i+1 < len(extra); i += 2 {
		body[extra[i].(string)] = extra[i+1]
	}
	return body
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/domain"
	"humanqa/internal/receiver"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/process"
)

// The test binary is also the service that the tests start and kill, and the client where
// a test kills it.
const (
	runAsService = "HQA_TEST_RUN_AS_SERVICE"
	runAsClient  = "HQA_TEST_RUN_AS_CLIENT"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(runAsService) != "":
		os.Exit(serve())
	case os.Getenv(runAsClient) != "":
		main()
	}
	os.Exit(pgtest.Main(m))
}

func serve() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var environ []string
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "HUMANQA_") {
			environ = append(environ, v)
		}
	}
	cfg, err := service.ParseConfig(environ)
	if err == nil {
		err = service.Serve(ctx, cfg, logging.New(cfg.LogFormat, cfg.LogLevel, os.Stderr), func(*service.Service) {})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// qa is a running service, as the story of t sees it.
type qa struct {
	*running
	t *testing.T
}

// running is a service on a data directory of its own.
type running struct {
	whole   *testing.T // of all stories
	dir     string
	url     string
	environ []string

	certificates string // of listeners, which the service trusts

	process *process.Process
	hosts   *codeHosts
}

// startService starts it. It has a Postgres of its own, so that one that was killed comes
// back at once.
func startService(t *testing.T) *qa {
	t.Helper()
	addr := process.Address(t)
	s := &qa{&running{whole: t, dir: pgtest.NewDataDir(t), url: "http://" + addr, certificates: t.TempDir(), hosts: newCodeHosts(t)}, t}
	r, err := receiver.New(t.Context(), receiver.Config{Dir: s.certificates})
	must.NoError(t, err)
	must.NoError(t, r.Close())
	s.environ = []string{
		"HUMANQA_DATA_DIR=" + s.dir, "HUMANQA_ADDR=" + addr, "HUMANQA_ADMIN_ADDR=off", "HUMANQA_VOICE=off", "HUMANQA_LOG_LEVEL=warn",
		"HUMANQA_RATE_LIMIT=1000000", "HUMANQA_WEBHOOK_ALLOW=127.0.0.0/8", "HUMANQA_WEBHOOK_CA_FILE=" + r.CAFile(),
		"HUMANQA_GITHUB_API_URL=" + s.hosts.URL + "/api/v3", "HUMANQA_GITLAB_API_URL=" + s.hosts.URL + "/api/v4",
	}
	pgtest.Plant(t, s.dir)
	s.start()
	return s
}

// in is the same service in a story.
func (s *qa) in(t *testing.T) *qa { return &qa{s.running, t} }

func (s *qa) start() {
	s.t.Helper()
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(append([]string{runAsService + "=1"}, s.environ...), os.Environ()...)
	s.process = process.Start(s.whole, cmd)
	s.process.In(s.t).Ready(http.DefaultClient, s.url, eventually.Patience)
}

// kill ends the service as a crash would.
func (s *qa) kill() { s.t.Helper(); s.process.In(s.t).Kill() }

// revive starts the service where a story that failed has left it killed.
func (s *qa) revive() {
	s.t.Helper()
	if !s.process.Running() {
		s.start()
	}
}

// operate does something as the operator.
func operate[T any](s *qa, do func(context.Context, *service.Core) (T, error)) T {
	s.t.Helper()
	cfg, err := service.ParseConfig(s.environ)
	must.NoError(s.t, err)
	core, err := service.Open(context.Background(), cfg, logging.New(cfg.LogFormat, cfg.LogLevel, io.Discard))
	must.NoError(s.t, err)
	defer func() { must.NoError(s.t, core.Close(context.Background())) }()
	out, err := do(context.Background(), core)
	must.NoError(s.t, err)
	return out
}

// account opens an account and gives its key.
func (s *qa) account(credits int, sandbox bool) string {
	s.t.Helper()
	return s.open(credits, sandbox).APIKey
}

type openedAccount struct{ AccountID, APIKey string }

func (s *qa) open(credits int, sandbox bool) openedAccount {
	s.t.Helper()
	return operate(s, func(ctx context.Context, core *service.Core) (openedAccount, error) {
		accountID, key, err := service.OpenAccount(ctx, core.Commands, service.OperatorCause(""), service.NewAccount{
			Name: "Acme", Credits: domain.Credits(credits), Sandbox: sandbox,
		})
		core.WaitVisible(ctx, key.Position)
		return openedAccount{accountID, key.Token}, err
	})
}

func (s *qa) checker() string {
	s.t.Helper()
	return operate(s, func(ctx context.Context, core *service.Core) (string, error) {
		made, err := core.Commands.CreateChecker(ctx, service.OperatorCause(""), "Ann", nil)
		core.WaitVisible(ctx, made.Position)
		return made.Token, err
	})
}

// call is a request beside the client's, which must succeed.
func (s *qa) call(method, path, key string, body any, header ...string) map[string]any {
	s.t.Helper()
	raw, err := json.Marshal(body)
	must.NoError(s.t, err)
	req, err := http.NewRequestWithContext(context.Background(), method, s.url+path, bytes.NewReader(raw))
	must.NoError(s.t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	must.NoError(s.t, err)
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	must.NoError(s.t, err)
	if res.StatusCode/100 != 2 {
		s.t.Fatalf("%s %s: %s %s", method, path, res.Status, answer)
	}
	out := map[string]any{}
	if len(answer) > 0 {
		must.NoError(s.t, json.Unmarshal(answer, &out))
	}
	return out
}

// credits are what is left.
func (s *qa) credits(key string) int {
	s.t.Helper()
	n, _ := s.call("GET", "/v1/credits", key, nil)["available"].(float64)
	return int(n)
}

// play has robots check a sandbox's job: the named items fail.
func (s *qa) play(key, job string, failing ...string) {
	s.t.Helper()
	results := []any{}
	for _, item := range failing {
		results = append(results, map[string]string{"item": item, "status": "fail", "note": "The button does nothing."})
	}
	s.call("POST", "/v1/sandbox/jobs/"+job+"/play", key, map[string]any{"results": results, "summary": "Played."})
}

// user is a person, or a pipeline, with a home and a directory of their own.
type user struct {
	t       *testing.T
	dir     string
	environ []string
	in      string
}

func (s *qa) user(t *testing.T, key string, environ ...string) *user {
	t.Helper()
	return &user{t: t, dir: t.TempDir(), environ: append([]string{
		"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "HQA_URL=" + s.url, "HQA_API_KEY=" + key,
	}, environ...)}
}

// key is the user's, by the environment.
func (u *user) key() string { return strings.TrimPrefix(u.environ[3], "HQA_API_KEY=") }

// told is what a command printed, and its exit code.
type told struct {
	code     int
	out, err string
}

// jobs are the ids in the lines of JSON, or of text, of a submission.
func (r told) jobs(t *testing.T) []string {
	t.Helper()
	for line := range strings.Lines(r.out) {
		var s submission
		if json.Unmarshal([]byte(line), &s) == nil && len(s.JobIDs) > 0 {
			return s.JobIDs
		}
	}
	var ids []string
	for line := range strings.Lines(r.out) {
		if id, _, found := strings.Cut(line, " http"); found {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		t.Fatalf("no job in %+v", r)
	}
	return ids
}

// hqa runs a command in this process.
func (u *user) hqa(args ...string) told {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Patience)
	defer cancel()
	return u.hqaUntil(ctx, args...)
}

func (u *user) hqaUntil(ctx context.Context, args ...string) told {
	u.t.Helper()
	var out, err bytes.Buffer
	code := run(ctx, args, world{environ: u.environ, in: strings.NewReader(u.in), out: &out, told: &err, dir: u.dir})
	return told{code, out.String(), err.String()}
}

// must is hqa with the exit code that is expected.
func (u *user) must(code int, args ...string) told {
	u.t.Helper()
	r := u.hqa(args...)
	if r.code != code {
		u.t.Fatalf("hqa %s: exit %d, want %d\n%s\n%s", strings.Join(args, " "), r.code, code, r.out, r.err)
	}
	return r
}

// launched is a client of its own, which a test can kill.
type launched struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // of standard output
	ended chan int
}

func (u *user) launch(args ...string) *launched {
	u.t.Helper()
	return u.launchOn(nil, args...)
}

// launchOn is launch with a standard input.
func (u *user) launchOn(in *os.File, args ...string) *launched {
	u.t.Helper()
	p := &launched{t: u.t, lines: make(chan string, 1000), ended: make(chan int, 1)}
	p.cmd = exec.CommandContext(context.Background(), os.Args[0], args...)
	p.cmd.Env = append(append([]string{}, u.environ...), runAsClient+"=1")
	p.cmd.Dir = u.dir
	p.cmd.Stderr = os.Stderr
	if in != nil {
		p.cmd.Stdin = in
	}
	pipe, err := p.cmd.StdoutPipe()
	must.NoError(u.t, err)
	must.NoError(u.t, p.cmd.Start())
	go func() {
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			p.lines <- lines.Text()
		}
		_ = p.cmd.Wait() // the code tells
		p.ended <- p.cmd.ProcessState.ExitCode()
	}()
	u.t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // it ended, as a rule
	return p
}

// until gives the first line with the text.
func (p *launched) until(text string) string {
	p.t.Helper()
	over := time.After(eventually.Patience)
	for {
		select {
		case line := <-p.lines:
			if strings.Contains(line, text) {
				return line
			}
		case code := <-p.ended:
			p.t.Fatalf("hqa ended with %d before it said %q", code, text)
		case <-over:
			p.t.Fatalf("hqa does not say %q", text)
		}
	}
}

// exit waits for the end.
func (p *launched) exit() int {
	p.t.Helper()
	select {
	case code := <-p.ended:
		return code
	case <-time.After(eventually.Patience):
		p.t.Fatal("hqa does not end")
		return 0
	}
}

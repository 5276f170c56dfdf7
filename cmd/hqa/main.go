// Command hqa is the client: it submits tests, waits for them and reads their reports.
//
//	main.go      the command line: every command there is
//	exit.go      the exit codes
//	submit.go    the parts of every submission: price, consent, Idempotency-Key
//	outcome.go   the end of every wait: verdicts and reports
//	the others   one file a group of commands
//
// It knows the service by its API only. docs/hqa.md is its page.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"humanqa/cmd/hqa/store"
	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/buildinfo"
	"humanqa/internal/fence"
)

// commands is the command line; each command's Run is in its group's file.
type commands struct {
	JSON      bool        `name:"json" help:"Print JSON: one object, or one a line while waiting. Errors are JSON on standard error."`
	ShowBuild versionFlag `name:"version" help:"Show the version, as hqa version does."`

	Login  loginCmd  `cmd:"" help:"Keep an API key for a service, in the user's config directory."`
	Logout logoutCmd `cmd:"" help:"Forget the key of a service. The key stays valid until it is revoked on the dashboard."`

	Test     testCmd     `cmd:"" help:"Have a person test a URL."`
	Run      runCmd      `cmd:"" help:"Run the tests in files, as one batch."`
	Init     initCmd     `cmd:"" help:"Write a test file: a first one, or one from a job or from the items that fail."`
	Lint     lintCmd     `cmd:"" help:"Check tests' files; print the line and column of each mistake."`
	Retest   retestCmd   `cmd:"" help:"Test a job again; without an id, what failed in the last run of this directory."`
	Status   statusCmd   `cmd:"" help:"Show the state of a test."`
	Wait     waitCmd     `cmd:"" help:"Wait until tests have ended, and exit by their verdict."`
	Report   reportCmd   `cmd:"" help:"Print the report of a test that has ended."`
	Failures failuresCmd `cmd:"" help:"List the items that fail."`
	Answer   answerCmd   `cmd:"" help:"Answer the question of a checker; without a text, show it."`
	Cancel   cancelCmd   `cmd:"" help:"Cancel tests that no checker has begun, and get the credits back."`

	Listen  listenCmd  `cmd:"" help:"Receive a project's webhooks over HTTPS on this machine, verify them and pass them on."`
	Trigger triggerCmd `cmd:"" help:"Make an event happen in a sandbox's project, and so a delivery to its webhook."`

	GitHub     githubCmd     `cmd:"" name:"github" help:"The step of a GitHub Action: test, then tell the pull request."`
	MCP        mcpCmd        `cmd:"" name:"mcp" help:"Serve the tools for coding agents on standard input and output."`
	Verify     verifyCmd     `cmd:"" help:"Check a proof and its report, offline."`
	Doctor     doctorCmd     `cmd:"" help:"Check the service, the key and this machine."`
	Completion completionCmd `cmd:"" help:"Print the completion of a shell."`
	Version    versionCmd    `cmd:"" help:"Show the version, the commit and the Go that made this binary."`
}

func main() {
	// The first signal ends the wait, not the test; a second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], world{
		environ: os.Environ(), in: os.Stdin, out: os.Stdout, told: os.Stderr, terminal: isTerminal(os.Stdin) && isTerminal(os.Stderr),
	}))
}

// world is the environment of the process.
type world struct {
	environ  []string
	in       io.Reader
	out      io.Writer // data
	told     io.Writer // progress, prices, errors
	terminal bool      // a person is there to be asked
	dir      string    // the working directory; empty: the process's
}

// run is main without the process around it.
func run(ctx context.Context, args []string, w world) int {
	var c commands
	a := &app{world: w, build: buildinfo.This()}
	for _, arg := range args { // an error of the command line is told in its form, too
		a.json = a.json || arg == "--json"
	}
	exited := -1
	parser, err := newParser(&c, kong.Writers(w.out, w.told), kong.Exit(func(code int) { exited = code }), kong.Bind(a))
	if err != nil {
		return a.fail(err)
	}
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:], "--help")
	}
	parsed, err := parser.Parse(args)
	switch {
	case exited >= 0: // --help, --version
		return exited
	case err != nil:
		return a.fail(usage("%w: see hqa --help", err))
	}
	a.json = c.JSON
	a.store = store.Open(a.env)
	if a.dir == "" {
		if a.dir, err = os.Getwd(); err != nil {
			return a.fail(err)
		}
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err = parsed.BindToProvider(a.client); err == nil {
		err = parsed.Run(a)
	}
	if err != nil {
		return a.fail(err)
	}
	return exitPassed
}

// newParser reads the command line into c.
func newParser(c *commands, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append(options,
		kong.Name("hqa"),
		kong.Description("Have people test your app from the command line: submit a URL or files, wait, read the report."),
		kong.Vars{"formats": formats},
		kong.UsageOnError())...)
}

// app is given to every command beside its flags.
type app struct {
	world
	json  bool
	store store.Store
	build buildinfo.Info
	files map[string]string // by job, of tests that stand in files
}

// env reads the environment; the last of two equal names counts, as in a shell.
func (a *app) env(name string) string {
	value := ""
	for _, v := range a.environ {
		if rest, found := strings.CutPrefix(v, name+"="); found {
			value = rest
		}
	}
	return value
}

// client is that of the service that HQA_URL or the latest login names, with its key. A
// command whose Run asks for a client is given this one.
func (a *app) client() (*humanqa.Client, error) {
	url, key, err := a.login()
	switch {
	case err != nil:
		return nil, err
	case url == "":
		return nil, usage("no service is known: run hqa login URL, or set HQA_URL")
	case key == "":
		return nil, refused("there is no key for %s: run hqa login %s, or set HQA_API_KEY", url, url)
	}
	return humanqa.New(url, key, "hqa/"+a.build.Version)
}

// login is the service and its key. A kept key goes to the service that it was kept for.
func (a *app) login() (url, key string, err error) {
	kept, err := a.store.Keys()
	url, key = strings.TrimRight(a.env("HQA_URL"), "/"), strings.TrimSpace(a.env("HQA_API_KEY"))
	if url != "" && key != "" {
		return url, key, nil // nothing kept is needed
	}
	url = cmp.Or(url, kept.URL)
	return url, cmp.Or(key, kept.Keys[url]), err
}

// print answers with one JSON object, or with the text.
func (a *app) print(object any, format string, args ...any) error {
	if a.json {
		return a.line(object)
	}
	_, err := fmt.Fprintf(a.out, format+"\n", args...)
	return err
}

// line prints one JSON object on a line.
func (a *app) line(object any) error {
	var encoded bytes.Buffer
	e := json.NewEncoder(&encoded)
	e.SetEscapeHTML(false)
	if err := e.Encode(object); err != nil {
		return err
	}
	_, err := a.out.Write(fence.JSON(encoded.Bytes()))
	return err
}

// say tells a person something beside the data.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.told, format+"\n", args...) // nowhere left to complain
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(a *app) error { return a.printBuild() }

// versionFlag is hqa --version, which needs no command.
type versionFlag bool

// BeforeReset is called by kong as soon as the flag is seen.
func (versionFlag) BeforeReset(k *kong.Kong, a *app) error { //nolint:unparam // kong's hooks have one
	k.Exit(exitOf(a.printBuild()))
	return nil
}

func (a *app) printBuild() error {
	return a.print(a.build, "hqa %s, commit %s, %s", a.build.Version, a.build.Commit, a.build.GoVersion)
}

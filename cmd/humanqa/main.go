// Command humanqa is the whole service and its operator's commands in one
// binary.
//
//	main.go          the command line: every command there is
//	serve.go         starts the service, which cmd/humanqa/service wires
//	audit_trail.go   the record of operators' commands
//	the others       one file a group of commands
//
// demo.go tells one job's life. All other commands are operators'.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/sirupsen/logrus"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/projections"
)

// commands is the command line; each command's Run is in its group's file.
type commands struct {
	JSON      bool             `name:"json" help:"Print one JSON object instead of text."`
	EnvFile   string           `name:"env-file" type:"path" placeholder:"FILE" help:"Read settings from this file, such as /etc/humanqa/env; the environment wins."`
	ShowBuild kong.VersionFlag `name:"version" help:"Show the version, as humanqa version does."`

	Serve serveCmd `cmd:"" help:"Run the service."`

	Account struct {
		List      accountListCmd      `cmd:"" help:"List every account."`
		Create    accountCreateCmd    `cmd:"" help:"Open an account and issue its first key."`
		Suspend   accountSuspendCmd   `cmd:"" help:"Stop every key of an account."`
		Reinstate accountReinstateCmd `cmd:"" help:"End a suspension."`
		Erase     accountEraseCmd     `cmd:"" help:"End an account for good and erase its secrets, evidence, people and webhooks. Its history stays."`
	} `cmd:"" help:"Accounts."`
	Key struct {
		List   keyListCmd   `cmd:"" help:"List an account's keys; never the keys themselves."`
		Create keyCreateCmd `cmd:"" help:"Issue an API key."`
		Revoke keyRevokeCmd `cmd:"" help:"End an API key for good."`
	} `cmd:"" help:"API keys."`
	Keys struct {
		Rotate keysRotateCmd `cmd:"" help:"Change the master key while the service runs: add a key, wrap all data keys under it, and with --finish take the old one out. An interrupted run goes on."`
	} `cmd:"" help:"The master keyset, under which every secret is sealed."`
	Credits struct {
		Grant creditsGrantCmd `cmd:"" help:"Add credits to an account."`
	} `cmd:"" help:"Credits."`
	Checker struct {
		List   checkerListCmd   `cmd:"" help:"List every checker."`
		Create checkerCreateCmd `cmd:"" help:"Register a checker and issue their key."`
	} `cmd:"" help:"Checkers."`
	Person struct {
		Invite personInviteCmd `cmd:"" help:"Make a one-time link for a new person to sign in by."`
		Link   personLinkCmd   `cmd:"" help:"Make a new one-time link for a person who cannot sign in."`
	} `cmd:"" help:"People who sign in."`
	Job struct {
		Cancel     jobCancelCmd     `cmd:"" help:"Cancel a pending job and refund it."`
		Untestable jobUntestableCmd `cmd:"" help:"Fail a job that cannot be tested and refund it."`
	} `cmd:"" help:"Jobs."`
	Project struct {
		Secret projectSecretCmd `cmd:"" help:"Show the signing secret of a project's webhook."`
	} `cmd:"" help:"Projects."`

	Evidence struct {
		Usage   evidenceUsageCmd   `cmd:"" help:"Show the evidence of each account by kind, and the part that goes within a month."`
		Keep    evidenceKeepCmd    `cmd:"" help:"Say how long an account or a project keeps evidence."`
		Hold    evidenceHoldCmd    `cmd:"" help:"Keep the evidence of an account, a project or a job, despite the settings."`
		Release evidenceReleaseCmd `cmd:"" help:"End a hold."`
		Copy    evidenceCopyCmd    `cmd:"" help:"Copy all evidence to another place, such as a bucket. Run it beside the service, and once more while it is stopped."`
		Sweep   evidenceSweepCmd   `cmd:"" help:"Let go the evidence that is due, and delete its files, as the service does each minute."`
	} `cmd:"" help:"Evidence, and how long it is kept."`
	Erase eraseCmd `cmd:"" help:"Erase one job, checker or person for good, and search for remains. Verdicts, credits and proofs stay."`

	Replay      replayCmd `cmd:"" help:"Print a stream's events, one line each, secrets as [sealed]."`
	Projections struct {
		List    projectionsListCmd    `cmd:"" help:"Show the position of each read model."`
		Rebuild projectionsRebuildCmd `cmd:"" help:"Build a read model again beside the serving one."`
		Retry   projectionsRetryCmd   `cmd:"" help:"Let a stopped read model try its event again."`
		Skip    projectionsSkipCmd    `cmd:"" help:"Skip the event at which a read model stopped, or that it set aside. The skip is recorded."`
		Add     projectionsAddCmd     `cmd:"" help:"Have the service keep a declared projection, or a new version of it."`
		Check   projectionsCheckCmd   `cmd:"" help:"Try a declared projection on the log's last thousand events, and take it back."`
		Test    projectionsTestCmd    `cmd:"" help:"Fold the whole log by a declared projection in large batches and in small ones, and compare the rows."`
		Drop    projectionsDropCmd    `cmd:"" help:"Remove a declared projection, or a read model that no binary runs any more."`
	} `cmd:"" help:"Read models."`

	Eventstore struct {
		Check  eventstoreCheckCmd  `cmd:"" help:"Check that the log has the rights and limits that the service needs. Exit 1 with the next step if not."`
		Reader eventstoreReaderCmd `cmd:"" help:"Make a password that may read the log and append nothing. Run it again for a new one."`
		Grant  eventstoreGrantCmd  `cmd:"" help:"Let a user of the log's own server read and subscribe to $all, by the metadata of $all."`
		Copy   eventstoreCopyCmd   `cmd:"" help:"Copy a log to another server, event by event, and check the copy. A second run continues the first."`

		Restored eventstoreRestoredCmd `cmd:"" help:"State that the log was restored, where the service cannot see it: readers with cursors of lost events are told."`
		Trimmed  eventstoreTrimmedCmd  `cmd:"" help:"State that events up to a position are kept no more: readers from before it are told."`
	} `cmd:"" help:"The event log."`

	Audit struct {
		Checkpoint auditCheckpointCmd `cmd:"" help:"Sign the log as it is; keep the result elsewhere."`
		Key        auditKeyCmd        `cmd:"" help:"Show the log's name and public key, by which checkpoints are verified."`
		Prove      auditProveCmd      `cmd:"" help:"Prove that an event is in the log, as one JSON object."`
		Verify     auditVerifyCmd     `cmd:"" help:"Compare the log with every checkpoint. Exit 1 with the changes if there are any."`
		Accept     auditAcceptCmd     `cmd:"" help:"Let an event count that audit verify names; without one, go on behind other known findings: a new key, lost checkpoints."`
		Disown     auditDisownCmd     `cmd:"" help:"Let an event that was put into the log past the service count for nothing."`
		Export     auditExportCmd     `cmd:"" help:"Write the log as lines of JSON, for checks offline."`
	} `cmd:"" help:"Proofs that the log was not changed."`

	Export  exportCmd `cmd:"" help:"Write events, jobs, items, ledger entries, tests, projects or accounts as rows, without sealed fields."`
	Analyst struct {
		Create analystCreateCmd `cmd:"" help:"Make a database role that reads schema analytics and nothing else."`
	} `cmd:"" help:"Roles of the database for analysts."`

	Backup  backupCmd  `cmd:"" help:"Write everything into one file, while the service runs or is stopped."`
	Restore restoreCmd `cmd:"" help:"Make a data directory of a backup, and check it. It trusts the file: restore only files from a source that you trust."`
	Doctor  doctorCmd  `cmd:"" help:"Show the settings in force and their sources, and look at every part that the service needs. Exit 1 with the next step if one is wrong."`
	Fsck    fsckCmd    `cmd:"" help:"Check every invariant on live data; exit 1 with the findings if one fails."`
	Demo    demoCmd    `cmd:"" help:"Tell one job's life against a running 'humanqa serve --demo'."`
	Version versionCmd `cmd:"" help:"Show the version, the commit and the Go that made this binary."`
}

// Exit codes (operating contract).
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	// The first signal asks to stop, in order; from then on the default is
	// back, so a second one ends the process at once. A terminal that is closed
	// is a stop like any other, unless nohup has us outlive it.
	stops := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		stops = append(stops, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), stops...)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// run is main without the process around it.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	var c commands
	parser, err := newParser(&c, kong.Writers(stdout, stderr), currentUser())
	if err != nil {
		return tell(stderr, exitFailed, err)
	}
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:], "--help")
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return tell(stderr, exitUsage, fmt.Errorf("%w: see humanqa --help", err))
	}
	var fromFile []string
	if c.EnvFile != "" {
		if environ, fromFile, err = service.ReadEnvFile(c.EnvFile, environ); err != nil {
			return tell(stderr, exitUsage, err)
		}
	}
	cfg, err := service.ParseConfig(environ)
	if err != nil {
		return tell(stderr, exitUsage, err)
	}
	a := &app{
		cfg: cfg, envFile: c.EnvFile, fromFile: fromFile,
		json: c.JSON, out: stdout, told: stderr, log: logging.New(cfg.LogFormat, cfg.LogLevel, stderr),
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	err = errors.Join(
		parsed.BindToProvider(func() (*service.Core, error) { return a.openCore(ctx) }),
		parsed.BindToProvider(func() (*projections.Reads, error) { return a.openReads(ctx) }),
	)
	if err == nil {
		err = parsed.Run(a)
	}
	if a.core != nil {
		err = errors.Join(err, a.core.Close(ctx))
	}
	if err != nil {
		return tell(stderr, exitFailed, err)
	}
	return exitDone
}

// newParser reads the command line into c.
func newParser(c *commands, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append(options,
		kong.Name("humanqa"),
		kong.Vars{"version": build()},
		kong.Description("Human QA testing as a service: submit a URL, a person tests it, read the report."))...)
}

// app is given to every command beside its flags.
type app struct {
	cfg      service.Config
	envFile  string   // "": none
	fromFile []string // the settings that it settles
	json     bool
	out      io.Writer
	told     io.Writer // progress, for a person at a terminal
	log      *logrus.Logger
	core     *service.Core // of a command whose Run asks for it, or for read models
}

// print answers with one JSON object, or with the text.
func (a *app) print(object any, format string, args ...any) error {
	if a.json {
		return json.NewEncoder(a.out).Encode(object)
	}
	_, err := fmt.Fprintf(a.out, format+"\n", args...)
	return err
}

// conclude prints the object or the lines, and gives the error of a check that found
// something; nil: nothing is wrong.
func (a *app) conclude(object any, lines []string, wrong error) error {
	return cmp.Or(a.print(object, "%s", strings.Join(lines, "\n")), wrong)
}

// linesOf are the findings, a line each.
func linesOf(found []audit.Finding) (lines []string) {
	for _, f := range found {
		lines = append(lines, f.String())
	}
	return lines
}

// tell writes the one line that a failure gets, with the next step where one is
// known.
func tell(w io.Writer, code int, err error) int {
	line := logging.OneLine(err.Error())
	if refusal, ok := errors.AsType[*domain.Error](err); ok {
		switch {
		case refusal.Hint != "":
			line += ": " + refusal.Hint
		case refusal.Kind == domain.KindNotFound:
			line += ": check the id"
		}
	}
	_, _ = fmt.Fprintln(w, "humanqa:", line) // nowhere left to complain
	return code
}

// openCore opens the core that the command's Run asks for.
func (a *app) openCore(ctx context.Context) (_ *service.Core, err error) {
	if a.core == nil {
		a.core, err = service.Open(ctx, a.cfg, logging.Quiet(a.log))
	}
	return a.core, err
}

// openReads opens read models that show everything that has been written. Where no
// service runs, this process brings them up to date.
func (a *app) openReads(ctx context.Context) (*projections.Reads, error) {
	core, err := a.openCore(ctx)
	if err != nil {
		return nil, err
	}
	head, err := core.Log.Head(ctx)
	if err != nil {
		return nil, err
	}
	if core.Served {
		core.WaitVisible(ctx, head)
	} else if err := core.CatchUp(ctx, a.log, head); errors.Is(err, service.ErrBehind) {
		a.log.Warn(err)
	} else if err != nil {
		return nil, err
	}
	return projections.NewReads(core.DB), nil
}

// withCore opens a core for a part of a command.
func (a *app) withCore(ctx context.Context, do func(context.Context, *service.Core) error) (err error) {
	c, err := service.Open(ctx, a.cfg, logging.Quiet(a.log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	return do(ctx, c)
}

// Command bench compares the service with its rivals, side by side in one run. The log
// stands against plain Postgres, the event-sourced endpoint against a CRUD twin of it.
// `make bench` runs it.
//
//	main.go       flags, the parts, the order they run in
//	measure.go    loops, rounds, quantiles
//	report.go     tables, goals, JSON
//	logspeed.go   (a) appends against inserts
//	visible.go    (c) append to visible
//	endpoint.go   (b) POST /v1/jobs against the twin
//	timers.go     (f) many timers due at once
//	apart.go      (g) the API apart from its workers
//	jobs.go       (i) jobs with a webhook at fixed rates, at rest, and behind events that hang
//	rivals.go     (i) the dispatcher beside River
//	growth.go     (j) rebuilds and checks of a long log, restarts
//	find.go       (k) search, filters and palette over many tests
//	months.go     (n) the pages of an owner of 40 projects
//	people.go     people who sign in, and the pages that they load
//	long.go       (l) one service on a long log, to a restored backup
//	faults.go     (m) refusals while the log does not answer
//	service.go    the service under test, its accounts, its profile
//	call.go       requests of any kind to it
//	postgres.go   a server, a node and a client for the parts in this process
//	process.go    what runs beside this process
//	twin          the CRUD twin
//	rival         River, in a process of its own
//
// It is run in its own folder: go -C bench run .
//
// Both sides of a comparison get the same machine, the same number of clients, and the
// same Postgres settings (durable: fsync and synchronous_commit are on). Their rounds
// alternate, so other work of the machine hits both. Only the ratios count: the absolute
// figures are the machine's.
//
// A goal that is missed is printed, never an error: exit code 1 says that
// something broke.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
)

const (
	exitDone   = 0
	exitBroken = 1
	exitUsage  = 2
)

// gcPercent makes up for a heap that holds next to nothing. By default this process would
// collect every few megabytes, many times as often as a service with its caches filled.
// It holds for both sides.
const gcPercent = 400

// part is one comparison. Each measures a figure of GOALS.md, and they run in the order of the list.
type part struct {
	letter string
	about  string
	run    func(context.Context, *bench) (section, error)
}

var parts = []part{
	{"a", "log: appends through the official client, and single-row INSERT ... COMMIT, at 1, 16, 64 and 256 writers", logSpeed},
	{"c", "visible: from a command to its effect in the read models, at 500 commands a second", visible},
	{"b", "endpoint: POST /v1/jobs at 64 clients, and a plain CRUD twin; many accounts, then one", endpoint},
	{"f", "timers: 10,000 jobs whose SLA ends in the same moment", timers},
	{"g", "apart: POST /v1/jobs of one process, and of an API whose workers run in another", apart},
	{"i",
		"webhooks: beside River: what waits, and jobs at 20 and 200 a second, with the processors' time; at rest; behind events that hang",
		jobs},
	{"j", "growth: rebuilds and checks of a long log, and the first command after a restart", growth},
	{"k", "find: search, filters and palette of an account with 100,000 tests", find},
	{"n", "months: the pages of an owner of 40 projects with 100,000 tests", months},
	{"l", "long: the whole service on a log of -events events, from its start to a restored backup", long},
	{"m", "faults: how long a refusal takes while the log is frozen, and while it is gone", faults},
}

// options are the flags.
type options struct {
	only     string
	round    time.Duration
	rounds   int
	limit    time.Duration
	dir      string
	json     bool
	profiles string
	events   int
}

// bench is one run: what was asked for, and what was started for it.
type bench struct {
	options
	work     string // everything on disk lives below; removed at the end
	log      logrus.FieldLogger
	deadline time.Time
	stops    stops
	service  *service // of parts b, f, k, l and n
	// readyWithin is how long a process may take until it is ready; 0: readyLimit.
	readyWithin time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends us at once
	if len(os.Args) > 1 && os.Args[1] == twinCommand {
		os.Exit(runTwin(ctx, os.Args[2:]))
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func parse(args []string, out io.Writer) (options, []part, error) {
	var o options
	var seconds float64
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.only, "only", "", "run only these `parts`, such as a,c")
	flags.Float64Var(&seconds, "seconds", 3, "length of one measured round")
	flags.IntVar(&o.rounds, "rounds", 3, "rounds of each side; medians are shown")
	flags.DurationVar(&o.limit, "limit", 40*time.Minute, "whole run, at most")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "where the databases live while it runs: put it on the disk that counts")
	flags.BoolVar(&o.json, "json", false, "print one JSON object")
	flags.StringVar(&o.profiles, "profile", "", "`folder` for CPU profiles: of this process in each part, and of the service in (b)")
	flags.IntVar(&o.events, "events", 100_000, "length of the log in part l")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(out, "usage: go -C bench run . [flags]   (in the repository's root)\n\nparts, in the order they run:")
		for _, p := range parts {
			_, _ = fmt.Fprintf(out, "  %s  %s\n", p.letter, p.about)
		}
		_, _ = fmt.Fprintln(out, "\nflags:")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, nil, err
	}
	o.round = time.Duration(seconds * float64(time.Second))
	if flags.NArg() > 0 || seconds <= 0 || o.rounds < 1 || o.limit <= 0 {
		return o, nil, errors.New("flags that make no sense: see -h")
	}
	if o.only == "" {
		return o, parts, nil
	}
	letters := strings.Split(o.only, ",")
	chosen := slices.Clone(parts)
	chosen = slices.DeleteFunc(chosen, func(p part) bool { return !slices.Contains(letters, p.letter) })
	if len(chosen) != len(letters) {
		return o, nil, fmt.Errorf("-only %s: -h lists the parts", o.only)
	}
	return o, chosen, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, chosen, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "bench:", err)
		return exitUsage
	}
	r := &report{out: stdout, asJSON: o.json}
	err = measureAll(ctx, o, chosen, r, stderr)
	if err = errors.Join(err, r.close()); err != nil {
		_, _ = fmt.Fprintln(stderr, "bench:", err)
		return exitBroken
	}
	return exitDone
}

func measureAll(ctx context.Context, o options, chosen []part, r *report, stderr io.Writer) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, fmt.Errorf("not done within %s: see -limit", o.limit))
	defer cancel()
	debug.SetGCPercent(gcPercent)
	log := logrus.New()
	log.SetOutput(stderr)
	log.SetLevel(logrus.WarnLevel)
	b := &bench{options: o, log: log, deadline: time.Now().Add(o.limit)}
	if b.work, err = makeWork(o.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stops.run(ctx), os.RemoveAll(b.work)) }()

	r.opening(b.work)
	for _, p := range chosen {
		_, _ = fmt.Fprintf(stderr, "(%s) %s ...\n", p.letter, p.about)
		s, err := b.profiled(ctx, p)
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("part %s: %w", p.letter, err)
		}
		s.Part = p.letter
		r.add(s)
	}
	return nil
}

// profiled runs a part, under a profile of this process where one is wanted:
// parts a and c have everything in it but Postgres.
func (b *bench) profiled(ctx context.Context, p part) (_ section, err error) {
	if b.profiles == "" {
		return p.run(ctx, b)
	}
	if err := os.MkdirAll(b.profiles, 0o755); err != nil {
		return section{}, err
	}
	f, err := os.Create(filepath.Join(b.profiles, "part-"+p.letter+".pprof"))
	if err != nil {
		return section{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return section{}, err
	}
	defer pprof.StopCPUProfile()
	return p.run(ctx, b)
}

// makeWork makes the folder of this run. If the bench runs as root, the database's own
// user has to pass through it; its contents stay closed.
func makeWork(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, "hqbench")
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	return dir, os.Chmod(dir, 0o711)
}

// folder makes a folder in that of the run.
func (b *bench) folder(name string) (string, error) {
	dir := filepath.Join(b.work, name)
	if err := os.Mkdir(dir, 0o711); err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	return dir, nil
}

// stopLimit bounds the orderly stop of everything that was started.
const stopLimit = 30 * time.Second

// stops holds a function for each step of a start that undoes it; they run in reverse.
type stops []func(context.Context) error

func (s *stops) add(stop func(context.Context) error) { *s = append(*s, stop) }

// run undoes every step, also when one of them fails and when ctx has ended.
func (s *stops) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	var errs []error
	for _, stop := range slices.Backward(*s) {
		errs = append(errs, stop(ctx))
	}
	*s = nil
	return errors.Join(errs...)
}

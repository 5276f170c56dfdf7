package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	app "humanqa/cmd/humanqa/service"
	"humanqa/internal/testing/longlog"
)

const (
	eventsOfJob = 6   // five of its life, and its debit
	ofProject   = 100 // one job of so many belongs to the project
	askedEach   = 20  // requests of each kind
	// writtenAtOnce are jobs that are charged with one append.
	writtenAtOnce = 250
	earlyJobs     = 29 // jobs of an account that has no later ones
	// momentGap lies between two moments that reads of the past tell apart: they take events to
	// be up to a minute late.
	momentGap    = 75 * time.Second
	exportedJobs = 25_000 // the newest jobs, whose events are exported
	exportRounds = 3
	momentRounds = 3
)

// long is part (l): the whole service on a log of -events events, from its start to a
// restored backup. One account has all of the jobs, which is the worst case.
func long(ctx context.Context, b *bench) (section, error) {
	b.readyWithin = time.Until(b.deadline)
	s, err := b.openService(ctx)
	if err != nil {
		return section{}, err
	}
	l := &longRun{service: s}
	l.section = section{
		Title: "long: one service and a long log",
		Notes: []string{
			fmt.Sprintf("finished jobs of one account, %d events each; one job of %d is of the project", eventsOfJob, ofProject),
			fmt.Sprintf("starts and commands behind them: medians of %d", restarts),
			fmt.Sprintf("requests: one after the other, the median and the slowest of %d", askedEach),
			fmt.Sprintf("a moment: when the account had %d jobs; an account that has as many to this day is asked in turns", earlyJobs),
		},
	}
	for _, step := range []func(context.Context) error{l.open, l.write, l.starts, l.asks, l.exports, l.operates} {
		if err := step(ctx); err != nil {
			return section{}, s.ifDead(err)
		}
	}
	return l.section, nil
}

type longRun struct {
	*service
	section
	customer
	small   customer  // has had its few jobs for as long as the other one had no more
	early   time.Time // when either had these jobs only
	half    time.Time // when half of the log was there
	newest  time.Time // before the last exportedJobs were written
	quiet   time.Time // when all had been written
	someJob string
}

// customer is an account with one project.
type customer struct{ account, key, project string }

func (l *longRun) tell(name string, value float64, unit string) {
	l.Figures = append(l.Figures, figure{name, value, unit})
}

// open makes the accounts and their projects.
func (l *longRun) open(ctx context.Context) (err error) {
	if l.customer, err = l.enrol(ctx, "long"); err == nil {
		l.small, err = l.enrol(ctx, "small")
	}
	return err
}

func (l *longRun) enrol(ctx context.Context, name string) (customer, error) {
	out, err := call(ctx, l.environ, l.program, "account", "create", "--json", "--name", name, "--credits", strconv.Itoa(plenty))
	if err != nil {
		return customer{}, err
	}
	var opened struct{ AccountID, APIKey string }
	if err := json.Unmarshal(out, &opened); err != nil {
		return customer{}, fmt.Errorf("read the new account: %w", err)
	}
	var made struct{ ProjectID string }
	err = l.call(ctx, http.StatusCreated, http.MethodPost, "/v1/projects", opened.APIKey, map[string]any{"name": "Shop"}, &made)
	return customer{opened.AccountID, opened.APIKey, made.ProjectID}, err
}

// write writes the jobs straight into the log, as the commands would have, while the
// service is stopped.
func (l *longRun) write(ctx context.Context) error {
	return l.whileStopped(ctx, func(core *app.Core) error { return l.writeInto(ctx, core) })
}

func (l *longRun) writeInto(ctx context.Context, core *app.Core) error {
	jobs := l.bench.events / eventsOfJob
	few, err := l.small.writer(ctx, core)
	if err == nil {
		_, err = few.next(ctx, earlyJobs)
	}
	if err != nil {
		return err
	}
	w, err := l.writer(ctx, core)
	if err != nil {
		return err
	}
	var began time.Time
	for w.written < jobs {
		n := min(writtenAtOnce, jobs-w.written)
		if l.early.IsZero() {
			n = earlyJobs
		}
		if l.newest.IsZero() && w.written >= jobs-exportedJobs {
			l.newest = time.Now()
		}
		ids, err := w.next(ctx, n)
		if err != nil {
			return err
		}
		if l.early.IsZero() {
			if l.early, err = later(ctx); err != nil {
				return err
			}
			began = time.Now()
		}
		if l.half.IsZero() && w.written > jobs/2 {
			l.half, l.someJob = time.Now(), ids[0]
		}
	}
	took := time.Since(began)
	if l.quiet, err = later(ctx); err != nil {
		return err
	}
	var events int
	if err := core.DB.GetContext(ctx, &events, `SELECT count(*) FROM eventlog.events`); err != nil {
		return err
	}
	l.tell("events", float64(events), "")
	l.tell("written a second", float64(events)/took.Seconds(), "")
	return nil
}

// later gives a moment that lies apart from what was written before, and from what follows.
func later(ctx context.Context) (time.Time, error) {
	var moment time.Time
	for range 2 {
		moment = time.Now()
		select {
		case <-time.After(momentGap):
		case <-ctx.Done():
			return moment, ctx.Err()
		}
	}
	return moment, nil
}

// writer writes a customer's jobs.
type writer struct {
	customer
	log     longlog.Log
	ledger  *longlog.Ledger
	written int
}

func (c customer) writer(ctx context.Context, core *app.Core) (*writer, error) {
	ledger := longlog.NewLedger(core.Log, c.account, closedEvery)
	return &writer{customer: c, log: core.Log, ledger: ledger}, ledger.Reload(ctx)
}

// next writes n jobs.
func (w *writer) next(ctx context.Context, n int) ([]string, error) {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = uuid.NewString()
	}
	if err := w.ledger.Charge(ctx, ids); err != nil {
		return nil, err
	}
	var writing errgroup.Group
	writing.SetLimit(growers)
	for _, id := range ids {
		life := longlog.Life{AccountID: w.account, Ended: time.Now()}
		if w.written%ofProject == 0 {
			life.ProjectID = w.project
		}
		w.written++
		writing.Go(func() error { return life.Write(ctx, w.log, id) })
	}
	return ids, writing.Wait()
}

// starts measures how the read models follow, and a start beside them.
func (l *longRun) starts(ctx context.Context) error {
	began := time.Now()
	if err := l.run(ctx, l.url[len("http://"):]); err != nil {
		return err
	}
	caughtUp := time.Since(began)
	l.tell("read models caught up, events a second", float64(l.bench.events)/caughtUp.Seconds(), "")
	var ready, first, second []time.Duration
	submit := func(took *[]time.Duration) error {
		began := time.Now()
		_, err := l.submitBulk(ctx, l.key, l.project, 1)
		*took = append(*took, time.Since(began))
		return err
	}
	for range restarts {
		took, err := l.restart(ctx)
		if err != nil {
			return err
		}
		ready = append(ready, took)
		if err := errors.Join(submit(&first), submit(&second)); err != nil {
			return err
		}
	}
	median := func(all []time.Duration) time.Duration {
		slices.Sort(all)
		return all[len(all)/2]
	}
	l.tell("start until ready", median(ready).Seconds(), "s")
	l.tell("first command", millis(median(first)), "ms")
	l.tell("second command", millis(median(second)), "ms")
	return nil
}

// asks times reads.
func (l *longRun) asks(ctx context.Context) error {
	past := "asOf=" + url.QueryEscape(l.half.UTC().Format(time.RFC3339Nano))
	slowest := 0.0
	for _, read := range []struct{ what, path string }{
		{"list of jobs", "/v1/jobs?limit=50"},
		{"list of completed jobs", "/v1/jobs?limit=50&status=completed"},
		{"one job", "/v1/jobs/" + l.someJob},
		{"its report", "/v1/jobs/" + l.someJob + "/report"},
		{"its report, as of the past", "/v1/jobs/" + l.someJob + "/report?" + past},
		{"credits", "/v1/credits"},
		{"credits, as of the past", "/v1/credits?" + past},
		{"history of the project", "/v1/projects/" + l.project + "/history"},
		{"history, as of the past", "/v1/projects/" + l.project + "/history?" + past},
		{"first page of the feed", "/v1/events?limit=100"},
	} {
		took, err := l.askOften(ctx, l.key, read.path)
		if err != nil {
			return err
		}
		l.tell(read.what+", median", millis(took[askedEach/2]), "ms")
		l.tell(read.what+", slowest", millis(took[askedEach-1]), "ms")
		if !strings.Contains(read.path, past) {
			slowest = max(slowest, millis(took[askedEach/2]))
		}
	}
	l.Goals = append(l.Goals, below("the slowest read of the present, median", slowest, 5, "ms"))
	mb, err := residentMB(ctx, l.cmd.Process.Pid)
	l.tell("memory of the service", mb, "MB")
	return err
}

// askOften gives the sorted times of askedEach reads.
func (l *longRun) askOften(ctx context.Context, key, path string) ([]time.Duration, error) {
	took := make([]time.Duration, askedEach)
	for i := range took {
		began := time.Now()
		if err := l.call(ctx, http.StatusOK, http.MethodGet, path, key, nil, nil); err != nil {
			return nil, err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took, nil
}

// exports times what ought to cost what it answers: an export of the newest events to the
// operator's command, what came since a moment, and an early moment's answers to those of
// an account that has no later jobs.
func (l *longRun) exports(ctx context.Context) error {
	since := "since=" + url.QueryEscape(l.newest.UTC().Format(time.RFC3339Nano))
	var byCommand, byHTTP time.Duration
	for range exportRounds {
		began := time.Now()
		commanded, err := call(ctx, l.environ, l.program, "export", "events", "--account", l.account,
			"--since", l.newest.UTC().Format(time.RFC3339Nano))
		if err != nil {
			return err
		}
		byCommand += time.Since(began)
		began = time.Now()
		sent, err := l.download(ctx, "/v1/exports/events?"+since)
		if err != nil {
			return err
		}
		byHTTP += time.Since(began)
		if want, got := bytes.Count(commanded, []byte("\n")), bytes.Count(sent, []byte("\n")); want != got {
			return fmt.Errorf("an export has %d events by command and %d by HTTP", want, got)
		}
	}
	l.tell("export of the newest events by command", byCommand.Seconds()/exportRounds, "s")
	l.Goals = append(l.Goals, below("export of the newest events by HTTP, to the command", byHTTP.Seconds()/byCommand.Seconds(), 1.5, "x"))

	quiet := "?since=" + url.QueryEscape(l.quiet.UTC().Format(time.RFC3339Nano))
	for _, table := range []string{"events", "jobs", "ledger"} {
		took, err := l.askOften(ctx, l.key, "/v1/exports/"+table+quiet)
		if err != nil {
			return err
		}
		l.Goals = append(l.Goals, below("export of "+table+" since the log was written, median", millis(took[askedEach/2]), 300, "ms"))
	}

	early := "asOf=" + url.QueryEscape(l.early.UTC().Format(time.RFC3339Nano))
	for _, read := range []struct{ what, path string }{
		{"export of jobs", "/v1/exports/jobs?"},
		{"list", "/v1/jobs?limit=50&"},
		{"credits", "/v1/credits?"},
		{"ledger", "/v1/credits/ledger?"},
	} {
		var with, without []time.Duration
		for range momentRounds {
			took, err := l.askOften(ctx, l.key, read.path+early)
			if err != nil {
				return err
			}
			with = append(with, took...)
			if took, err = l.askOften(ctx, l.small.key, read.path+early); err != nil {
				return err
			}
			without = append(without, took...)
		}
		slices.Sort(with)
		slices.Sort(without)
		l.tell(read.what+" of a moment, median", millis(with[len(with)/2]), "ms")
		l.Goals = append(l.Goals, below(read.what+" of a moment, to an account without later jobs",
			millis(with[len(with)/2])/millis(without[len(without)/2]), 1.3, "x"))
	}
	return nil
}

// download reads an answer of any length to its end.
func (l *longRun) download(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+l.key)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.300s", path, answer.Status, raw)
	}
	return raw, err
}

// operates times the operator's commands, beside the running service.
func (l *longRun) operates(ctx context.Context) error {
	backup := filepath.Join(l.bench.work, "backup.zip")
	restored, err := l.bench.folder("restored")
	if err != nil {
		return err
	}
	timed := func(what string, environ []string, args ...string) error {
		began := time.Now()
		if _, err := call(ctx, environ, l.program, args...); err != nil {
			return err
		}
		l.tell(what, time.Since(began).Seconds(), "s")
		return nil
	}
	if err := timed("rebuild of all read models", l.environ, "projections", "rebuild", "--all"); err != nil {
		return err
	}
	if err := timed("fsck", l.environ, "fsck"); err != nil {
		return err
	}
	if err := timed("audit verify", l.environ, "audit", "verify"); err != nil {
		return err
	}
	if err := timed("backup", l.environ, "backup", backup); err != nil {
		return err
	}
	for _, size := range []struct{ what, path string }{{"backup", backup}, {"data directory", l.data}} {
		n, err := sizeOf(size.path)
		if err != nil {
			return err
		}
		l.tell(size.what+", size", float64(n)/1e6, "MB")
	}
	if err := l.stop(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(l.data); err != nil { // both would take twice the room
		return err
	}
	return timed("restore, with its checks", []string{"HUMANQA_DATA_DIR=" + filepath.Join(restored, "data")}, "restore", backup)
}

// sizeOf is the size of all files below a path, in bytes.
func sizeOf(path string) (size int64, err error) {
	err = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Postgres has removed it meanwhile
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}

// residentMB asks the kernel, or ps where there is no /proc.
func residentMB(ctx context.Context, pid int) (float64, error) {
	kb := ""
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err == nil {
		for line := range bytes.Lines(status) {
			if rest, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
				kb = strings.TrimSuffix(strings.TrimSpace(string(rest)), " kB")
			}
		}
	} else {
		out, err := call(ctx, nil, "ps", "-o", "rss=", "-p", strconv.Itoa(pid))
		if err != nil {
			return 0, err
		}
		kb = strings.TrimSpace(string(out))
	}
	n, err := strconv.ParseFloat(kb, 64)
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return n / 1024, nil
}

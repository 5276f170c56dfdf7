package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
)

// long is part (l): the whole service on a log of -events events, from its start to a
// restored backup. One account has all of the jobs, which is the worst case.
func long(ctx context.Context, b *bench) (section, error) {
	b.readyWithin = time.Until(b.deadline)
	s, err := b.openService(ctx)
	if err != nil {
		return section{}, err
	}
	l := &longRun{service: s, account: uuid.Nil.String()}
	l.section = section{
		Title: "long: one service and a long log",
		Notes: []string{
			fmt.Sprintf("finished jobs of one account, %d events each; one job of %d is of the project", eventsOfJob, ofProject),
			fmt.Sprintf("requests: one after the other, the median and the slowest of %d", askedEach),
		},
	}
	for _, step := range []func(context.Context) error{l.open, l.write, l.starts, l.asks, l.operates} {
		if err := step(ctx); err != nil {
			return section{}, s.ifDead(err)
		}
	}
	return l.section, nil
}

type longRun struct {
	*service
	section
	account, key, project string
	half                  time.Time // when half of the log was there
	someJob               string
}

func (l *longRun) tell(name string, value float64, unit string) {
	l.Figures = append(l.Figures, figure{name, value, unit})
}

// open makes the account and its project.
func (l *longRun) open(ctx context.Context) error {
	out, err := call(ctx, l.environ, l.program, "account", "create", "--json", "--name", "long", "--credits", strconv.Itoa(plenty))
	if err != nil {
		return err
	}
	var opened struct{ AccountID, APIKey string }
	if err := json.Unmarshal(out, &opened); err != nil {
		return fmt.Errorf("read the new account: %w", err)
	}
	l.account, l.key = opened.AccountID, opened.APIKey
	var made struct{ ProjectID string }
	err = l.call(ctx, http.StatusCreated, http.MethodPost, "/v1/projects", l.key, map[string]any{"name": "Shop"}, &made)
	l.project = made.ProjectID
	return err
}

// write writes the jobs straight into the log, as the commands would have, while the
// service is stopped.
func (l *longRun) write(ctx context.Context) error {
	return l.whileStopped(ctx, func(core *app.Core) error { return l.writeInto(ctx, core) })
}

func (l *longRun) writeInto(ctx context.Context, core *app.Core) error {
	ledger := longlog.NewLedger(core.Log, l.account, closedEvery)
	if err := ledger.Reload(ctx); err != nil {
		return err
	}
	jobs := l.bench.events / eventsOfJob
	began := time.Now()
	year := 365 * 24 * time.Hour
	for from := 0; from < jobs; from += writtenAtOnce {
		ids := make([]string, min(writtenAtOnce, jobs-from))
		for i := range ids {
			ids[i] = uuid.NewString()
		}
		if err := ledger.Charge(ctx, ids); err != nil {
			return err
		}
		var writing errgroup.Group
		writing.SetLimit(growers)
		for i, id := range ids {
			life := longlog.Life{
				AccountID: l.account, Ended: began.Add(time.Duration(from+i-jobs) * (year / time.Duration(jobs))),
			}
			if (from+i)%ofProject == 0 {
				life.ProjectID = l.project
			}
			writing.Go(func() error { return life.Write(ctx, core.Log, id) })
		}
		if err := writing.Wait(); err != nil {
			return err
		}
		if l.half.IsZero() && from >= jobs/2 {
			l.half, l.someJob = time.Now(), ids[0]
		}
	}
	took := time.Since(began)
	var events int
	if err := core.DB.GetContext(ctx, &events, `SELECT count(*) FROM eventlog.events`); err != nil {
		return err
	}
	l.tell("events", float64(events), "")
	l.tell("written a second", float64(events)/took.Seconds(), "")
	return nil
}

// starts measures how the read models follow, and a start beside them.
func (l *longRun) starts(ctx context.Context) error {
	began := time.Now()
	if err := l.run(ctx, l.url[len("http://"):]); err != nil {
		return err
	}
	caughtUp := time.Since(began)
	took, err := l.restart(ctx)
	if err != nil {
		return err
	}
	l.tell("read models caught up, events a second", float64(l.bench.events)/caughtUp.Seconds(), "")
	l.tell("start until ready", took.Seconds(), "s")
	submit := func() (time.Duration, error) {
		began := time.Now()
		_, err := l.submitBulk(ctx, l.key, l.project, 1)
		return time.Since(began), err
	}
	first, err := submit()
	if err != nil {
		return err
	}
	second, err := submit()
	if err != nil {
		return err
	}
	l.tell("first command", millis(first), "ms")
	l.tell("second command", millis(second), "ms")
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
		took := make([]time.Duration, askedEach)
		for i := range took {
			began := time.Now()
			if err := l.call(ctx, http.StatusOK, http.MethodGet, read.path, l.key, nil, nil); err != nil {
				return err
			}
			took[i] = time.Since(began)
		}
		slices.Sort(took)
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

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	fullLog = 100_000 // jobs
	// afterTopUp is the part of the run's time that is kept for the steps after topUp.
	afterTopUp = 30 * time.Second
)

// memory is part (d): it fills the log with ordinary submissions, and measures the memory
// of the service's process. Postgres runs in another process.
func memory(ctx context.Context, b *bench) (section, error) {
	s, err := b.openService(ctx)
	if err != nil {
		return section{}, err
	}
	if err := s.topUp(ctx, fullLog, time.Until(b.deadline)-afterTopUp); err != nil {
		return section{}, s.ifDead(err)
	}
	loaded, err := residentMB(ctx, s.cmd.Process.Pid)
	if err != nil {
		return section{}, err
	}
	took, err := s.restart(ctx)
	if err != nil {
		return section{}, err
	}
	restarted, err := residentMB(ctx, s.cmd.Process.Pid)
	if err != nil {
		return section{}, err
	}
	notes := []string{"resident set, Postgres aside: right after the load, and after a restart once /readyz says 200"}
	if s.jobs < fullLog {
		notes = append(notes, fmt.Sprintf("time was too short for %d jobs: give it more with -limit", fullLog))
	}
	return section{
		Title: "memory of the service's process",
		Notes: notes,
		Figures: []figure{
			{"jobs in the log", float64(s.jobs), "jobs"},
			{"restart until ready", took.Seconds(), "s"},
		},
		Goals: []goal{
			below("after the load", loaded, 200, "MB"),
			below("after a restart", restarted, 200, "MB"),
		},
	}, nil
}

// topUp submits until the log holds so many jobs, or the time is over.
func (s *service) topUp(ctx context.Context, jobs int, limit time.Duration) error {
	all, err := connectAll(ctx, s.url, s.keys)
	if err != nil {
		return err
	}
	defer all.close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	until := time.Now().Add(limit)
	var left, done atomic.Int64
	left.Store(int64(jobs - s.jobs))
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(func() {
			for left.Add(-1) >= 0 && ctx.Err() == nil && time.Now().Before(until) {
				if err := c.submit(ctx); err != nil {
					cancel(err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	s.jobs += int(done.Load())
	return context.Cause(ctx)
}

// ifDead adds a process's last words when it is gone.
func (p *process) ifDead(err error) error {
	select {
	case <-p.ended:
		return p.explain(errors.Join(err, errors.New("a server ended")))
	default:
		return err
	}
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

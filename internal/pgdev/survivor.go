package pgdev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/internal/backoff"
)

// stopSurvivor stops the server of a cluster whose owner is dead. The caller
// holds the home's lock, so no living process of ours runs it.
func stopSurvivor(ctx context.Context, data string, log logrus.FieldLogger) error {
	pf, err := readPIDFile(data)
	if err != nil {
		return err
	}
	if pf.pid == 0 {
		return nil
	}
	if !servesCluster(pf.pid, data) {
		return dropStalePIDFile(pf.pid, data)
	}
	log.WithField("pid", pf.pid).Warn("stopping a postgres that outlived its owner")
	for _, step := range []struct {
		signal   syscall.Signal
		patience time.Duration
	}{
		{syscall.SIGINT, 30 * time.Second}, // fast: a clean cluster
		{syscall.SIGQUIT, 5 * time.Second}, // immediate: recovery at the next start
		{syscall.SIGKILL, 5 * time.Second},
	} {
		if err := syscall.Kill(pf.pid, step.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop the postgres that outlived its owner (process %d): %w", pf.pid, err)
		}
		gone, err := waitGone(ctx, pf.pid, data, step.patience)
		if err != nil {
			return fmt.Errorf("stop the postgres that outlived its owner (process %d): %w", pf.pid, err)
		}
		if gone {
			return dropStalePIDFile(pf.pid, data)
		}
	}
	return fmt.Errorf("postgres (process %d) does not end: stop it by hand", pf.pid)
}

// waitGone polls, because only a parent can wait for a process.
func waitGone(ctx context.Context, pid int, data string, patience time.Duration) (bool, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for servesCluster(pid, data) {
		if backoff.Wait(waiting, pingEvery) != nil {
			return false, ctx.Err()
		}
	}
	return true, nil
}

// dropStalePIDFile removes a pid file whose process id PostgreSQL would wrongly take for
// a running server. Another program may have the id by now, or a zombie that its parent
// never collects: ids repeat fast in containers, and their first process may not reap.
// PostgreSQL recognizes every other stale file itself. It sees running children of the
// dead server by their shared memory.
func dropStalePIDFile(pid int, data string) error {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return nil
	}
	if args := processArgs(pid); len(args) > 0 && filepath.Base(args[0]) == "postgres" {
		return nil
	}
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a stale postmaster.pid: %w", err)
	}
	return nil
}

// servesCluster says whether a process is the postmaster of this cluster. Its
// children show other titles, and a zombie none.
func servesCluster(pid int, data string) bool {
	args := processArgs(pid)
	if len(args) < 3 || filepath.Base(args[0]) != "postgres" {
		return false
	}
	return args[1] == "-D" && args[2] == data
}

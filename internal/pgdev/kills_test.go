package pgdev_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"humanqa/internal/datadir"
	"humanqa/internal/pgdev"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

func TestAKilledPostgresComesBackWithItsDataAtTheSameAddress(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			dir := dataDir(t, t.TempDir())
			s := start(t, dir)
			for i := range 3 {
				write(t, s, strconv.Itoa(i))
				pid := postmasterPID(t, dir)
				must.NoError(t, syscall.Kill(pid, sig))
				eventually.Within(t, eventually.Patience, func() error {
					if got := pidOf(dir); got == pid || got == 0 {
						return fmt.Errorf("postmaster is %d", got)
					}
					return ping(t, s.DSN(pgdev.Database))
				})
			}
			wantRows(t, s, "0", "1", "2")
			select {
			case <-s.Done():
				t.Errorf("gave up: %v", s.Err())
			default:
			}
		})
	}
}

func TestAServerWhoseOwnerWasKilledIsRecovered(t *testing.T) {
	t.Parallel()
	dir := dataDir(t, t.TempDir())
	owner := startOwner(t, dir)
	addr, err := pgdev.Running(dir)
	must.NoError(t, err)
	writeTo(t, addr.DSN(pgdev.Database), "acknowledged")
	pid := postmasterPID(t, dir)
	// Stopped, the postmaster cannot act on the death of its owner: it survives.
	must.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	kill(t, owner)
	if !alive(pid) {
		t.Fatal("the postmaster ended with its owner; nothing is left to recover")
	}
	must.NoError(t, syscall.Kill(pid, syscall.SIGCONT))

	s := start(t, dir)
	wantRows(t, s, "acknowledged")
	if got := postmasterPID(t, dir); got == pid {
		t.Errorf("postmaster is still %d", got)
	}
}

func TestAServerAndItsOwnerKilledTogetherAreRecovered(t *testing.T) {
	t.Parallel()
	dir := dataDir(t, t.TempDir())
	owner := startOwner(t, dir)
	addr, err := pgdev.Running(dir)
	must.NoError(t, err)
	writeTo(t, addr.DSN(pgdev.Database), "acknowledged")
	pid := postmasterPID(t, dir)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil { // the owner must not heal it first
		t.Fatal(err)
	}
	kill(t, owner)
	must.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	wantRows(t, start(t, dir), "acknowledged")
}

// programOf runs a program under the owner of the path, until the test ends.
func programOf(t *testing.T, path string) (pid int) {
	t.Helper()
	info, err := os.Stat(path)
	must.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	if owner := info.Sys().(*syscall.Stat_t); int(owner.Uid) != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	must.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // it is killed with the test's context
	return cmd.Process.Pid
}

func TestABusyChildOfAKilledServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	dir := dataDir(t, t.TempDir())
	owner := startOwner(t, dir)
	addr, err := pgdev.Running(dir)
	must.NoError(t, err)
	db := connect(t, addr.DSN(pgdev.Database))
	busy := make(chan struct{})
	go func() {
		defer close(busy)
		// Pure computing, for some seconds: it does not notice the death. It may
		// even answer, so its outcome says nothing.
		_, _ = db.ExecContext(t.Context(), "SELECT count(*) /* busy */ FROM generate_series(1, 10000000)")
	}()
	eventually.Within(t, eventually.Patience, func() error {
		var running bool
		err := connect(t, addr.DSN("postgres")).QueryRowContext(t.Context(),
			"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%/* busy */ FROM%' AND state = 'active' AND pid <> pg_backend_pid())").Scan(&running)
		if err == nil && !running {
			err = errors.New("not running yet")
		}
		return err
	})
	pid := postmasterPID(t, dir)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil { // the owner must not heal it first
		t.Fatal(err)
	}
	kill(t, owner)
	must.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	wantRows(t, start(t, dir))
	<-busy
}

func TestAStalePIDFileWithAReusedIDIsNoObstacle(t *testing.T) {
	t.Parallel()
	dir := dataDir(t, t.TempDir())
	stop(t, start(t, dir))
	// Our own id is alive and is no postgres.
	stale := fmt.Sprintf("%d\n%s\n0\n5432\n/nowhere\n\n\nready\n", os.Getpid(), dir)
	must.NoError(t, os.WriteFile(filepath.Join(dir, "postgres", "data", "postmaster.pid"), []byte(stale), 0o644))
	if _, err := pgdev.Running(dir); !errors.Is(err, pgdev.ErrNotRunning) {
		t.Errorf("Running = %v, want ErrNotRunning", err)
	}
	start(t, dir)
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	dir := dataDir(t, t.TempDir())
	stop(t, start(t, dir))
	must.NoError(t, os.Remove(filepath.Join(dir, "postgres", "data", "global", "pg_control")))
	_, err := pgdev.Start(t.Context(), pgdev.Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "pg_control") {
		t.Fatalf("Start = %v, want the server's own reason", err)
	}
	release, err := datadir.Lock(filepath.Join(dir, "postgres"))
	if err != nil {
		t.Fatalf("the lock was not released: %v", err)
	}
	release()
}

func TestAStopOutOfTimeKillsAndLosesNothing(t *testing.T) {
	t.Parallel()
	dir := dataDir(t, t.TempDir())
	s := start(t, dir)
	write(t, s, "acknowledged")
	pid := postmasterPID(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Stop = %v, want context.Canceled", err)
	}
	if alive(pid) {
		t.Errorf("postmaster %d survived Stop", pid)
	}
	wantRows(t, start(t, dir), "acknowledged")
}

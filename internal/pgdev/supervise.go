package pgdev

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"humanqa/internal/backoff"
	"humanqa/internal/tied"
)

const (
	// A first start that fails five times in a row has a cause that does not pass
	// with time.
	startAttempts = 5
	// A server that ran, or whose killed predecessor has left running children, is
	// started again for about a minute and a half.
	restartAttempts = 20

	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second

	pingEvery = 20 * time.Millisecond

	// leastRoom is the room on disk that a server needs to go on: a file of its
	// write-ahead log. Without it the server ends by itself.
	leastRoom = 16 << 20
)

// supervise keeps a postmaster running until Stop, or until it fails too often
// in a row. ready is closed when the first one answers. ctx never ends.
func (s *Server) supervise(ctx context.Context, ready chan<- struct{}) {
	defer close(s.done)
	var (
		failures int
		answered bool
	)
	for s.stopping.Err() == nil {
		p, err := s.launch(ctx, answered)
		if err == nil {
			if s.awaitReady(ctx, p) {
				failures = 0
				if answered {
					s.log.Info("postgres is back")
				} else {
					answered = true
					close(ready)
				}
			}
			<-p.Exited()
			if err = p.Err(); err == nil {
				err = errors.New("exit status 0")
			}
		}
		if s.stopping.Err() != nil {
			return
		}
		failures++
		reason := s.reason()
		if answered && s.Full() {
			failures = min(failures, startAttempts) // it comes back when there is room, however late
		}
		limit := startAttempts
		if answered || strings.HasPrefix(reason, "pre-existing shared memory block") {
			limit = restartAttempts
			s.log.WithError(err).WithField("reason", reason).Warn("postgres is gone: starting it again")
		}
		if failures >= limit {
			s.err = fmt.Errorf("postgres in %s does not start: %s (%w)", s.home.dir, reason, err)
			return
		}
		_ = backoff.Wait(s.stopping, backoff.Delay(failures, minBackoff, maxBackoff)) // the loop finds out about the stop
	}
}

// launch starts one postmaster and makes it current. The port is chosen once: clients
// hold connection strings. If another program has it, the server comes up on its
// socket alone.
func (s *Server) launch(ctx context.Context, answered bool) (*tied.Process, error) {
	listen := strings.Join(s.addresses(), ",")
	if !s.portFree(ctx) {
		if s.fresh && !answered {
			if err := s.newPort(ctx); err != nil {
				return nil, err
			}
		} else {
			listen = ""
			s.log.Warnf("port %d of the embedded postgres is taken by another process: the service goes on by the socket, "+
				"and analysts' addresses work again once the port is free and the service was started again", s.Port)
		}
	}
	if err := s.dropSocketLock(); err != nil {
		return nil, err
	}
	out, err := os.OpenFile(s.logFile(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the postmaster's output: %w", err)
	}
	defer func() { _ = out.Close() }() // the child has its own copy

	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "postgres"),
		"-D", s.home.Data(),
		"-c", "config_file="+s.home.configFile(),
		"-c", "listen_addresses="+listen,
		"-c", "port="+strconv.Itoa(s.Port),
	)
	cmd.Dir = s.home.dir
	cmd.Env = cleanEnv()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = s.home.owner.procAttr()

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.Err() != nil { // Stop has sent its signal already and will not send another
		return nil, context.Canceled
	}
	p, err := tied.Start(cmd, syscall.SIGINT) // a fast shutdown
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	s.current = cmd.Process
	return p, nil
}

// dropSocketLock removes the lock file that a dead postmaster left beside its socket.
// PostgreSQL would take the process id in it for a running server if it is an uncollected
// zombie's, or another program's by now. The home's lock says that no postmaster of this
// cluster runs; the cluster's shared memory shows children of the dead one.
func (s *Server) dropSocketLock() error {
	err := os.Remove(filepath.Join(s.SocketDir, ".s.PGSQL."+strconv.Itoa(s.Port)+".lock"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a stale socket's lock: %w", err)
	}
	return nil
}

// Full says that the disk of the cluster has no room left.
func (s *Server) Full() bool {
	var disk unix.Statfs_t
	return unix.Statfs(s.home.Data(), &disk) == nil && disk.Blocks > 0 && disk.Bavail*uint64(disk.Bsize) < leastRoom
}

// awaitReady is true when p answers a query, false when it ends before that.
// Recovery after a crash may take minutes; there is no time-out, only an end.
func (s *Server) awaitReady(ctx context.Context, p *tied.Process) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.Exited():
			cancel()
		case <-ctx.Done():
		}
	}()
	db, err := sql.Open("postgres", s.DSN("postgres"))
	if err != nil {
		s.log.WithError(err).Error("open postgres")
		s.signal(syscall.SIGINT)
		return false
	}
	defer func() { _ = db.Close() }() // nothing is pending on it
	for db.PingContext(ctx) != nil {
		if backoff.Wait(ctx, pingEvery) != nil {
			return false
		}
	}
	return true
}

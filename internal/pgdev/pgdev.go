// Package pgdev runs a private PostgreSQL for one data directory, so that
// `make run` needs no database server.
//
// # Layout
//
// Everything lives in one "home":
//
//	<data dir>/postgres     the home, or a symbolic link to it
//	  lock                  flock of the process that runs the server
//	  password              of the superuser, for loopback TCP (0600)
//	  port                  the server's, for good
//	  server.crt, .key      of the address for analysts, if there is one
//	  postgresql.conf       ours, rewritten at every start
//	  pg_hba.conf           ours, rewritten at every start
//	  postmaster.log        what the server says before its own log opens
//	  data/                 the cluster
//	  run/                  the unix socket (0700)
//	  log/                  the server's log, a file per weekday
//
// PostgreSQL refuses to run as root. When we are root the server runs as an
// unprivileged user, and that user owns only data, run and log: nothing root
// writes can be redirected by it. A data directory that this user cannot reach
// (0700, or somewhere under /root) gets its home below /var/lib/humanqa; a note in
// either directory then says where the other is.
//
// # Connections
//
// All users that reach the socket directory may connect: the server's user and root.
// Loopback TCP, whose port is open to every local user, needs a random password. At
// Config.Listen only members of Analysts may connect, by TLS and their password.
//
// The port is chosen once and kept, since analysts keep addresses. If another program has
// taken it, the server comes up on its socket alone and says so.
//
// # Life and death
//
// The server dies with us: the kernel sends it a fast shutdown when the thread
// that started it ends (Linux). Where that fails, the next Start finds the
// survivor through postmaster.pid and stops it first. A server that dies under
// us is started again on the same port and socket, so connection strings stay
// valid; PostgreSQL's own crash recovery does the rest.
package pgdev

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/lib/pq"
	"github.com/sirupsen/logrus"
)

const (
	// Database exists on every server that Start returned.
	Database = "humanqa"
	// User is the superuser of the cluster.
	User = "humanqa"
	// Analysts is the role whose members may come from other machines (Config.Listen).
	Analysts = "humanqa_analysts"
)

// Config says where the cluster lives and how it behaves.
type Config struct {
	// Dir is the data directory of the service. It must exist.
	Dir string
	// Log receives starts, deaths and restarts; nil is silent.
	Log logrus.FieldLogger
	// Listen is a TCP address, with a port, at which members of Analysts may connect, also
	// from other machines, by TLS and a password; empty: there is none.
	Listen string
}

// Server is a running PostgreSQL that this process keeps alive. It is safe for
// concurrent use.
type Server struct {
	Address

	home     Home
	listen   string // see Config
	fresh    bool   // no client knows the port yet
	bin      string
	log      logrus.FieldLogger
	release  func()
	stopOnce sync.Once

	stopping context.Context // ended by Stop: no start after this
	end      context.CancelFunc
	done     chan struct{} // closed by the supervisor, its last act
	err      error         // the reason why the supervisor gave up; read after done

	mu      sync.Mutex
	current *os.Process // of the postmaster; nil before the first start
}

// Start brings up the cluster of cfg.Dir, making it first where needed, and
// returns when the server answers and Database exists. ctx bounds the start
// only. A server that outlived its owner is stopped first; a living owner is
// an error that matches datadir.ErrInUse.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	log := cfg.Log
	if log == nil {
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		log = silent
	}
	h, release, err := OpenHome(ctx, cfg.Dir, log)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Address: Address{home: h.dir},
		home:    h,
		listen:  cfg.Listen,
		log:     log,
		release: release,
		done:    make(chan struct{}),
	}
	s.stopping, s.end = context.WithCancel(context.WithoutCancel(ctx))
	if err := s.prepare(ctx); err != nil {
		release()
		return nil, err
	}
	ready := make(chan struct{})
	go s.supervise(context.WithoutCancel(ctx), ready)
	select {
	case <-ready:
		err = s.provision(ctx)
	case <-s.done:
		err = s.err
	case <-ctx.Done():
		err = fmt.Errorf("start postgres: %w", ctx.Err())
	}
	if err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		return nil, errors.Join(err, s.Stop(undo))
	}
	return s, nil
}

// prepare does the steps before the first start of a postmaster.
func (s *Server) prepare(ctx context.Context) error {
	bin, err := findBinaries(ctx, s.home.clusterVersion())
	if err != nil {
		return err
	}
	s.bin = bin
	if s.password, err = s.home.ensurePassword(); err != nil {
		return err
	}
	if s.SocketDir, err = s.home.socketDir(); err != nil {
		return err
	}
	if err := s.home.ensureCluster(ctx, bin); err != nil {
		return err
	}
	s.major = s.home.clusterVersion()
	if err := s.choosePort(ctx); err != nil {
		return err
	}
	if s.listen != "" {
		host, _, err := net.SplitHostPort(s.listen)
		if err != nil {
			return err
		}
		if err := s.home.ensureCertificate(host); err != nil {
			return err
		}
	}
	return s.home.writeConfig(s.SocketDir, s.listen != "")
}

// provision sets the superuser's password and makes Database, for the clients of a fresh
// cluster. Every step is repeatable, so the next start completes them after a crash.
func (s *Server) provision(ctx context.Context) error {
	db, err := sql.Open("postgres", s.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("open postgres: %w", err)
	}
	defer func() { _ = db.Close() }() // nothing is pending on it

	var bare, missing bool
	const state = `
		SELECT
			(SELECT rolpassword IS NULL FROM pg_authid WHERE rolname = current_user),
			NOT EXISTS (SELECT FROM pg_database WHERE datname = $1)`
	if err := db.QueryRowContext(ctx, state, Database).Scan(&bare, &missing); err != nil {
		return fmt.Errorf("inspect the new cluster: %w", err)
	}
	if bare {
		if _, err := db.ExecContext(ctx, "ALTER ROLE "+pq.QuoteIdentifier(User)+" PASSWORD "+pq.QuoteLiteral(s.password)); err != nil {
			return fmt.Errorf("set the password of %s: %w", User, err)
		}
	}
	if missing {
		if _, err := db.ExecContext(ctx, "CREATE DATABASE "+pq.QuoteIdentifier(Database)); err != nil {
			return fmt.Errorf("create database %s: %w", Database, err)
		}
	}
	return nil
}

// Home is the directory that the cluster is in: in the data directory, or, where
// the server's user cannot reach that, elsewhere.
func (s *Server) Home() string { return s.home.dir }

// Done is closed when the server is gone for good: after Stop, or when it could
// not be kept alive, which Err explains. A death that a restart heals does not
// close it.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is why the server could not be kept alive; nil after a Stop. It is read after Done.
func (s *Server) Err() error { return s.err }

// Stop shuts the server down: clients are cut, the cluster is left clean. When
// ctx ends first the server is killed, the next start recovers the cluster, and
// ctx's error is returned. Further calls wait for the same end.
func (s *Server) Stop(ctx context.Context) error {
	var err error
	s.stopOnce.Do(func() {
		s.end()
		s.signal(syscall.SIGINT) // fast shutdown
		select {
		case <-s.done:
		case <-ctx.Done():
			err = fmt.Errorf("stop postgres cleanly: %w", ctx.Err())
			s.kill()
		}
		if filepath.Dir(s.SocketDir) != s.home.dir { // the server has removed its socket by then
			_ = os.Remove(s.SocketDir) // after a crash the next start reuses it
		}
		s.release()
	})
	<-s.done
	return err
}

// kill ends the server within seconds. SIGQUIT lets it take its children along.
func (s *Server) kill() {
	s.signal(syscall.SIGQUIT)
	select {
	case <-s.done:
	case <-time.After(5 * time.Second):
		s.signal(syscall.SIGKILL)
		<-s.done
	}
}

// signal reaches the running postmaster, if there is one.
func (s *Server) signal(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return
	}
	if err := s.current.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.log.WithError(err).Warnf("signal %s to postgres", sig)
	}
}

// logFile is the file of the postmaster's own output, truncated at every start.
func (s *Server) logFile() string { return filepath.Join(s.home.dir, "postmaster.log") }

package pgdev_test

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"humanqa/internal/pgdev"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgimage"
)

// dataDir makes a private data directory, as the service does, and removes the
// cluster with it, wherever that is.
func dataDir(t *testing.T, dir string) string {
	t.Helper()
	must.NoError(t, os.MkdirAll(dir, 0o700))
	must.NoError(t, os.Chmod(dir, 0o700))
	dir, err := filepath.EvalSymlinks(dir)
	must.NoError(t, err)
	t.Cleanup(func() {
		if err := pgimage.Remove(context.Background(), dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// open lets every user pass through a directory and its parents up to the temporary root.
func open(t *testing.T, dir string) {
	t.Helper()
	for ; dir != filepath.Clean(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
		must.NoError(t, os.Chmod(dir, 0o711))
	}
}

func start(t *testing.T, dir string) *pgdev.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := pgdev.Start(ctx, pgdev.Config{Dir: dir})
	must.NoError(t, err)
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *pgdev.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// startOwner runs a server in a process of its own and returns when it answers.
func startOwner(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	owner := exec.CommandContext(t.Context(), os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"="+dir)
	owner.Stderr = os.Stderr
	must.NoError(t, owner.Start())
	eventually.Within(t, eventually.Patience, func() error {
		addr, err := pgdev.Running(dir)
		if err != nil {
			return err
		}
		return ping(t, addr.DSN(pgdev.Database))
	})
	return owner
}

func kill(t *testing.T, owner *exec.Cmd) {
	t.Helper()
	must.NoError(t, owner.Process.Kill())
	_ = owner.Wait() // "signal: killed" is the point
}

func write(t *testing.T, s *pgdev.Server, row string) {
	t.Helper()
	writeTo(t, s.DSN(pgdev.Database), row)
}

func writeTo(t *testing.T, dsn, row string) {
	t.Helper()
	db := connect(t, dsn)
	for _, stmt := range []string{
		"CREATE TABLE IF NOT EXISTS notes (n int GENERATED ALWAYS AS IDENTITY, row text)",
		"INSERT INTO notes (row) VALUES ('" + row + "')",
	} {
		_, err := db.ExecContext(t.Context(), stmt)
		must.NoError(t, err)
	}
}

func wantRows(t *testing.T, s *pgdev.Server, want ...string) {
	t.Helper()
	db := connect(t, s.DSN(pgdev.Database))
	_, err := db.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS notes (n int GENERATED ALWAYS AS IDENTITY, row text)")
	must.NoError(t, err)
	var joined string
	must.NoError(t, db.QueryRowContext(t.Context(), "SELECT coalesce(string_agg(row, ',' ORDER BY n), '') FROM notes").Scan(&joined))
	var got []string
	if joined != "" {
		got = strings.Split(joined, ",")
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows = %q, want %q", got, want)
	}
}

func connect(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	must.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() }) // the server may be gone already
	return db
}

func ping(t *testing.T, dsn string) error {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	return db.PingContext(ctx)
}

// pidOf reads the postmaster's id, 0 while there is none.
func pidOf(dir string) int {
	b, err := os.ReadFile(filepath.Join(dir, "postgres", "data", "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return pid
}

func postmasterPID(t *testing.T, dir string) int {
	t.Helper()
	pid := pidOf(dir)
	if pid == 0 {
		t.Fatal("no postmaster.pid")
	}
	return pid
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func serverLog(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "postgres", "log", "*.log"))
	must.NoError(t, err)
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		must.NoError(t, err)
		all.Write(b)
	}
	return all.String()
}

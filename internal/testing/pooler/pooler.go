// Package pooler starts PgBouncer between a test and its database.
package pooler

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lib/pq"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/process"
)

// Mode is a pool_mode.
type Mode string

// The modes that the service knows.
const (
	Session     Mode = "session"
	Transaction Mode = "transaction"
)

// Debian keeps the program out of the path of users.
const debian = "/usr/sbin/pgbouncer"

// Start gives the URL of the database by way of PgBouncer, which has its defaults beside the
// mode. The test is skipped where PgBouncer is not installed.
func Start(t testing.TB, dsn string, mode Mode) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = debian
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("it needs PgBouncer: apt install pgbouncer")
	}
	to, err := pq.NewConfig(dsn)
	must.NoError(t, err)
	dir, err := os.MkdirTemp("", "pooler") //nolint:usetesting // no other user can reach the test's own
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, os.RemoveAll(dir)) })
	must.NoError(t, os.Chmod(dir, 0o755))
	users, settings := filepath.Join(dir, "users.txt"), filepath.Join(dir, "pgbouncer.ini")
	must.NoError(t, os.WriteFile(users, fmt.Appendf(nil, "%q %q\n", to.User, to.Password), 0o644))
	listen := pgtest.Through(t, dsn, func(string, string) string { return process.Address(t) })
	at, err := url.Parse(listen)
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(settings, fmt.Appendf(nil, `
[databases]
* = host=%s port=%d

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = %s
`, to.Host, to.Port, at.Port(), users, mode), 0o644))
	args := []string{settings}
	if os.Getuid() == 0 { // which it refuses to be
		args = append([]string{"-u", owner(t, to)}, args...)
	}
	server := process.Start(t, exec.CommandContext(context.WithoutCancel(t.Context()), program, args...))
	t.Cleanup(server.Kill)
	at.RawQuery = "sslmode=disable"
	eventually.Within(t, eventually.Patience, func() error {
		connector, err := pq.NewConnector(at.String())
		if err != nil {
			return err
		}
		c, err := connector.Connect(t.Context())
		if err != nil {
			return err
		}
		return c.Close()
	})
	return at.String()
}

// owner is the user who may use the socket of the server.
func owner(t testing.TB, to pq.Config) string {
	t.Helper()
	info, err := os.Stat(filepath.Join(to.Host, fmt.Sprintf(".s.PGSQL.%d", to.Port)))
	must.NoError(t, err)
	of, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatalf("the socket's owner is not known: %T", info.Sys())
	}
	found, err := user.LookupId(fmt.Sprint(of.Uid))
	must.NoError(t, err)
	return found.Username
}

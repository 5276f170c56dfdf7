package pgdev_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lib/pq"
	"github.com/sirupsen/logrus"

	"humanqa/internal/datadir"
	"humanqa/internal/pgdev"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/scratch"
)

// ownerEnv makes this binary run the server of the named directory until it is killed.
const ownerEnv = "PGDEV_TEST_OWNER"

const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerEnv); dir != "" {
		if _, err := pgdev.Start(context.Background(), pgdev.Config{Dir: dir}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	}
	os.Exit(scratch.Main(m.Run))
}

func TestStopIsCleanAndAStartOnTheSameDirectoryKeepsTheData(t *testing.T) {
	t.Parallel()
	dir := dataDir(t, t.TempDir())
	s := start(t, dir)
	write(t, s, "kept")
	pid := postmasterPID(t, dir)
	stop(t, s)

	if err := s.Err(); err != nil {
		t.Errorf("Err after Stop = %v", err)
	}
	if alive(pid) {
		t.Errorf("postmaster %d survived Stop", pid)
	}
	if _, err := pgdev.Running(dir); !errors.Is(err, pgdev.ErrNotRunning) {
		t.Errorf("Running after Stop = %v, want ErrNotRunning", err)
	}
	// Postgres' own collector of logs ends after it, and writes the last line then.
	eventually.Within(t, eventually.Patience, func() error {
		if log := serverLog(t, dir); !strings.Contains(log, "database system is shut down") {
			return fmt.Errorf("no clean shutdown in the log:\n%s", log)
		}
		return nil
	})

	port := s.Port
	// What a killed server leaves; its number has become another living program's.
	lock := filepath.Join(s.SocketDir, fmt.Sprintf(".s.PGSQL.%d.lock", port))
	must.NoError(t, os.WriteFile(lock, []byte(strconv.Itoa(programOf(t, s.SocketDir))+"\n"), 0o644))
	s = start(t, dir)
	wantRows(t, s, "kept")
	if log := serverLog(t, dir); strings.Contains(log, "not properly shut down") {
		t.Errorf("the second start had to recover:\n%s", log)
	}
	if err := ping(t, s.TCPDSN(pgdev.Database)); err != nil || s.Port != port {
		t.Errorf("at port %d, want %d: %v", s.Port, port, err)
	}
	stop(t, s)

	taken, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // at once
	must.NoError(t, err)
	defer func() { _ = taken.Close() }() // nobody connects
	var said strings.Builder
	log := logrus.New()
	log.SetOutput(&said)
	s, err = pgdev.Start(t.Context(), pgdev.Config{Dir: dir, Log: log})
	must.NoError(t, err)
	wantRows(t, s, "kept")
	addr, err := pgdev.Running(dir)
	if err != nil || !addr.Silent() || addr.Port != port {
		t.Errorf("%+v %v", addr, err)
	}
	stop(t, s)
	if want := fmt.Sprintf("port %d of the embedded postgres is taken by another process", port); !strings.Contains(said.String(), want) {
		t.Errorf("said %q", said.String())
	}
}

// from dials from an address of its own, as another machine would.
type from string

func (f from) Dial(network, address string) (net.Conn, error) {
	return f.DialTimeout(network, address, patience)
}

func (f from) DialTimeout(network, address string, limit time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: limit, LocalAddr: &net.TCPAddr{IP: net.ParseIP(string(f))}}
	return d.Dial(network, address)
}

// At Listen members of Analysts are let in, by TLS and their password, to the service's
// database, and nobody else.
func TestAnalystsAndNobodyElseComeFromOtherMachines(t *testing.T) {
	t.Parallel()
	const host, stranger = "127.0.0.2", from("127.0.0.3")    // the rules for 127.0.0.1 are others
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0")) //nolint:noctx // a free port, at once
	if err != nil {
		t.Skip("this machine has no second loopback address")
	}
	listen := l.Addr().String()
	must.NoError(t, l.Close())
	s, err := pgdev.Start(t.Context(), pgdev.Config{Dir: dataDir(t, t.TempDir()), Listen: listen})
	must.NoError(t, err)
	defer stop(t, s)
	db := connect(t, s.DSN(pgdev.Database))
	for _, statement := range []string{
		"CREATE ROLE " + pgdev.Analysts, "CREATE ROLE ann LOGIN PASSWORD 'secret'", "GRANT " + pgdev.Analysts + " TO ann",
		"CREATE ROLE bob LOGIN PASSWORD 'secret'",
	} {
		_, err := db.ExecContext(t.Context(), statement)
		must.NoError(t, err)
	}
	if err := ping(t, s.TCPDSN(pgdev.Database)); err != nil {
		t.Errorf("over loopback: %v", err)
	}
	mine, err := url.Parse(s.TCPDSN(pgdev.Database))
	must.NoError(t, err)
	super, _ := mine.User.Password()
	for name, c := range map[string]struct{ user, password, database, mode, refused string }{
		"an analyst":             {"ann", "secret", pgdev.Database, "verify-full", ""},
		"an analyst without TLS": {"ann", "secret", pgdev.Database, "disable", "no pg_hba.conf entry"},
		"a guess":                {"ann", "guess", pgdev.Database, "verify-full", "password authentication failed"},
		"an analyst, elsewhere":  {"ann", "secret", "postgres", "verify-full", "no pg_hba.conf entry"},
		"another role":           {"bob", "secret", pgdev.Database, "verify-full", "no pg_hba.conf entry"},
		"the superuser":          {pgdev.User, super, pgdev.Database, "verify-full", "no pg_hba.conf entry"},
	} {
		dsn, err := s.TLSDSN(c.database, listen)
		must.NoError(t, err)
		u, err := url.Parse(dsn)
		must.NoError(t, err)
		u.User = url.UserPassword(c.user, c.password)
		query := u.Query()
		query.Set("sslmode", c.mode)
		u.RawQuery = query.Encode()
		config, err := pq.NewConfig(u.String())
		must.NoError(t, err)
		connector, err := pq.NewConnectorConfig(config)
		must.NoError(t, err)
		connector.Dialer(stranger)
		remote := sql.OpenDB(connector)
		err = remote.PingContext(t.Context())
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s: %v, want %q", name, err, c.refused)
		}
		_ = remote.Close() // nothing is pending on it
	}
}

func TestRunningFindsTheServerOfAnotherProcess(t *testing.T) {
	t.Parallel()
	dir := dataDir(t, t.TempDir())
	if _, err := pgdev.Running(dir); !errors.Is(err, pgdev.ErrNotRunning) {
		t.Fatalf("Running on an empty directory = %v, want ErrNotRunning", err)
	}
	s := start(t, dir)
	addr, err := pgdev.Running(dir)
	must.NoError(t, err)
	if addr != s.Address {
		t.Errorf("Running = %+v, want %+v", addr, s.Address)
	}
}

func TestLoopbackTCPNeedsThePassword(t *testing.T) {
	t.Parallel()
	s := start(t, dataDir(t, t.TempDir()))
	dsn := s.TCPDSN(pgdev.Database)
	if err := ping(t, dsn); err != nil {
		t.Errorf("with the password: %v", err)
	}
	userinfo := dsn[len("postgres://"):strings.Index(dsn, "@")]
	stranger := strings.Replace(dsn, userinfo, pgdev.User+":guess", 1)
	if err := ping(t, stranger); err == nil || !strings.Contains(err.Error(), "password authentication failed") {
		t.Errorf("with a guess: %v, want a refusal", err)
	}
}

func TestASecondServerOnTheSameDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	dir := dataDir(t, t.TempDir())
	s := start(t, dir)
	_, err := pgdev.Start(t.Context(), pgdev.Config{Dir: dir})
	var inUse *datadir.InUseError
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() || inUse.Dir != dir {
		t.Fatalf("second start = %v, want %s in use by %d", err, dir, os.Getpid())
	}
	if err := ping(t, s.DSN(pgdev.Database)); err != nil {
		t.Errorf("the first server suffered: %v", err)
	}
}

func TestALongPathFallsBackToAShortSocketDirectory(t *testing.T) {
	t.Parallel()
	dir := dataDir(t, filepath.Join(t.TempDir(), strings.Repeat("d", 60), strings.Repeat("e", 60)))
	open(t, dir) // as root too: else the home would move to a short path
	s := start(t, dir)
	if len(s.SocketDir) > 60 || strings.HasPrefix(s.SocketDir, dir) {
		t.Errorf("socket directory = %s", s.SocketDir)
	}
	info, err := os.Stat(s.SocketDir)
	must.NoError(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("socket directory mode = %o, want 700", info.Mode().Perm())
	}
	write(t, s, "far away")
	stop(t, s)
	if _, err := os.Stat(s.SocketDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket directory after Stop: %v, want none", err)
	}
}

func TestTheServerIsNeverRoot(t *testing.T) {
	t.Parallel()
	dir := dataDir(t, t.TempDir())
	s := start(t, dir)
	info, err := os.Stat("/proc/" + strconv.Itoa(postmasterPID(t, dir)))
	if err != nil {
		if _, err := os.Stat("/proc/self"); err != nil {
			return // no /proc on this system; PostgreSQL refuses root by itself
		}
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	if st.Uid == 0 {
		t.Error("postgres runs as root")
	}
	if os.Getuid() != 0 {
		return
	}
	// Root's data directory is closed to that user, so the cluster is elsewhere.
	home, err := os.Readlink(filepath.Join(dir, "postgres"))
	must.NoError(t, err)
	for path, uid := range map[string]uint32{home: 0, filepath.Join(home, "password"): 0, filepath.Join(home, "data"): st.Uid, s.SocketDir: st.Uid} {
		info, err := os.Stat(path)
		must.NoError(t, err)
		if got := info.Sys().(*syscall.Stat_t).Uid; got != uid {
			t.Errorf("%s belongs to %d, want %d", path, got, uid)
		}
	}

	// A cluster that somebody else made stays theirs.
	stop(t, s)
	const nobody = 65534
	for _, name := range []string{"data", "log", "run"} {
		must.NoError(t, filepath.WalkDir(filepath.Join(home, name), func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, nobody, nobody)
		}))
	}
	start(t, dir)
	info, err = os.Stat("/proc/" + strconv.Itoa(postmasterPID(t, dir)))
	must.NoError(t, err)
	if got := info.Sys().(*syscall.Stat_t).Uid; got != nobody {
		t.Errorf("the server runs as %d, want %d", got, nobody)
	}
}

func TestADeletedDataDirectoryStartsOverAndItsClusterIsKeptAside(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		return // only root's clusters live outside their data directory
	}
	dir := dataDir(t, t.TempDir())
	s := start(t, dir)
	write(t, s, "of the first life")
	stop(t, s)
	home, err := os.Readlink(filepath.Join(dir, "postgres"))
	must.NoError(t, err)
	must.NoError(t, os.Remove(filepath.Join(dir, "postgres")))
	s = start(t, dir)
	wantRows(t, s)
	aside, err := filepath.Glob(home + ".orphaned-*")
	if err != nil || len(aside) != 1 {
		t.Fatalf("kept aside: %v, %v", aside, err)
	}
	if err := os.RemoveAll(aside[0]); err != nil {
		t.Error(err)
	}
}

func TestADirectoryWithoutItsClusterSaysWhereTheOtherIs(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		return // only root's clusters live outside their data directory
	}
	dir := dataDir(t, t.TempDir())
	s := start(t, dir)
	home := s.Home()
	for path, want := range map[string]string{
		filepath.Join(dir, "DATABASE-IS-ELSEWHERE.txt"): home,
		filepath.Join(home, "README.txt"):               dir,
	} {
		if note, err := os.ReadFile(path); err != nil || !strings.Contains(string(note), want) {
			t.Errorf("%s: %v, %q; want it to name %s", path, err, note, want)
		}
	}
	stop(t, s)

	// Half of the two was copied to another machine.
	away := home + ".away"
	must.NoError(t, os.Rename(home, away))
	_, err := pgdev.Start(t.Context(), pgdev.Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "leads to "+home) {
		t.Errorf("a start without the database: %v, want to be told where it was", err)
	}
	if _, err := os.Stat(home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty database was made in its place: %v", err)
	}
	if pgdev.Exists(dir) {
		t.Error("the database is said to be there")
	}
	must.NoError(t, os.Rename(away, home))
	if !pgdev.Exists(dir) {
		t.Error("the database is said not to be there")
	}
	stop(t, start(t, dir))
}

// It is part of every data directory, however short its log of events is.
func TestTheWriteAheadLogIsKeptShort(t *testing.T) {
	t.Parallel()
	dir := dataDir(t, t.TempDir())
	s := start(t, dir)
	var size string
	if err := connect(t, s.DSN(pgdev.Database)).QueryRowContext(t.Context(), "SHOW max_wal_size").Scan(&size); err != nil || size != "1GB" {
		t.Errorf("max_wal_size = %s, %v; want 1GB", size, err)
	}
}

func TestTheServerUsesTheSharedMemoryThatWorksHere(t *testing.T) {
	t.Parallel()
	dir := dataDir(t, t.TempDir())
	stop(t, start(t, dir))
	// As initdb leaves it where /dev/shm cannot be written to.
	conf := filepath.Join(dir, "postgres", "data", "postgresql.conf")
	must.NoError(t, os.WriteFile(conf, []byte("dynamic_shared_memory_type = mmap\t# the default is the first\n"), 0o644))
	s := start(t, dir)
	var kind string
	if err := connect(t, s.DSN(pgdev.Database)).QueryRowContext(t.Context(), "SHOW dynamic_shared_memory_type").Scan(&kind); err != nil || kind != "mmap" {
		t.Errorf("shared memory = %s, %v; want mmap", kind, err)
	}
}

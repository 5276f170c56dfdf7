// Package pgtest gives every test a database of its own on a real PostgreSQL.
//
// The first New of a test binary starts one private server on a copy of the image. The image
// is a cluster with a migrated database, which is made once and kept beside Go's build cache
// (image.go). Each New then copies that database, which takes tens of milliseconds.
// HUMANQA_TEST_DATABASE_URL names another server, which gets a migrated template database
// instead. A package that uses pgtest says so in its TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
// Main stops the server and removes its directory. A binary that panics or times out never
// gets there. The kernel then stops the server (see pgdev), and the next test binary removes
// the directory (see scratch).
package pgtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/internal/pgdev"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgimage"
	"humanqa/internal/testing/scratch"
	"humanqa/migrations"
)

// ServerEnv names a server to use instead of a private one. Its user must be
// allowed to create databases.
const ServerEnv = "HUMANQA_TEST_DATABASE_URL"

const (
	startLimit = 5 * time.Minute // first initdb on a busy machine
	// A database is dropped only once every session of the server has taken note, also one
	// that sends a long answer to a busy test.
	queryLimit = eventually.Patience

	connections = 8 // of a pool
)

// server is the server that this test binary uses.
type server struct {
	admin    *sql.DB
	dsn      func(dbname string) string
	template string // migrated
	stop     func() error

	making sync.Mutex
	made   []string // all templates
}

var (
	mu      sync.Mutex // guards the three below
	inMain  bool
	current *server
	failed  error // a failed start is not tried again by every test
)

// Tests are a package's tests: *testing.M, or what does more before the server stops.
type Tests interface{ Run() int }

// Main runs a package's tests and cleans up after them; its result is the exit code.
func Main(m Tests) int { return scratch.Main(func() int { return runTests(m) }) }

func runTests(m Tests) int {
	mu.Lock()
	inMain = true
	mu.Unlock()
	code := m.Run()

	mu.Lock()
	defer mu.Unlock()
	if current == nil {
		return code
	}
	if err := current.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	current = nil
	return code
}

// New is a connection pool on a fresh, migrated database that lives as long as
// the test.
func New(t testing.TB) *sqlx.DB {
	t.Helper()
	return NewDB(t, NewDSN(t))
}

// NewDB is one more pool on a database of NewDSN, closed at the test's end.
func NewDB(t testing.TB, dsn string) *sqlx.DB {
	t.Helper()
	db, err := pgpool.Open(context.Background(), dsn)
	if err != nil {
		t.Fatalf("open the test database: %v", err)
	}
	// A connection costs the server five milliseconds of processor time, a third of the
	// time of most tests. So connections are few, and kept. The library's default keeps
	// two.
	db.SetMaxIdleConns(connections)
	db.SetMaxOpenConns(connections)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the test database: %v", err)
		}
	})
	return db
}

// NewEmpty is New on a database without the schema.
func NewEmpty(t testing.TB) *sqlx.DB {
	t.Helper()
	return NewDB(t, create(t, empty))
}

// Template is a state that the databases of several tests begin with. Prepare is
// run once a test binary, on a migrated database.
type Template struct {
	Prepare func(context.Context, *sqlx.DB) error

	once sync.Once
	name string
	err  error
}

// New is New on a copy of the database that Prepare made.
func (p *Template) New(t testing.TB) *sqlx.DB {
	t.Helper()
	return NewDB(t, p.NewDSN(t))
}

// NewDSN is NewDSN on a copy of the database that Prepare made.
func (p *Template) NewDSN(t testing.TB) string {
	t.Helper()
	return create(t, func(s *server) (string, error) {
		p.once.Do(func() {
			p.name = uniqueName("template")
			p.err = s.makeTemplate(p.name, s.template, p.Prepare)
		})
		return p.name, p.err
	})
}

// NewDSN is the URL of a fresh, migrated database. The test's end drops it, with all
// connections to it.
func NewDSN(t testing.TB) string {
	t.Helper()
	return create(t, migrated)
}

func empty(*server) (string, error)      { return "template0", nil }
func migrated(s *server) (string, error) { return s.template, nil }

// Example is New for an Example, which has no test; remove ends it.
func Example() (db *sqlx.DB, remove func()) {
	dsn, drop, err := lend(migrated)
	if err == nil {
		db, err = pgpool.Open(context.Background(), dsn)
	}
	if err != nil {
		panic(err)
	}
	return db, func() {
		if err := errors.Join(db.Close(), drop()); err != nil {
			panic(err)
		}
	}
}

func create(t testing.TB, template func(*server) (string, error)) string {
	t.Helper()
	dsn, drop, err := lend(template)
	must.NoError(t, err)
	t.Cleanup(func() {
		if err := drop(); err != nil {
			t.Errorf("drop the test database: %v", err)
		}
	})
	return dsn
}

func lend(template func(*server) (string, error)) (dsn string, drop func() error, err error) {
	s, err := shared()
	if err != nil {
		return "", nil, fmt.Errorf("start a test database server: %w", err)
	}
	from, err := template(s)
	if err != nil {
		return "", nil, err
	}
	name := uniqueName("test")
	if err := s.copy(name, from); err != nil {
		return "", nil, fmt.Errorf("create a test database: %w", err)
	}
	return s.dsn(name), func() error { return s.exec("DROP DATABASE IF EXISTS %s WITH (FORCE)", name) }, nil
}

// NewOwned is the URL of a fresh, empty database that an ordinary role owns. The role may have
// so many connections.
func NewOwned(t testing.TB, connections int) string {
	t.Helper()
	s, err := shared()
	must.NoError(t, err)
	role := uniqueName("role")
	must.NoError(t, s.exec(fmt.Sprintf("CREATE ROLE %%s LOGIN CONNECTION LIMIT %d", connections), role))
	t.Cleanup(func() { must.NoError(t, s.exec("DROP ROLE %s", role)) }) // after its database
	dsn := create(t, empty)
	u, err := url.Parse(dsn)
	must.NoError(t, err)
	must.NoError(t, s.exec("ALTER DATABASE %s OWNER TO %s", strings.TrimPrefix(u.Path, "/"), role))
	u.User = url.User(role)
	return u.String()
}

// DSN is the URL of the database that db is connected to, for a second process
// or a listener.
func DSN(t testing.TB, db *sqlx.DB) string {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatalf("start a test database server: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), queryLimit)
	defer cancel()
	var name string
	if err := db.GetContext(ctx, &name, "SELECT current_database()"); err != nil {
		t.Fatalf("ask for the test database's name: %v", err)
	}
	return s.dsn(name)
}

// HoldUp keeps a table, or that of a view, from its writers until release is called. Readers
// go on.
func HoldUp(t testing.TB, db *sqlx.DB, table string) (release func()) {
	t.Helper()
	tx, err := db.BeginTxx(context.WithoutCancel(t.Context()), nil)
	must.NoError(t, err)
	release = sync.OnceFunc(func() { must.NoError(t, tx.Rollback()) })
	t.Cleanup(release)
	_, err = tx.ExecContext(t.Context(), "LOCK TABLE "+table+" IN EXCLUSIVE MODE")
	must.NoError(t, err)
	return release
}

// Through is the URL of the same database by way of a proxy. before gets the network and the
// address of the server, and gives the TCP address of a proxy to it.
func Through(t testing.TB, dsn string, before func(network, address string) string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	must.NoError(t, err)
	query := u.Query()
	network, address := "tcp", u.Host
	if folder := query.Get("host"); folder != "" { // a unix socket
		network, address = "unix", filepath.Join(folder, ".s.PGSQL."+query.Get("port"))
	}
	query.Del("host")
	query.Del("port")
	u.Host, u.RawQuery = before(network, address), query.Encode()
	return u.String()
}

// shared is this binary's server, started by the first caller.
func shared() (*server, error) {
	mu.Lock()
	defer mu.Unlock()
	switch {
	case current != nil:
		return current, nil
	case failed != nil:
		return nil, failed
	case !inMain:
		return nil, errors.New("nothing would stop it: add func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) } to the package")
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	current, failed = startServer(ctx)
	return current, failed
}

func startServer(ctx context.Context) (*server, error) {
	if given := os.Getenv(ServerEnv); given != "" {
		return useGiven(ctx, given)
	}
	return startPrivate(ctx)
}

func useGiven(ctx context.Context, given string) (*server, error) {
	base, err := url.Parse(given)
	if err != nil || base.Host == "" && base.Query().Get("host") == "" {
		return nil, fmt.Errorf("%s is not a postgres:// URL", ServerEnv)
	}
	admin, err := sql.Open("postgres", given)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", ServerEnv, err)
	}
	s := &server{admin: admin, template: uniqueName("template")}
	s.dsn = func(dbname string) string {
		u := *base
		u.Path = "/" + dbname
		return u.String()
	}
	s.stop = func() error {
		var errs []error
		for _, name := range s.made {
			errs = append(errs, s.exec("ALTER DATABASE %s IS_TEMPLATE false", name), s.exec("DROP DATABASE IF EXISTS %s WITH (FORCE)",
				name))
		}
		return errors.Join(append(errs, admin.Close())...)
	}
	migrate := func(_ context.Context, db *sqlx.DB) error { return migrations.Up(ctx, db.DB) }
	if err := s.makeTemplate(s.template, "template0", migrate); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func startPrivate(ctx context.Context) (*server, error) {
	dir, remove, err := scratch.Make(scratch.Memory())
	if err != nil {
		return nil, err
	}
	pg, err := startMigrated(ctx, dir)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	admin, err := sql.Open("postgres", pg.DSN("postgres"))
	if err != nil {
		return nil, errors.Join(err, pg.Stop(ctx), remove())
	}
	return &server{
		admin:    admin,
		dsn:      pg.DSN,
		template: pgdev.Database,
		stop: func() error {
			ctx, cancel := context.WithTimeout(context.Background(), queryLimit)
			defer cancel()
			return errors.Join(admin.Close(), pg.Stop(ctx), remove())
		},
	}, nil
}

// startMigrated starts a server on a copy of the image; where there is none it makes and
// migrates a cluster.
func startMigrated(ctx context.Context, dir string) (*pgdev.Server, error) {
	image, err := image()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest: there is no image, so a cluster is made:", err)
		return startNew(ctx, dir)
	}
	if err := pgimage.PlantFast(ctx, dir, image); err != nil {
		return nil, err
	}
	return pgdev.Start(ctx, pgdev.Config{Dir: dir})
}

// startNew makes a cluster, and migrates its database.
func startNew(ctx context.Context, dir string) (*pgdev.Server, error) {
	pg, err := pgdev.Start(ctx, pgdev.Config{Dir: dir})
	if err != nil {
		return nil, err
	}
	db, err := pgpool.Open(ctx, pg.DSN(pgdev.Database))
	if err == nil {
		err = errors.Join(migrations.Up(ctx, db.DB), db.Close())
	}
	if err != nil {
		return nil, errors.Join(err, pg.Stop(ctx))
	}
	return pg, nil
}

// makeTemplate makes a database from another one, prepares it, and closes it: one
// with connections cannot be copied.
func (s *server) makeTemplate(name, from string, prepare func(context.Context, *sqlx.DB) error) error {
	if err := s.copy(name, from); err != nil {
		return fmt.Errorf("create a template database: %w", err)
	}
	s.making.Lock()
	s.made = append(s.made, name)
	s.making.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	db, err := pgpool.Open(ctx, s.dsn(name))
	if err != nil {
		return fmt.Errorf("open a template database: %w", err)
	}
	if err := errors.Join(prepare(ctx, db), db.Close()); err != nil {
		return fmt.Errorf("prepare a template database: %w", err)
	}
	if err := s.exec("ALTER DATABASE %s WITH ALLOW_CONNECTIONS false IS_TEMPLATE true", name); err != nil {
		return fmt.Errorf("seal a template database: %w", err)
	}
	return nil
}

// copy makes a database of another one's files. Since PostgreSQL 15 that has to be
// asked for: else all pages go through the write-ahead log, for fifteen times the
// processor time.
func (s *server) copy(name, from string) error {
	ctx, cancel := context.WithTimeout(context.Background(), queryLimit)
	defer cancel()
	var version int
	if err := s.admin.QueryRowContext(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		return fmt.Errorf("ask for the server's version: %w", err)
	}
	if version < 150000 {
		return s.exec("CREATE DATABASE %s TEMPLATE %s", name, from)
	}
	return s.exec("CREATE DATABASE %s TEMPLATE %s STRATEGY FILE_COPY", name, from)
}

// exec runs a statement with quoted names in its places.
func (s *server) exec(format string, names ...any) error {
	for i, name := range names {
		names[i] = pq.QuoteIdentifier(fmt.Sprint(name))
	}
	ctx, cancel := context.WithTimeout(context.Background(), queryLimit)
	defer cancel()
	_, err := s.admin.ExecContext(ctx, fmt.Sprintf(format, names...))
	return err
}

func uniqueName(kind string) string {
	return "humanqa_" + kind + "_" + strings.ToLower(rand.Text()[:16])
}

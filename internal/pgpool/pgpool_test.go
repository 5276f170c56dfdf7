package pgpool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
	"humanqa/internal/testing/faultproxy"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// setup gives a pool of one connection, with a table of one row.
func setup(t *testing.T) *sqlx.DB {
	t.Helper()
	db, err := pgpool.Open(t.Context(), pgtest.NewDSN(t))
	must.NoError(t, err)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	db.SetMaxOpenConns(1)
	run(t, db, "CREATE TABLE things (id bigint, name text)")
	run(t, db, "INSERT INTO things VALUES ($1, $2)", 1, "one")
	return db
}

func run(t *testing.T, db sqlx.ExecerContext, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func prepared(t *testing.T, db *sqlx.DB, like string) (n int) {
	t.Helper()
	must.NoError(t, db.GetContext(t.Context(), &n, fmt.Sprintf("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%s'", like)))
	return n
}

const elsewhereSQL = `
DO $$
BEGIN
    EXECUTE format('ALTER DATABASE %I SET timezone = "Asia/Kathmandu"', current_database());
END $$`

func TestTimesAreReadInUTCWhateverTheServersZoneIs(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	first, err := pgpool.Open(t.Context(), dsn)
	must.NoError(t, err)
	_, err = first.ExecContext(t.Context(), elsewhereSQL)
	must.NoError(t, errors.Join(err, first.Close()))
	db, err := pgpool.Open(t.Context(), dsn)
	must.NoError(t, err)
	var at time.Time
	err = db.GetContext(t.Context(), &at, "SELECT timestamptz '2026-07-01 12:00+02' WHERE $1", true)
	must.NoError(t, errors.Join(err, db.Close()))
	if want := time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC); at != want {
		t.Errorf("got %v, want %v", at, want)
	}
}

func TestAStatementIsPreparedOnce(t *testing.T) {
	t.Parallel()
	db := setup(t)
	for range 3 {
		var name string
		if err := db.GetContext(t.Context(), &name, "SELECT name FROM things WHERE id = $1", 1); err != nil || name != "one" {
			t.Fatal(name, err)
		}
		run(t, db, "UPDATE things SET name = $2 WHERE id = $1", 1, "one")
	}
	for _, like := range []string{"SELECT name%", "UPDATE%"} {
		if n := prepared(t, db, like); n != 1 {
			t.Errorf("%s is prepared %d times", like, n)
		}
	}
}

func TestAConnectionKeepsTheStatementsUsedLast(t *testing.T) {
	t.Parallel()
	db := setup(t)
	for i := range 300 {
		run(t, db, fmt.Sprintf("UPDATE things SET name = 'n%d' WHERE id = $1", i), 2)
	}
	if n := prepared(t, db, "UPDATE%"); n != 256 {
		t.Errorf("%d statements are kept", n)
	}
}

func TestAViewMayGetOtherColumns(t *testing.T) {
	t.Parallel()
	db := setup(t)
	ask := func(ctx context.Context, db sqlx.QueryerContext) (map[string]any, error) {
		row := map[string]any{}
		err := db.QueryRowxContext(ctx, "SELECT * FROM shown WHERE id = $1", 1).MapScan(row)
		return row, err
	}
	run(t, db, "CREATE VIEW shown AS SELECT id FROM things")
	if row, err := ask(t.Context(), db); err != nil || len(row) != 1 {
		t.Fatal(row, err)
	}
	run(t, db, "DROP VIEW shown")
	run(t, db, "CREATE VIEW shown AS SELECT id, name FROM things")
	if row, err := ask(t.Context(), db); err != nil || len(row) != 2 {
		t.Fatal(row, err)
	}

	run(t, db, "DROP VIEW shown")
	run(t, db, "CREATE VIEW shown AS SELECT id FROM things")
	for attempt := range 2 {
		tx, err := db.BeginTxx(t.Context(), nil)
		must.NoError(t, err)
		_, err = ask(t.Context(), tx)
		if failed := err != nil; failed != (attempt == 0) {
			t.Errorf("transaction %d: %v", attempt, err)
		}
		must.NoError(t, tx.Rollback())
	}
}

// setupBehindProxy is a pool of a database whose network can be broken. The test closes it.
func setupBehindProxy(t *testing.T) (db *sqlx.DB, proxy *faultproxy.Proxy) {
	t.Helper()
	dsn := pgtest.Through(t, pgtest.NewDSN(t), func(network, address string) string {
		proxy = faultproxy.New(t, network, address, rand.New(rand.NewPCG(1, 2)))
		return proxy.Addr()
	})
	db, err := pgpool.Open(t.Context(), dsn)
	must.NoError(t, err)
	return db, proxy
}

// A stop of the service closes the pool, and reports an error as its own failure.
func TestAPoolClosesInOrderAfterTheNetworkBrokeItsConnections(t *testing.T) {
	t.Parallel()
	db, proxy := setupBehindProxy(t)
	run(t, db, "CREATE TABLE things (id bigint)")
	proxy.Sever()
	if open := db.Stats().OpenConnections; open != 1 {
		t.Fatalf("%d connections are open, want the one that is severed", open)
	}
	if err := db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestAFailedStatementLeavesTheConnectionUsable(t *testing.T) {
	t.Parallel()
	db := setup(t)
	for range 2 {
		if _, err := db.ExecContext(t.Context(), "INSERT INTO things VALUES ($1, $2)", "no number", "x"); err == nil {
			t.Fatal("accepted")
		}
		if _, err := db.ExecContext(t.Context(), "INSERT INTO nothing VALUES ($1)", 1); err == nil {
			t.Fatal("accepted")
		}
	}
	run(t, db, "UPDATE things SET name = $2 WHERE id = $1", 1, "two")
}

// A statement, its rows, and the end of a transaction are given up soon after their context
// where the server is silent on an open connection, and the pool goes on once it is not.
func TestASilentServerHoldsNothingBeyondItsContext(t *testing.T) {
	t.Parallel()
	db, proxy := setupBehindProxy(t)
	defer func() { must.NoError(t, db.Close()) }()
	const (
		limit = 100 * time.Millisecond
		busy  = time.Minute // of a machine; a silent server is silent for ever
	)
	for name, use := range map[string]func(ctx context.Context, silent func()) error{
		"a statement": func(ctx context.Context, silent func()) error {
			silent()
			_, err := db.ExecContext(ctx, "SELECT $1::int", 1)
			return err
		},
		"its rows": func(ctx context.Context, silent func()) error {
			silent()
			var all []int
			return db.SelectContext(ctx, &all, "SELECT generate_series(1, 100)")
		},
		"a commit": func(ctx context.Context, silent func()) error {
			tx, err := db.BeginTxx(ctx, nil)
			must.NoError(t, err)
			silent()
			return tx.Commit()
		},
	} {
		must.NoError(t, db.PingContext(t.Context())) // a connection is there
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		began := time.Now()
		err := use(ctx, func() { proxy.Set(faultproxy.HalfOpen) })
		cancel()
		if took := time.Since(began); err == nil || took > busy {
			t.Errorf("%s is given up after %s: %v", name, took, err)
		}
		proxy.Set(faultproxy.Healthy)
	}
	must.NoError(t, db.PingContext(t.Context()))
	proxy.Set(faultproxy.Hang)
	db.SetMaxIdleConns(0) // the next one is opened anew
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	if err := db.PingContext(ctx); err == nil || time.Since(began) > busy {
		t.Errorf("a greeting is given up after %s: %v", time.Since(began), err)
	}
	proxy.Set(faultproxy.Healthy)
}

package pgtest_test

import (
	"os"
	"testing"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestEveryTestHasAMigratedDatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	a, b := pgtest.New(t), pgtest.New(t)
	if name(t, a) == name(t, b) {
		t.Fatal("two databases share a name")
	}
	var applied int
	must.NoError(t, a.GetContext(t.Context(), &applied, "SELECT count(*) FROM humanqa_migrations WHERE version_id > 0"))
	if applied == 0 {
		t.Error("no migration is recorded")
	}
	_, err := a.ExecContext(t.Context(), "CREATE TABLE mine (n int)")
	must.NoError(t, err)
	var leaked bool
	must.NoError(t, b.GetContext(t.Context(), &leaked, "SELECT to_regclass('mine') IS NOT NULL"))
	if leaked {
		t.Error("a table of one database shows in the other")
	}
}

func TestTheURLReachesTheSameDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	again := pgtest.NewDB(t, pgtest.DSN(t, db))
	if got, want := name(t, again), name(t, db); got != want {
		t.Errorf("database = %s, want %s", got, want)
	}
}

// What a killed server leaves there is removed with its folder.
func TestTheServerHasItsSharedMemoryInItsFolder(t *testing.T) {
	t.Parallel()
	var kind string
	must.NoError(t, pgtest.NewDB(t, pgtest.NewDSN(t)).Get(&kind, "SHOW dynamic_shared_memory_type"))
	if kind != "mmap" {
		t.Errorf("its shared memory is %s, want mmap", kind)
	}
}

func TestADatabaseIsDroppedWithItsTestWhoeverIsConnected(t *testing.T) {
	t.Parallel()
	outer := pgtest.New(t)
	var dropped string
	t.Run("inner", func(t *testing.T) {
		db := sqlx.MustOpen("postgres", pgtest.NewDSN(t)) // never closed by the test
		dropped = name(t, db)
	})
	var exists bool
	must.NoError(t, outer.GetContext(t.Context(), &exists, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", dropped))
	if exists {
		t.Errorf("%s is still there", dropped)
	}
}

func name(t *testing.T, db *sqlx.DB) string {
	t.Helper()
	var name string
	must.NoError(t, db.GetContext(t.Context(), &name, "SELECT current_database()"))
	return name
}

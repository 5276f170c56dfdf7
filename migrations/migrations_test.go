package migrations_test

import (
	"os"
	"testing"

	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"

	"humanqa/internal/pgtest"
	"humanqa/migrations"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestACurrentDatabaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	before := applied(t, db)
	if err := migrations.Up(t.Context(), db.DB); err != nil {
		t.Fatal(err)
	}
	if after := applied(t, db); after != before {
		t.Errorf("records = %d, want %d", after, before)
	}
}

func TestStartersMayMigrateAtOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.NewEmpty(t)
	var starters errgroup.Group
	for range 4 {
		starters.Go(func() error { return migrations.Up(t.Context(), db.DB) })
	}
	if err := starters.Wait(); err != nil {
		t.Fatal(err)
	}
	if got, want := applied(t, db), applied(t, pgtest.New(t)); got != want {
		t.Errorf("records = %d, want %d", got, want)
	}
}

func applied(t *testing.T, db *sqlx.DB) int {
	t.Helper()
	var n int
	if err := db.GetContext(t.Context(), &n, "SELECT count(*) FROM public.humanqa_migrations"); err != nil {
		t.Fatal(err)
	}
	return n
}

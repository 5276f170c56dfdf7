package migrations_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"

	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/migrations"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestACurrentDatabaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	before := applied(t, db)
	must.NoError(t, migrations.Up(t.Context(), db.DB))
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
	must.NoError(t, starters.Wait())
	if got, want := applied(t, db), applied(t, pgtest.New(t)); got != want {
		t.Errorf("records = %d, want %d", got, want)
	}
}

func TestABinaryOlderThanTheSchemaRefusesIt(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if err := migrations.Check(t.Context(), db.DB); err != nil {
		t.Fatalf("today's database: %v", err)
	}
	newest, err := migrations.Newest()
	must.NoError(t, err)
	if _, err := db.ExecContext(t.Context(),
		"INSERT INTO public.humanqa_migrations (version_id, is_applied) VALUES ($1, TRUE)", newest+1); err != nil {
		t.Fatal(err)
	}
	before := applied(t, db)
	for name, refuse := range map[string]func(context.Context, *sql.DB) error{"Check": migrations.Check, "Up": migrations.Up} {
		err := refuse(t.Context(), db.DB)
		if !errors.Is(err, migrations.ErrNewer) || !strings.Contains(err.Error(), fmt.Sprintf("its schema is %d, this binary knows %d", newest+1, newest)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := applied(t, db); after != before {
		t.Errorf("records = %d, want %d", after, before)
	}
}

func TestADatabaseWithoutTheSchemaIsTold(t *testing.T) {
	t.Parallel()
	db := pgtest.NewEmpty(t)
	if err := migrations.Check(t.Context(), db.DB); !errors.Is(err, migrations.ErrOlder) {
		t.Errorf("error %v, want that it is older", err)
	}
}

func applied(t *testing.T, db *sqlx.DB) int {
	t.Helper()
	var n int
	must.NoError(t, db.GetContext(t.Context(), &n, "SELECT count(*) FROM public.humanqa_migrations"))
	return n
}

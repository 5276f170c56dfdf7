package migrations_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/migrations"
)

// held locks a table as a query of a running older version does, until the release.
func held(t *testing.T, db *sqlx.DB, table string) (release func()) {
	t.Helper()
	tx, err := db.BeginTxx(context.WithoutCancel(t.Context()), nil)
	must.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	_, err = tx.ExecContext(t.Context(), "LOCK TABLE "+table+" IN ACCESS SHARE MODE")
	must.NoError(t, err)
	return func() { must.NoError(t, tx.Rollback()) }
}

// waiting is how many sessions wait for a table's lock.
func waiting(t *testing.T, db *sqlx.DB) (pids []int) {
	t.Helper()
	must.NoError(t, db.SelectContext(t.Context(), &pids, `SELECT pid FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'relation'`))
	return pids
}

// A process that dies in the middle of a file leaves the files before it, whole; the next
// start goes on there.
func TestAMigrationThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	db := before(t, 10)
	release := held(t, db, "projection_checkpoints") // 0012 alters it
	died := make(chan error)
	go func() { died <- migrations.Up(context.WithoutCancel(t.Context()), db.DB) }()
	var killed []int
	eventually.True(t, "the migration waits for the table", func() bool {
		killed = waiting(t, db)
		return len(killed) == 1
	})
	_, err := db.ExecContext(t.Context(), "SELECT pg_terminate_backend($1)", killed[0])
	must.NoError(t, err)
	if err := <-died; err == nil {
		t.Error("a migration without its connection reports no error")
	}
	version, err := migrations.Version(t.Context(), db)
	must.NoError(t, err)
	newest, err := migrations.Newest()
	must.NoError(t, err)
	if version < 10 || version >= newest {
		t.Errorf("the schema is %d, want one between 10 and %d", version, newest)
	}
	release()
	must.NoError(t, migrations.Up(t.Context(), db.DB))
	if got, want := applied(t, db), applied(t, pgtest.New(t)); got != want {
		t.Errorf("records = %d, want %d", got, want)
	}
}

// A file that cannot have its table within its lock_timeout lets the older version's
// queries pass, and comes again.
func TestAFileThatFindsItsTableInUseComesAgain(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	files := fstest.MapFS{"9999_late.sql": {Data: []byte(`-- +goose Up
SET LOCAL lock_timeout = '50ms';
ALTER TABLE projection_checkpoints ADD COLUMN late integer;
`)}}
	names, err := filepath.Glob("*.sql")
	must.NoError(t, err)
	for _, name := range names { // goose wants to see what was applied
		content, err := os.ReadFile(name)
		must.NoError(t, err)
		files[name] = &fstest.MapFile{Data: content}
	}
	release := held(t, db, "projection_checkpoints")
	done := make(chan error, 1)
	go func() { done <- migrations.UpFrom(context.WithoutCancel(t.Context()), db.DB, files) }()
	eventually.True(t, "the file waits for the table", func() bool { return len(waiting(t, db)) == 1 })
	eventually.True(t, "the file gives up", func() bool { return len(waiting(t, db)) == 0 }) // it gave up, and waits for its next try
	var n int
	must.NoError(t, db.GetContext(t.Context(), &n, "SELECT count(*) FROM projection_checkpoints"))
	select {
	case err := <-done:
		t.Fatalf("it ended while the table was in use: %v", err)
	default:
	}
	release()
	must.NoError(t, errors.Join(<-done, db.GetContext(t.Context(), &n, "SELECT count(late) FROM projection_checkpoints")))
}

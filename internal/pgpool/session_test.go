package pgpool_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// harmful are settings that break what the service promises, and the values that its sessions
// have all the same.
var harmful = map[string][2]string{
	"synchronous_commit":                  {"off", "on"},
	"default_transaction_read_only":       {"on", "off"},
	"default_transaction_isolation":       {"serializable", "read committed"},
	"statement_timeout":                   {"1min", "0"},
	"lock_timeout":                        {"1min", "0"},
	"idle_session_timeout":                {"1min", "0"},
	"idle_in_transaction_session_timeout": {"1min", "0"},
	"client_encoding":                     {"LATIN1", "UTF8"},
	"search_path":                         {"elsewhere", `"$user", public`},
}

// give sets a setting for each later session of the role in this database.
func give(t *testing.T, db *sqlx.DB, name, value string) {
	t.Helper()
	var database string
	must.NoError(t, db.GetContext(t.Context(), &database, "SELECT current_database()"))
	run(t, db, fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %s SET %s = %s",
		pq.QuoteIdentifier(database), name, pq.QuoteLiteral(value)))
}

func TestASessionHasTheServicesSettingsWhateverItsRoleHas(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	before := pgtest.NewDB(t, dsn)
	for name, values := range harmful {
		give(t, before, name, values[0])
	}
	db := pgtest.NewDB(t, dsn)
	for name, values := range harmful {
		var got string
		if err := db.GetContext(t.Context(), &got, "SHOW "+name); err != nil || got != values[1] {
			t.Errorf("%s is %q, %v, want %q", name, got, err, values[1])
		}
	}
}

func TestACommitThatWaitsForStandBysIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	give(t, pgtest.NewDB(t, dsn), "synchronous_commit", "remote_apply")
	var got string
	if err := pgtest.NewDB(t, dsn).GetContext(t.Context(), &got, "SHOW synchronous_commit"); err != nil || got != "remote_apply" {
		t.Errorf("synchronous_commit is %q, %v", got, err)
	}
}

// A server that reloads changes only settings that a session did not make itself.
func TestAReloadOfTheServerDoesNotEndTheWaitForTheDisk(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	before := pgtest.NewDB(t, dsn)
	for _, role := range []string{"on", "off"} {
		give(t, before, "synchronous_commit", role)
		var got string
		err := pgtest.NewDB(t, dsn).GetContext(t.Context(), &got, "SELECT setting || ' of the ' || source FROM pg_settings WHERE name = 'synchronous_commit'")
		if err != nil || got != "on of the session" {
			t.Errorf("%s: synchronous_commit is %q, %v", role, got, err)
		}
	}
}

func TestASearchPathThatLeadsToTheTablesIsKept(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	run(t, db, "CREATE SCHEMA app; ALTER TABLE projection_checkpoints SET SCHEMA app")
	give(t, db, "search_path", "app")
	var got string
	if err := pgtest.NewDB(t, dsn).GetContext(t.Context(), &got, "SHOW search_path"); err != nil || got != "app" {
		t.Errorf("search_path is %q, %v", got, err)
	}
}

// The other session is younger, and by then idle for longer than both may be.
func TestAListenerOutlivesTheTimeThatItsRoleMayBeIdle(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	give(t, db, "idle_session_timeout", "200ms")
	wake := pgpool.Listen(t.Context(), dsn, "news", func(err error) { t.Error(err) })
	<-wake
	plain, err := sql.Open("postgres", dsn)
	must.NoError(t, err)
	defer func() { _ = plain.Close() }() // it was ended
	var pid int
	eventually.True(t, "a session of the role tells its process", func() bool {
		return plain.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid) == nil // it may have ended meanwhile
	})
	eventually.True(t, "an idle session of the role ends", func() bool {
		var there int
		must.NoError(t, db.GetContext(context.Background(), &there, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pid))
		return there == 0
	})
	run(t, db, "SELECT pg_notify('news', '')")
	<-wake
}

// A private server of tests has both off.
func TestSettingsThatOnlyTheServerCanChangeAreNamed(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var fsync string
	must.NoError(t, db.GetContext(t.Context(), &fsync, "SHOW fsync"))
	err := pgpool.CheckServer(t.Context(), db)
	if fsync == "off" && (err == nil || !strings.HasPrefix(err.Error(), "the server has fsync and full_page_writes off")) || fsync == "on" && err != nil {
		t.Errorf("with fsync = %s: %v", fsync, err)
	}
}

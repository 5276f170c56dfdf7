package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/lib/pq"

	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// With synchronous_commit = off a crash of Postgres would take acknowledged events back.
func TestTheLogsSessionsCommitDurablyWhateverTheirRoleHas(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	admin := pgtest.NewDB(t, dsn)
	var database string
	must.NoError(t, admin.GetContext(t.Context(), &database, "SELECT current_database()"))
	want := map[string]string{
		"synchronous_commit": "on", "idle_session_timeout": "0", "statement_timeout": "0", "default_transaction_read_only": "off",
		"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off",
	}
	for name, value := range map[string]string{
		"synchronous_commit": "off", "idle_session_timeout": "1h", "statement_timeout": "1h", "default_transaction_read_only": "on",
	} {
		_, err := admin.ExecContext(t.Context(), fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %s SET %s = '%s'",
			pq.QuoteIdentifier(database), name, value))
		must.NoError(t, err)
	}
	for _, dial := range []pq.Dialer{dialer{time.Minute}, nil} { // of the writer, of readers
		db, err := openDB(dsn, 1, dial)
		must.NoError(t, err)
		t.Cleanup(func() { must.NoError(t, db.Close()) })
		for name, value := range want {
			var got string
			if err := db.QueryRowContext(t.Context(), "SHOW "+name).Scan(&got); err != nil || got != value {
				t.Errorf("%s is %q, %v, want %q", name, got, err, value)
			}
		}
	}
}

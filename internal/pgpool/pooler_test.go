package pgpool_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/pooler"
)

func TestAPoolerInTransactionModeIsRecognised(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	for name, c := range map[string]struct {
		dsn  string
		want error
	}{
		"none":        {dsn, nil},
		"session":     {pooler.Start(t, dsn, pooler.Session), nil},
		"transaction": {pooler.Start(t, dsn, pooler.Transaction), pgpool.ErrNoSessions},
	} {
		if err := pgpool.CheckSessions(t.Context(), pgtest.NewDB(t, c.dsn)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStatementsGoThroughAPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	run(t, pgtest.NewDB(t, dsn), "CREATE TABLE things (id bigint, data bytea, about jsonb, at timestamptz)")
	db, err := pgpool.OpenShared(t.Context(), pooler.Start(t, dsn, pooler.Transaction))
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, db.Close()) })
	var all sync.WaitGroup
	for n := range 8 { // each gets any session
		all.Go(func() {
			for range 5 {
				must.NoError(t, pgpool.InTx(t.Context(), db, func(tx *sqlx.Tx) error {
					return pgpool.Exec(t.Context(), tx, "insert", "INSERT INTO things VALUES ($1, $2, $3, $4)", n, []byte{0, 255}, `{"a":1}`, time.Unix(0, 0))
				}))
				var found int
				must.NoError(t, db.GetContext(t.Context(), &found, "SELECT count(*) FROM things WHERE id = $1 AND data = $2 AND at = '1970-01-01'",
					n, []byte{0, 255}))
				if found == 0 {
					t.Error("its row is not found")
				}
			}
		})
	}
	all.Wait()
}

func TestSettingsThatNoSessionCanChangeBehindAPoolerAreNamed(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	give(t, db, "synchronous_commit", "on") // a server of tests has it off
	must.NoError(t, pgpool.CheckDefaults(t.Context(), dsn))
	give(t, db, "synchronous_commit", "off")
	give(t, db, "statement_timeout", "1min")
	err := pgpool.CheckDefaults(t.Context(), dsn)
	if err == nil || !strings.Contains(err.Error(), "sets statement_timeout, synchronous_commit, which no session can change") {
		t.Errorf("got %v", err)
	}
}

// The pooler opens its next session with the new default.
func TestACommitBehindAPoolerWaitsForTheDiskWhateverTheRoleGets(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	direct := pgtest.NewDB(t, dsn)
	run(t, direct, "CREATE TABLE things (waits text)")
	give(t, direct, "synchronous_commit", "on")
	must.NoError(t, pgpool.CheckDefaults(t.Context(), dsn))
	give(t, direct, "synchronous_commit", "off")
	db, err := pgpool.OpenShared(t.Context(), pooler.Start(t, dsn, pooler.Transaction))
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, db.Close()) })
	const insert = "INSERT INTO things SELECT current_setting('synchronous_commit') || $1"
	run(t, db, insert, " alone")
	lent := pgpool.Lend(db, 1)
	t.Cleanup(func() { must.NoError(t, lent.Close()) })
	run(t, lent, insert, " lent")
	for set, how := range map[string]string{"": " together", "SET LOCAL synchronous_commit = off": " as asked"} {
		must.NoError(t, pgpool.InTxSet(t.Context(), db, set, func(tx *sqlx.Tx) error {
			return pgpool.Exec(t.Context(), tx, "insert", insert, how)
		}))
	}
	var got []string
	must.NoError(t, direct.SelectContext(t.Context(), &got, "SELECT waits FROM things ORDER BY 1"))
	if want := []string{"off as asked", "on alone", "on lent", "on together"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO nowhere VALUES ($1)", 1); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a statement that fails: %v", err)
	}
	run(t, db, insert, " behind a failure")
}

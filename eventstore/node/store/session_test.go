package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lib/pq"

	"humanqa/internal/testing/eventually"
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

// After an outage of the network Postgres may think for long that the session lives.
func TestAFormerSessionOfTheNodeIsEndedAndAnotherNodesIsNot(t *testing.T) {
	t.Parallel()
	db, err := openDB(pgtest.NewDSN(t), 3, nil)
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, db.Close()) })
	own := &candidate{address: "log.example.com:2113"}
	first, err := openSession(t.Context(), db, own)
	must.NoError(t, err)
	defer first.close()
	_, err = openSession(t.Context(), db, &candidate{})
	if locked, ok := errors.AsType[*LockedError](err); !ok || locked.Holder != own.address || !errors.Is(err, ErrLocked) {
		t.Errorf("another node: %v, want that %s has the lock", err, own.address)
	}
	if _, err := openSession(t.Context(), db, own); !errors.Is(err, errFormer) {
		t.Errorf("the same node: %v, want errFormer", err)
	}
	eventually.Within(t, eventually.Patience, func() error {
		second, err := openSession(t.Context(), db, own)
		if err == nil {
			second.close()
		}
		return err
	})
	if err := first.answers(); err == nil {
		t.Error("the former session lives")
	}
}

// Postgres frees the lock of a closed session only once it has seen the end.
func TestANodeThatOpensItsSessionAnewTakesItsOldOneForNoOtherNode(t *testing.T) {
	t.Parallel()
	db, err := openDB(pgtest.NewDSN(t), 2, nil)
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, db.Close()) })
	own := &candidate{}
	for opened := 0; opened < 30; {
		s, err := openSession(t.Context(), db, own)
		switch {
		case err == nil:
			opened++
			s.close()
		case !errors.Is(err, errFormer):
			t.Fatalf("session %d: %v", opened, err)
		}
	}
}

package pgpool_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"humanqa/internal/must"
	"humanqa/internal/pgpool"
)

const (
	insertThingSQL = "INSERT INTO things (id, name) VALUES ($1, $2)"
	countThingsSQL = "SELECT count(*) FROM things WHERE id >= $1"
)

func TestWhatIsRunLaterIsRunInOrder(t *testing.T) {
	t.Parallel()
	db := setup(t)
	for range 2 { // prepares, and finds it prepared
		run(t, db, "DELETE FROM things WHERE id >= $1", 2)
		err := pgpool.InTxPipelined(t.Context(), db, func(ctx context.Context, tx *sqlx.Tx) error {
			later := pgpool.Later(ctx)
			exec := func(ctx context.Context, query string, args ...any) {
				if _, err := tx.ExecContext(ctx, query, args...); err != nil {
					t.Error(err)
				}
			}
			exec(later, insertThingSQL, 2, "two")
			exec(later, "UPDATE things SET name = name || $2 WHERE id = $1", 2, " and a half")
			var name string
			if err := tx.GetContext(ctx, &name, "SELECT name FROM things WHERE id = $1", 2); err != nil || name != "two and a half" {
				t.Errorf("read %q, %v", name, err)
			}
			exec(later, insertThingSQL, 3, strings.Repeat("long ", 100_000)) // more than is held back
			exec(ctx, insertThingSQL, 4, "four")
			exec(later, insertThingSQL, 5, "five")
			return nil
		})
		must.NoError(t, err)
		var n int
		if err := db.GetContext(t.Context(), &n, countThingsSQL, 2); err != nil || n != 4 {
			t.Errorf("%d rows, %v", n, err)
		}
	}
}

func TestAFailureOfWhatWasRunLaterIsToldAndLeavesNothing(t *testing.T) {
	t.Parallel()
	db := setup(t)
	run(t, db, "CREATE UNIQUE INDEX ON things (id)")
	var n int
	for name, then := range map[string]func(context.Context, *sqlx.Tx) error{
		"at the end": func(context.Context, *sqlx.Tx) error { return nil },
		"to a query": func(ctx context.Context, tx *sqlx.Tx) error { return tx.GetContext(ctx, &n, countThingsSQL, 0) },
		"to a new one": func(ctx context.Context, tx *sqlx.Tx) error {
			return tx.GetContext(ctx, &n, "SELECT $1::int AS new", 0)
		},
		"to an exec": func(ctx context.Context, tx *sqlx.Tx) error {
			_, err := tx.ExecContext(ctx, insertThingSQL, 7, "seven")
			return err
		},
		"to a text": func(ctx context.Context, tx *sqlx.Tx) error {
			_, err := tx.ExecContext(ctx, "LOCK TABLE things")
			return err
		},
		"to a copy": func(ctx context.Context, tx *sqlx.Tx) error {
			return pgpool.Copy(ctx, tx, copyThingsSQL, rowsOf(8, "eight"))
		},
		"to one later": func(ctx context.Context, tx *sqlx.Tx) error {
			_, err := tx.ExecContext(pgpool.Later(ctx), insertThingSQL, 1, "once more")
			return err
		},
	} {
		for range 2 {
			err := pgpool.InTxPipelined(t.Context(), db, func(ctx context.Context, tx *sqlx.Tx) error {
				for id, name := range []string{"zero", "one again", "two"} {
					if _, err := tx.ExecContext(pgpool.Later(ctx), insertThingSQL, id, name); err != nil {
						t.Error(err)
					}
				}
				return then(ctx, tx)
			})
			var refused *pq.Error
			if !errors.As(err, &refused) || refused.Code != pqerror.UniqueViolation || !strings.Contains(refused.Detail, "(id)=(1)") {
				t.Errorf("told %s: %v", name, err)
			}
			if err := db.GetContext(t.Context(), &n, countThingsSQL, 0); err != nil || n != 1 {
				t.Errorf("told %s: %d rows, %v", name, n, err)
			}
		}
	}
}

func TestATransactionThatIsGivenUpLeavesNothing(t *testing.T) {
	t.Parallel()
	db := setup(t)
	gone, cancel := context.WithCancel(t.Context())
	defer cancel()
	var n int
	for name, ctx := range map[string]context.Context{"by its code": t.Context(), "by its caller": gone} {
		changedMind := errors.New("changed its mind")
		err := pgpool.InTxPipelined(ctx, db, func(ctx context.Context, tx *sqlx.Tx) error {
			if _, err := tx.ExecContext(pgpool.Later(ctx), insertThingSQL, 2, "two"); err != nil {
				t.Error(err)
			}
			if name == "by its caller" {
				cancel()
				return tx.GetContext(ctx, &n, countThingsSQL, 0)
			}
			return changedMind
		})
		if !errors.Is(err, changedMind) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if err := db.GetContext(t.Context(), &n, countThingsSQL, 0); err != nil || n != 1 {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
	}
}

func TestAConnectionThatEndsIsToldOfWhatWasRunLater(t *testing.T) {
	t.Parallel()
	db := setup(t)
	err := pgpool.InTxPipelined(t.Context(), db, func(ctx context.Context, tx *sqlx.Tx) error {
		_, err := tx.ExecContext(pgpool.Later(ctx), "SELECT pg_terminate_backend(pg_backend_pid()), $1", "x")
		return err
	})
	if err == nil {
		t.Error("committed on a connection that is gone")
	}
	var n int
	if err := db.GetContext(t.Context(), &n, countThingsSQL, 0); err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestWhatIsRunLaterTakesNoRoundTrip(t *testing.T) {
	t.Parallel()
	db := setup(t)
	insert := func(ctx context.Context, tx *sqlx.Tx) error {
		for id := range 5 {
			if _, err := tx.ExecContext(pgpool.Later(ctx), insertThingSQL, id, "new"); err != nil {
				return err
			}
		}
		return nil
	}
	plain := func() error {
		return pgpool.InTxAsync(t.Context(), db, func(tx *sqlx.Tx) error { return insert(t.Context(), tx) })
	}
	pipelined := func() error { return pgpool.InTxPipelined(t.Context(), db, insert) }
	if err := plain(); err != nil { // prepares
		t.Fatal(err)
	}
	sent, err := pgpool.CountRequests(t.Context(), db)
	must.NoError(t, err)
	for name, c := range map[string]struct {
		do   func() error
		want int64
	}{"pipelined": {pipelined, 1}, "plain": {plain, 7}} { // BEGIN; SET LOCAL with the first, five, COMMIT
		sent.Store(0)
		must.NoError(t, c.do())
		if got := sent.Load(); got != c.want {
			t.Errorf("%s: %d requests, want %d", name, got, c.want)
		}
	}
}

func TestAnIdleConnectionThatWasClosedIsReplaced(t *testing.T) {
	t.Parallel()
	db, other := setup(t), setup(t)
	read := func() (pid int) {
		t.Helper()
		err := pgpool.InTxSet(t.Context(), db, "SET LOCAL enable_seqscan = off", func(ctx context.Context, tx *sqlx.Tx) error {
			var seqscan string
			err := tx.QueryRowContext(ctx, "SELECT pg_backend_pid(), current_setting('enable_seqscan') WHERE $1", true).Scan(&pid, &seqscan)
			if err == nil && seqscan != "off" {
				t.Errorf("the setting is %q", seqscan)
			}
			return err
		})
		must.NoError(t, err)
		return pid
	}
	first := read()
	run(t, other, "SELECT pg_terminate_backend($1, 10000)", first)
	if read() == first {
		t.Error("the connection is still there")
	}
}

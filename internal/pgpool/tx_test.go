package pgpool_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pgtest"
)

func TestATransactionIsWrittenWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	db := setup(t)
	refused := errors.New("refused")
	for _, end := range []error{nil, refused} {
		err := pgpool.InTx(t.Context(), db, func(tx *sqlx.Tx) error {
			run(t, tx, "INSERT INTO things VALUES ($1, $2)", 2, "two")
			return end
		})
		if !errors.Is(err, end) {
			t.Errorf("it ended with %v, want %v", err, end)
		}
		var n int
		if err := db.GetContext(t.Context(), &n, "SELECT count(*) FROM things"); err != nil || n != 2 {
			t.Errorf("%d things, %v; want 2", n, err)
		}
	}
}

func TestATransactionSaysWhetherItsCommitWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	db := setup(t)
	type inTx = func(context.Context, *sqlx.DB, func(*sqlx.Tx) error) error
	for _, server := range []string{"on", "off"} {
		run(t, db, "SET synchronous_commit = "+server) // one connection
		for name, c := range map[string]struct {
			in   inTx
			want string
		}{
			"default": {pgpool.InTx, server},
			"set": {func(ctx context.Context, db *sqlx.DB, f func(*sqlx.Tx) error) error {
				return pgpool.InTxSet(ctx, db, "SET LOCAL synchronous_commit = off", f)
			}, "off"},
		} {
			var got string
			err := c.in(t.Context(), db, func(tx *sqlx.Tx) error {
				return tx.GetContext(t.Context(), &got, "SHOW synchronous_commit")
			})
			if err != nil || got != c.want {
				t.Errorf("%s on a server with %s: %s, %v; want %s", name, server, got, err, c.want)
			}
		}
	}
}

func TestListenSaysWhatWasNotified(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	wake := pgpool.Listen(t.Context(), dsn, "news", func(err error) { t.Error(err) })
	next := func(why string) {
		t.Helper()
		select {
		case <-wake:
		case <-time.After(eventually.Patience):
			t.Fatal(why)
		}
	}
	next("the first connection was not told") // what came before it may have been missed
	for range 3 {
		run(t, db, "SELECT pg_notify('news', '')")
		next("a notification did not come")
	}
}

func TestListenComesBackAfterALostConnection(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	interrupted := make(chan error, 100)
	wake := pgpool.Listen(t.Context(), dsn, "news", func(err error) { interrupted <- err })
	<-wake
	run(t, db, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN \"news\"'")
	if err := <-interrupted; err == nil {
		t.Error("no reason is told")
	}
	<-wake // something may have been missed
	run(t, db, "SELECT pg_notify('news', '')")
	<-wake
}

package pgpool_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// lend gives a pool of two connections, and one that may hold one of them.
func lend(t *testing.T) (db, lent *sqlx.DB) {
	t.Helper()
	db = setup(t)
	db.SetMaxOpenConns(2)
	lent = pgpool.Lend(db, 1)
	t.Cleanup(func() { must.NoError(t, lent.Close()) })
	return db, lent
}

// hold begins a transaction on each pool, and gives the function that ends them.
func hold(t *testing.T, pools ...*sqlx.DB) (end func()) {
	t.Helper()
	var held []*sqlx.Tx
	for _, pool := range pools {
		tx, err := pool.BeginTxx(t.Context(), nil)
		must.NoError(t, err)
		held = append(held, tx)
	}
	return func() {
		for _, tx := range held {
			must.NoError(t, tx.Rollback())
		}
	}
}

func pid(t *testing.T, db *sqlx.DB) (pid int) {
	t.Helper()
	must.NoError(t, db.GetContext(t.Context(), &pid, "SELECT pg_backend_pid()"))
	return pid
}

func TestTheLastConnectionIsNeverLent(t *testing.T) {
	t.Parallel()
	db, lent := lend(t)
	end := hold(t, lent)
	waiting, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- lent.PingContext(waiting) }()
	eventually.True(t, "the second borrower waits", func() bool { return lent.Stats().WaitCount == 1 })
	pid(t, db)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("it waited, and then %v", err)
	}
	end()
	pid(t, lent)
	if held := db.Stats().InUse; held != 0 {
		t.Errorf("%d connections did not come back", held)
	}
}

func TestALentConnectionKeepsItsStatements(t *testing.T) {
	t.Parallel()
	db, lent := lend(t)
	db.SetMaxOpenConns(1)
	for _, pool := range []*sqlx.DB{db, lent, db, lent} {
		var name string
		must.NoError(t, pool.GetContext(t.Context(), &name, "SELECT name FROM things WHERE id = $1", 1))
	}
	if n := prepared(t, lent, "SELECT name FROM things%"); n != 1 {
		t.Errorf("the statement is prepared %d times", n)
	}
	if opened := db.Stats().OpenConnections; opened != 1 {
		t.Errorf("%d connections are open", opened)
	}
}

func TestALentConnectionThatBreaksIsReplaced(t *testing.T) {
	t.Parallel()
	db, lent := lend(t)
	tx, err := lent.BeginTxx(t.Context(), nil)
	must.NoError(t, err)
	var broken int
	must.NoError(t, tx.GetContext(t.Context(), &broken, "SELECT pg_backend_pid()"))
	run(t, db, "SELECT pg_terminate_backend($1, 60000)", broken)
	if err := tx.GetContext(t.Context(), &broken, "SELECT pg_backend_pid()"); err == nil {
		t.Error("it answers")
	}
	_ = tx.Rollback() // its connection is gone
	if again := pid(t, lent); again == broken {
		t.Error("it is the same")
	}
}

// Connections that are opened for callers who leave at that moment go to others, or back.
func TestAConnectionForACallerWhoLeftIsUsedByOthers(t *testing.T) {
	t.Parallel()
	db, lent := lend(t)
	for range 100 {
		lent.SetConnMaxLifetime(1) // so that a caller who waits gets a new one
		end := hold(t, lent)
		waiting, leave := context.WithCancel(t.Context())
		waited := lent.Stats().WaitCount
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				if err := lent.PingContext(waiting); err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("it waited, and then %v", err)
				}
			})
		}
		eventually.True(t, "they wait", func() bool { return lent.Stats().WaitCount == waited+50 })
		go leave()
		end()
		lent.SetConnMaxLifetime(0)
		callers.Wait()
		var one int
		must.NoError(t, lent.GetContext(t.Context(), &one, "SELECT $1::int", 1))
		eventually.True(t, "it goes back", func() bool { return db.Stats().InUse == 0 })
	}
}

// The lent pool keeps no connection, so its next user waits for one of the others.
func TestABorrowerWaitsForThePoolBehindAsLongAsItsContextLasts(t *testing.T) {
	t.Parallel()
	db, lent := lend(t)
	pid(t, lent)
	end := hold(t, db, db)
	waiting, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- lent.PingContext(waiting) }()
	eventually.True(t, "the borrower waits", func() bool { return db.Stats().WaitCount > 0 })
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("it waited, and then %v", err)
	}
	end()
	pid(t, lent)
}

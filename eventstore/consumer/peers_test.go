package consumer_test

import (
	"context"
	"testing"

	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/pgtest"
)

// The process that holds the lease for an hour lives for as long as its connection.
func TestTheLeaseOfAProcessThatDiesIsTakenOverAtOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	other := w.Service(w.Log, models()...)
	alive, die := context.WithCancel(w.Ctx())
	defer die()
	go func() { _ = other.Present(alive, pgtest.DSN(t, w.DB)) }() // nil
	w.Eventually("its connection is there", func() bool {
		return w.Count("SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'consumers %'") == 1
	})
	w.Exec(`UPDATE projection_checkpoints SET owner = $1, epoch = epoch + 1, lease_until = now() + interval '1 hour'
		WHERE name = 'jobs'`, other.OwnerOfSession())
	held := func() bool {
		return w.Count("SELECT COUNT(*) FROM projection_checkpoints WHERE name = 'jobs' AND owner = $1", other.OwnerOfSession()) == 1
	}
	modeltest.Lives(w.Log, "a", 5)
	w.Run(w.Sup)
	w.Eventually("the others are folded", func() bool { return w.Status("access").Position == w.Log.Head() })
	if !held() {
		t.Fatal("a lease was taken from a process that lives")
	}
	die()
	w.Reach(w.Sup)
	if held() {
		t.Error("the dead process has its lease")
	}
	w.Sound(w.Sup, "jobs")
}

package projections

import "testing"

func TestADeadOwnersLeaseNeedNotEndAfterARestartOfPostgres(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.exec("UPDATE projection_checkpoints SET owner = 'dead', epoch = epoch + 1, lease_until = now() + interval '1 hour'")
	if err := ReleaseAll(w.ctx(), w.db); err != nil {
		t.Fatal(err)
	}
	w.run(w.sup)
	lives(w.log, "a", 10)
	w.reach(w.sup)

	// An owner that is alive after all loses its lease and takes it again.
	if err := ReleaseAll(w.ctx(), w.db); err != nil {
		t.Fatal(err)
	}
	lives(w.log, "b", 10)
	w.reach(w.sup)
	w.sound(w.sup, names()...)
}

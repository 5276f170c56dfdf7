package consumer_test

import (
	"testing"

	"humanqa/eventstore/generation"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
)

func TestADeadOwnersLeaseNeedNotEndAfterARestartOfPostgres(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Exec("UPDATE projection_checkpoints SET owner = 'dead', epoch = epoch + 1, lease_until = now() + interval '1 hour'")
	must.NoError(t, generation.ReleaseAll(w.Ctx(), w.DB))
	w.Run(w.Sup)
	modeltest.Lives(w.Log, "a", 10)
	w.Reach(w.Sup)

	// An owner that is alive after all loses its lease and takes it again.
	must.NoError(t, generation.ReleaseAll(w.Ctx(), w.DB))
	modeltest.Lives(w.Log, "b", 10)
	w.Reach(w.Sup)
	w.Sound(w.Sup, names(models())...)
}

package history

import (
	"os"
	"testing"

	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/activity"
	"humanqa/projections/jobs"
	"humanqa/projections/projects"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

type world struct {
	*modeltest.World
	reads *Reads
}

func setup(t *testing.T) *world {
	t.Helper()
	w := modeltest.New(t, Projector, projects.Projector, jobs.Projector, activity.Projector)
	return &world{World: w, reads: NewReads(w.DB)}
}

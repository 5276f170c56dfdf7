package people

import (
	"os"
	"testing"

	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/access"
	"humanqa/projections/jobs"
	"humanqa/projections/pools"
	"humanqa/projections/projects"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

type world struct {
	*modeltest.World
	reads *Reads
}

func setup(t *testing.T) *world {
	t.Helper()
	w := modeltest.New(t, Projector, access.Projector, jobs.Projector, projects.Projector, pools.Projector)
	return &world{World: w, reads: NewReads(w.DB)}
}

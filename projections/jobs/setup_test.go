package jobs

import (
	"os"
	"testing"

	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/access"
	"humanqa/projections/history"
	"humanqa/projections/people"
	"humanqa/projections/pools"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

type world struct {
	*modeltest.World
	reads *Reads
}

func setup(t *testing.T) *world {
	t.Helper()
	w := modeltest.New(t, Projector, access.Projector, people.Projector, pools.Projector, history.Projector)
	return &world{World: w, reads: NewReads(w.DB)}
}

package access

import (
	"os"
	"testing"

	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

type world struct {
	*modeltest.World
	reads *Reads
}

func setup(t *testing.T) *world {
	t.Helper()
	w := modeltest.New(t, Projector, Erasures)
	return &world{World: w, reads: NewReads(w.DB)}
}

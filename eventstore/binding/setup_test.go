package binding_test

import (
	"os"
	"testing"

	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

type world struct {
	*modeltest.World
	reads *projections.Reads
}

// setup runs every read model, unless some are named.
func setup(t *testing.T, consumers ...consumer.Consumer) *world {
	t.Helper()
	if len(consumers) == 0 {
		consumers = projections.All()
	}
	w := modeltest.New(t, consumers...)
	return &world{World: w, reads: projections.NewReads(w.DB)}
}

package binding_test

import (
	"os"
	"testing"

	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/access"
	"humanqa/projections/jobs"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

type world struct{ *modeltest.World }

// setup runs two read models, unless others are named.
func setup(t *testing.T, consumers ...consumer.Consumer) *world {
	t.Helper()
	if len(consumers) == 0 {
		consumers = []consumer.Consumer{jobs.Projector, access.Projector}
	}
	return &world{modeltest.New(t, consumers...)}
}

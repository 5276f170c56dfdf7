package consumer_test

import (
	"os"
	"testing"

	"humanqa/domain/policy"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/access"
	"humanqa/projections/credits"
	"humanqa/projections/events"
	"humanqa/projections/history"
	"humanqa/projections/jobs"
	"humanqa/projections/ledger"
	"humanqa/projections/people"
	"humanqa/projections/timers"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

type world struct {
	*modeltest.World
	reads reads
}

type reads struct {
	Jobs   *jobs.Reads
	Access *access.Reads
	Events *events.Reads
}

// setup runs the models, unless others are named.
func setup(t *testing.T, consumers ...consumer.Consumer) *world {
	t.Helper()
	if len(consumers) == 0 {
		consumers = models()
	}
	w := modeltest.New(t, consumers...)
	return &world{World: w, reads: reads{jobs.NewReads(w.DB), access.NewReads(w.DB), events.NewReads(w.DB)}}
}

// models are read models that differ in what this package does with them: access has a
// unique key, and events is lazy.
func models() []consumer.Consumer {
	return []consumer.Consumer{jobs.Projector, credits.Projector, access.Projector, events.Projector{}}
}

// manyModels are the models and others that handle the same events, or none of them. Two
// are lazy.
func manyModels() []consumer.Consumer {
	return append(models(), history.Projector, ledger.Projector, people.Projector, timers.NewProjector(policy.Rules()))
}

func names(consumers []consumer.Consumer) (names []string) {
	for _, c := range consumers {
		names = append(names, c.Name())
	}
	return names
}

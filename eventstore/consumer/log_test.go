package consumer_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"humanqa/domain"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/jobs"
)

// The same on the real log: the embedded node, the official client, the feed.
func TestARebuildUnderLoadOnTheRealLog(t *testing.T) {
	t.Parallel()
	w := setup(t)
	log := logtest.Start(t, pgtest.DSN(t, w.DB))
	s := w.Service(log.Feed, models()...)
	stop := w.Run(s)

	submit := func(i int) domain.Position {
		t.Helper()
		stream := domain.JobStream(fmt.Sprint("j", i))
		written, err := log.Append(w.Ctx(), stream, domain.NoStream, []domain.NewEvent{
			{ID: uuid.New(), Event: modeltest.Created("acc"), Meta: domain.Metadata{CommandID: uuid.New(), Time: modeltest.Noon}},
			{ID: uuid.New(), Event: modeltest.Claimed("ann"), Meta: domain.Metadata{CommandID: uuid.New(), Time: modeltest.Noon}},
		})
		must.NoError(t, err)
		return written.Position
	}
	const before, during = 50, 100
	for i := range before {
		submit(i)
	}
	rebuilt := make(chan error, 1)
	go func() { rebuilt <- s.RebuildAll(w.Ctx(), []string{"jobs"}, nil) }()
	for i := range during {
		must.NoError(t, s.WaitFor(w.Ctx(), submit(before+i)))
		if _, total, err := w.reads.Jobs.List(w.Ctx(), "acc", jobs.Filter{Limit: 1}); err != nil || total != before+i+1 {
			t.Fatalf("after job %d a reader met %d jobs, %v", before+i+1, total, err)
		}
	}
	must.NoError(t, <-rebuilt)
	w.Sound(s, names(models())...)

	registry := prometheus.NewRegistry()
	registry.MustRegister(s.Collector())
	families, err := registry.Gather()
	must.NoError(t, err)
	if len(families) != 9 || len(families[0].GetMetric()) != len(models()) {
		t.Errorf("got metrics %v", families)
	}

	// How late they are is time; at the end of the log nobody is.
	late := func() (seconds []float64) {
		families, err := registry.Gather()
		must.NoError(t, err)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "humanqa_projection_lag_seconds" {
					seconds = append(seconds, m.GetGauge().GetValue())
				}
			}
		}
		return seconds
	}
	w.Eventually("all are at the end of the log", func() bool {
		got := late()
		return len(got) == len(models()) && slices.Max(got) == 0
	})
	stop()
	began := time.Now()
	submit(before + during)
	w.Eventually("what stands still is late", func() bool { return slices.Min(late()) > 0 })
	if got, most := slices.Max(late()), time.Since(began).Seconds()+1; got > most {
		t.Errorf("somebody is %g s late, and the first event that nobody saw is %g s old at most", got, most)
	}
}

package consumer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/access"
	"humanqa/projections/credits"
	"humanqa/projections/events"
	"humanqa/projections/jobs"
)

// After an upgrade the old rows stand at the log's end and nobody moves them
// on: that they have caught up says nothing about the new code.
func TestNewCodeIsNotReadyUntilItsOwnRowsAreShown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stop := w.Run(w.Sup)
	modeltest.Lives(w.Log, "a", 50)
	w.Reach(w.Sup)
	must.NoError(t, w.Sup.CatchUp(w.Ctx(), events.Projector{}.Name())) // it is lazy
	stop()

	gate := w.Log.Copy()
	gate.Hold(20)
	next := w.Service(gate, jobsNext{jobs.Projector}, credits.Projector, access.Projector)
	w.Run(next)
	problem := func(of *consumer.Supervisor) string {
		list, err := of.Status(w.Ctx())
		must.NoError(t, err)
		var found []string
		for _, s := range list {
			if s.Serving && s.Problem() != "" {
				found = append(found, s.Problem())
			}
		}
		return strings.Join(found, ", ")
	}
	if got, want := problem(next), fmt.Sprintf("projection jobs shows rows of version %d, until those of version %d are built", jobs.Projector.Version(), jobsNext{jobs.Projector}.Version()); got != want {
		t.Errorf("the problem is %q, want %q", got, want)
	}
	if got := problem(w.Sup); got != "" {
		t.Errorf("the old code has a problem with its own rows: %q", got)
	}
	limit := 100 * time.Millisecond
	eventually.True(t, "who waits is told what is still to build", func() bool {
		limit *= 2 // until a busy machine has looked once
		short, cancel := context.WithTimeout(w.Ctx(), limit)
		defer cancel()
		return strings.Contains(fmt.Sprint(next.WaitForBuilds(short)), "still to build: jobs: ")
	})

	gate.Hold(0)
	must.NoError(t, next.WaitForBuilds(w.Ctx()))
	if got := problem(next) + problem(w.Sup); got != "" || w.Status("jobs").Version != (jobsNext{jobs.Projector}).Version() {
		t.Errorf("the problem is %q with %+v", got, w.Status("jobs"))
	}
}

package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/credits"
	"humanqa/projections/events"
	"humanqa/projections/jobs"
)

func TestWhoWaitsSeesWhatTheyWaitedFor(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Sup.ChangeLimits(func(l *consumer.Limits) { l.Report = l.Store / 20 }) // reports put no store off
	w.Run(w.Sup)
	api := w.Service(w.Log, models()...) // never runs: an API node
	var clients sync.WaitGroup
	for i := range 16 {
		service := []*consumer.Supervisor{w.Sup, api}[i%2]
		clients.Go(func() {
			for n := range 10 {
				id := strings.Repeat("x", i+1) + strings.Repeat("y", n)
				position := w.Log.Record(domain.JobStream(id), modeltest.Created("acc"))
				if err := service.WaitFor(w.Ctx(), position); err != nil {
					t.Error(err)
				}
				if _, err := w.reads.Jobs.Job(w.Ctx(), "acc", id); err != nil {
					t.Errorf("job %s: %v", id, err)
				}
			}
		})
	}
	clients.Wait()
}

func TestWaitingCoversAProjectionThatHasNotStarted(t *testing.T) {
	t.Parallel()
	w := setup(t, jobs.Projector, credits.Projector)
	reading := w.Service(w.Log, jobs.Projector) // nobody runs credits
	w.Run(reading)
	position := w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"))
	w.Reach(reading)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := w.Sup.WaitFor(ctx, position)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "behind: credits:") {
		t.Errorf("got %v", err)
	}
	w.Run(w.Service(w.Log, credits.Projector))
	w.Reach(w.Sup)
}

// A lazy projection is behind what a write was answered with, and is waited
// for by who reads it: here, and where it does not run.
func TestALazyProjectionIsCaughtUpWithByWhoReadsIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	elsewhere := w.Service(w.Log, models()...) // never runs
	for n := range 20 {
		id := fmt.Sprint("j", n)
		at := w.Log.Record(domain.JobStream(id), modeltest.Created("acc"))
		service := []*consumer.Supervisor{w.Sup, elsewhere}[n%2]
		must.NoError(t, service.WaitFor(w.Ctx(), at))
		must.NoError(t, service.CatchUp(w.Ctx(), events.Name))
		if found, err := w.reads.Events.OfJob(w.Ctx(), "acc", id); len(found) != 1 || err != nil {
			t.Errorf("job %s has %d events: %v", id, len(found), err)
		}
	}
}

// Behind an answered write the position that is shown is no older, here and where no projection
// runs.
func TestWhatIsShownIsNoOlderThanAnAnsweredWrite(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	elsewhere := w.Service(w.Log, models()...) // never runs
	for n := range 20 {
		at := w.Log.Record(domain.JobStream(fmt.Sprint("j", n)), modeltest.Created("acc"))
		service := []*consumer.Supervisor{w.Sup, elsewhere}[n%2]
		must.NoError(t, service.WaitFor(w.Ctx(), at))
		if shown, err := service.Shown(w.Ctx()); err != nil || shown != at {
			t.Errorf("after a write at %v it shows %v, %v", at, shown, err)
		}
	}
}

func TestNothingIsWaitedForAfterACommandThatWroteNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	if err := w.Sup.WaitFor(w.Ctx(), domain.Position{}); err != nil {
		t.Error(err)
	}
}

func TestAStandstillShowsAsALagThatDoesNotShrink(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stop := w.Run(w.Sup)
	modeltest.Lives(w.Log, "a", 3)
	w.Reach(w.Sup)
	stop()
	modeltest.Lives(w.Log, "b", 3)
	behind := w.Status("jobs")
	if behind.Lag == 0 || behind.Problem() != "" {
		t.Fatalf("got %+v", behind)
	}
	w.Eventually("the standstill is noticed", func() bool { return w.Status("jobs").Stalled > 0 })
	late := w.Status("jobs")
	late.Stalled = consumer.StallAfter
	if !strings.Contains(late.Problem(), "short of the log's end") {
		t.Errorf("problem: %q", late.Problem())
	}
	w.Run(w.Sup)
	w.Reach(w.Sup)
	if s := w.Status("jobs"); s.Lag != 0 || s.Stalled != 0 {
		t.Errorf("got %+v", s)
	}
}

func TestAProjectionBeyondTheEndOfTheLogIsNoticed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	modeltest.Lives(w.Log, "a", 5)
	w.Reach(w.Sup)
	w.Log.Lose(3)
	w.Eventually("it is noticed", func() bool {
		s := w.Status("jobs")
		return s.Ahead && s.Lag == 0 && s.Stalled > 0
	})
	late := w.Status("jobs")
	late.Stalled = consumer.StallAfter
	if !strings.Contains(late.Problem(), "beyond the log's end") {
		t.Errorf("problem: %q", late.Problem())
	}
}

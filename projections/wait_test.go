package projections

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/eventstore"
)

func TestWhoWaitsSeesWhatTheyWaitedFor(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	api := w.service(w.log, All()...) // never runs: an API node
	var clients sync.WaitGroup
	for i := range 16 {
		service := []*Supervisor{w.sup, api}[i%2]
		clients.Go(func() {
			for n := range 10 {
				id := strings.Repeat("x", i+1) + strings.Repeat("y", n)
				position := w.log.append(domain.JobStream(id), created("acc"))
				if err := service.WaitFor(w.ctx(), position); err != nil {
					t.Error(err)
				}
				if _, err := w.reads.Jobs.Job(w.ctx(), "acc", id); err != nil {
					t.Errorf("job %s: %v", id, err)
				}
			}
		})
	}
	clients.Wait()
}

func TestWaitingCoversAProjectionThatHasNotStarted(t *testing.T) {
	t.Parallel()
	w := setup(t, jobsProjector{}, creditsProjector{})
	jobs := w.service(w.log, jobsProjector{}) // nobody runs credits
	w.run(jobs)
	position := w.log.append(domain.JobStream("j1"), created("acc"))
	w.reach(jobs)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := w.sup.WaitFor(ctx, position)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "behind: credits:") {
		t.Errorf("got %v", err)
	}
	w.run(w.service(w.log, creditsProjector{}))
	w.reach(w.sup)
}

// What a crash of Postgres took back is waited for once more.
func TestARunnerThatStartsBehindTakesPromisesBack(t *testing.T) {
	t.Parallel()
	position := func(n uint64) domain.Position { return domain.Position{Commit: n, Prepare: n} }
	a := newArrivals(nil, []Projector{jobsProjector{}})
	a.runsHere("jobs", eventstore.At(position(10)))
	a.leftHere("jobs")
	a.runsHere("jobs", eventstore.At(position(5)))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	waited := make(chan error, 1)
	w := a.register(position(7))
	if w == nil {
		t.Fatal("position 7 is taken for granted")
	}
	go func() { waited <- a.wait(ctx, position(7)) }()
	a.advance("jobs", eventstore.At(position(6)))
	select {
	case err := <-w.done:
		t.Fatalf("woken too early: %v", err)
	default:
	}
	a.advance("jobs", eventstore.At(position(8)))
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if err := <-w.done; err != nil {
		t.Error(err)
	}
}

func TestNothingIsWaitedForAfterACommandThatWroteNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	if err := w.sup.WaitFor(w.ctx(), domain.Position{}); err != nil {
		t.Error(err)
	}
}

func TestAStandstillShowsAsALagThatDoesNotShrink(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stop := w.run(w.sup)
	lives(w.log, "a", 3)
	w.reach(w.sup)
	stop()
	lives(w.log, "b", 3)
	behind := w.status("jobs")
	if behind.Lag == 0 || behind.Problem() != "" {
		t.Fatalf("got %+v", behind)
	}
	w.eventually("the standstill is noticed", func() bool { return w.status("jobs").Stalled > 0 })
	late := w.status("jobs")
	late.Stalled = stallAfter
	if !strings.Contains(late.Problem(), "behind") {
		t.Errorf("problem: %q", late.Problem())
	}
	w.run(w.sup)
	w.reach(w.sup)
	if s := w.status("jobs"); s.Lag != 0 || s.Stalled != 0 {
		t.Errorf("got %+v", s)
	}
}

func TestAProjectionBeyondTheEndOfTheLogIsNoticed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	lives(w.log, "a", 5)
	w.reach(w.sup)
	w.log.lose(3)
	w.eventually("it is noticed", func() bool {
		s := w.status("jobs")
		return s.Ahead && s.Lag == 0 && s.Stalled > 0
	})
	late := w.status("jobs")
	late.Stalled = stallAfter
	if !strings.Contains(late.Problem(), "beyond the log's end") {
		t.Errorf("problem: %q", late.Problem())
	}
}

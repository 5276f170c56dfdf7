package projections

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"humanqa/domain"
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
	w.run(w.service(w.log, jobsProjector{})) // nobody runs credits
	position := w.log.append(domain.JobStream("j1"), created("acc"))
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	err := w.sup.WaitFor(ctx, position)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "behind: credits:") {
		t.Errorf("got %v", err)
	}
	w.run(w.service(w.log, creditsProjector{}))
	w.reach(w.sup)
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

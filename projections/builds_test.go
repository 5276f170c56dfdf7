package projections

import (
	"context"
	"strings"
	"testing"
	"time"
)

// After an upgrade the old rows stand at the log's end and nobody moves them
// on: that they have caught up says nothing about the new code.
func TestNewCodeIsNotReadyUntilItsOwnRowsAreShown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stop := w.run(w.sup)
	lives(w.log, "a", 50)
	w.reach(w.sup)
	stop()

	gate := newMemoryLog()
	gate.events = w.log.events
	gate.hold(20)
	next := w.service(gate, jobsNext{}, creditsProjector{}, projectsProjector{}, accessProjector{})
	w.run(next)
	problem := func(of *Supervisor) string {
		list, err := of.Status(w.ctx())
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, s := range list {
			if s.Serving && s.Problem() != "" {
				found = append(found, s.Problem())
			}
		}
		return strings.Join(found, ", ")
	}
	if got, want := problem(next), "projection jobs shows rows of version 2, until those of version 3 are built"; got != want {
		t.Errorf("the problem is %q, want %q", got, want)
	}
	if got := problem(w.sup); got != "" {
		t.Errorf("the old code has a problem with its own rows: %q", got)
	}
	short, cancel := context.WithTimeout(w.ctx(), 200*time.Millisecond)
	defer cancel()
	if err := next.WaitForBuilds(short); err == nil || !strings.Contains(err.Error(), "still to build: jobs: ") {
		t.Errorf("waiting gave %v", err)
	}

	gate.hold(0)
	if err := next.WaitForBuilds(w.ctx()); err != nil {
		t.Fatal(err)
	}
	if got := problem(next) + problem(w.sup); got != "" || w.status("jobs").Version != (jobsNext{}).Version() {
		t.Errorf("the problem is %q with %+v", got, w.status("jobs"))
	}
}

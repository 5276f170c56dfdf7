package project_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/project"
)

func prepared(batch string, at time.Time, keys ...string) *project.RegressionsPrepared {
	e := &project.RegressionsPrepared{BatchID: batch, At: at}
	for _, key := range keys {
		e.Items = append(e.Items, project.Prepared{ID: batch + "/" + key, Key: key, Description: key, Severity: "major"})
	}
	return e
}

func attachedTo(jobs []string, ids ...string) *project.RegressionsAttached {
	return &project.RegressionsAttached{JobIDs: jobs, Items: ids, At: t1}
}

func prepare(e *project.RegressionsPrepared) decide {
	return func(s project.State) ([]domain.Event, error) { return project.DecidePrepare(s, *e) }
}

func take(jobs []string, ids ...string) decide {
	return test(func(c *project.TestCommand) { c.JobIDs, c.Take = jobs, ids })
}

// all says that every job that took a fix along has this outcome.
func all(outcome project.Outcome) func(project.Fix) project.Outcome {
	return func(project.Fix) project.Outcome { return outcome }
}

func wantIDs(t *testing.T, got []project.Fix, want ...string) {
	t.Helper()
	var ids []string
	for _, f := range got {
		ids = append(ids, f.ID)
	}
	if !slices.Equal(ids, want) {
		t.Errorf("got %v, want %v", ids, want)
	}
}

func TestFixesAreQueued(t *testing.T) {
	t.Parallel()
	t.Run("and wait, the newest first", func(t *testing.T) {
		s := given(t, created(), prepared("a", t0, "login", "cart")).
			When(prepare(prepared("b", t1, "menu"))).
			Events(prepared("b", t1, "menu")).State()
		wantIDs(t, s.Waiting(nil, all(project.Alive)), "b/menu", "a/cart", "a/login")
	})
	t.Run("once a key: the newer one replaces the older", func(t *testing.T) {
		s := given(t, created(), prepared("a", t0, "login", "cart"), prepared("b", t1, "login")).State()
		wantIDs(t, s.Waiting(nil, all(project.Alive)), "b/login", "a/cart")
	})
	t.Run("anew while a test verifies the older one, which does not come back", func(t *testing.T) {
		s := given(t, created(), prepared("a", t0, "login"), attachedTo([]string{"j1"}, "a/login"), prepared("b", t1, "login")).State()
		wantIDs(t, s.Waiting(nil, all(project.Lost)), "b/login")
	})
	t.Run("up to a bound beyond which the oldest leave", func(t *testing.T) {
		var many []string
		for n := range project.KeptPrepared {
			many = append(many, fmt.Sprintf("k%d", n))
		}
		s := given(t, created(), prepared("a", t0, "oldest"), prepared("b", t1, many...)).State()
		waiting := s.Waiting(nil, all(project.Alive))
		if len(waiting) != 100 || waiting[99].ID != "b/k0" {
			t.Errorf("%d wait, the oldest is %s", len(waiting), waiting[len(waiting)-1].ID)
		}
	})
	t.Run("but not without one", func(t *testing.T) {
		given(t, created()).When(prepare(prepared("a", t0))).Invalid("fixedBugIds", "fixedDescriptions")
	})
	t.Run("of a project", func(t *testing.T) { given(t).When(prepare(prepared("a", t0, "login"))).NotFound("project") })
}

func TestATestTakesFixesAlong(t *testing.T) {
	t.Parallel()
	slots := []string{"j1", "j2"}
	queue := []domain.Event{created(), prepared("a", t0, "login", "cart")}
	inTest := append(slices.Clone(queue), attachedTo(slots, "a/login"))

	t.Run("once", func(t *testing.T) {
		given(t, queue...).When(take(slots, "a/login")).Events(attachedTo(slots, "a/login"))
	})
	t.Run("and they wait no more while it lives, but for itself", func(t *testing.T) {
		s := given(t, inTest...).State()
		wantIDs(t, s.Waiting([]string{"j3"}, all(project.Alive)), "a/cart")
		wantIDs(t, s.Waiting(slots, all(project.Alive)), "a/cart", "a/login")
	})
	t.Run("and they wait again once it ended without a report", func(t *testing.T) {
		s := given(t, inTest...).State()
		wantIDs(t, s.Waiting(nil, all(project.Lost)), "a/cart", "a/login")
		given(t, inTest...).When(take([]string{"j3"}, "a/login")).Events(attachedTo([]string{"j3"}, "a/login"))
	})
	t.Run("and they leave once it has reported", func(t *testing.T) {
		s := given(t, inTest...).State()
		wantIDs(t, s.Waiting(nil, all(project.Reported)), "a/cart")
		verified := s.Verified(all(project.Reported))
		if !slices.Equal(verified, []string{"a/login"}) {
			t.Fatalf("verified are %v", verified)
		}
		forgetting := attachedTo([]string{"j3"}, "a/cart")
		forgetting.Forgotten = verified
		after := given(t, inTest...).
			When(test(func(c *project.TestCommand) {
				c.JobIDs, c.Take, c.Forget = []string{"j3"}, []string{"a/cart"}, verified
			})).
			Happens(forgetting).State()
		wantIDs(t, after.Waiting(nil, all(project.Lost)), "a/cart")
	})
	t.Run("that are in the queue, and no others", func(t *testing.T) {
		given(t, queue...).When(take(slots, "gone")).Nothing()
	})
}

func TestAFixWaitsForEveryJobThatTookItAlong(t *testing.T) {
	t.Parallel()
	const alive, reported, lost = project.Alive, project.Reported, project.Lost
	for _, c := range []struct {
		outcomes []project.Outcome
		want     project.Outcome
	}{
		{[]project.Outcome{alive}, alive},
		{[]project.Outcome{lost}, lost},
		{[]project.Outcome{reported}, reported},
		{[]project.Outcome{lost, alive}, alive},
		{[]project.Outcome{lost, lost}, lost},
		{[]project.Outcome{alive, reported}, reported},
		{[]project.Outcome{reported, lost}, reported},
	} {
		byJob := map[string]project.Outcome{}
		var jobs []string
		for i, outcome := range c.outcomes {
			id := fmt.Sprint(i)
			jobs, byJob[id] = append(jobs, id), outcome
		}
		if got := project.OutcomeOf(jobs, func(id string) project.Outcome { return byJob[id] }); got != c.want {
			t.Errorf("%v add up to %d, want %d", c.outcomes, got, c.want)
		}
	}
}

func TestEvolvingLeavesTheOldStateAsItIs(t *testing.T) {
	t.Parallel()
	before := given(t, created(), prepared("a", t0, "login", "cart")).State()
	attached := project.Evolve(before, attachedTo([]string{"j1"}, "a/login"))
	project.Evolve(before, prepared("b", t1, "cart"))
	wantIDs(t, before.Waiting(nil, all(project.Alive)), "a/cart", "a/login")
	wantIDs(t, attached.Waiting(nil, all(project.Alive)), "a/cart")
}

package projections

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/loop"
	"humanqa/domain/policy"
	"humanqa/domain/project"
)

// A host of invisible characters was let through once; its event is in the log
// for good.
func TestAHostThatNoIndexHoldsStopsNoProjection(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's
	var host strings.Builder
	for range 1990 {
		host.WriteRune(0xe0100 + r.Int32N(0xf0))
	}
	url := "https://" + host.String() + "shop.example.com"
	w.log.append("project-p", &project.Created{AccountID: "acc", Name: "P", DefaultURL: &url, At: noon})
	w.reach(w.sup)
	got, err := w.reads.Projects.Get(w.ctx(), "acc", "p")
	if err != nil || got.DefaultURL == nil || *got.DefaultURL != url {
		t.Errorf("the project is %+v, %v", got, err)
	}
}

// What a model or a page answered may stand in an error.
func TestAnErrorOfAnyBytesIsWrittenDown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	w.log.append("credits-acc", &credits.Debited{JobID: "a"}, &credits.Debited{JobID: "b"})
	w.reachTimers()
	due := w.wantDue(orphans, time.Minute, "a", "b")
	w.settleTimers(
		policy.Outcome{Timer: due[0], Err: errors.New("the model said \x00\xff"), Retry: time.Hour},
		policy.Outcome{Timer: due[1]})
	w.endLeases()
	if due := w.wantDue(orphans, time.Minute, due[0].Key); due[0].Attempt != 2 {
		t.Errorf("due: %+v, want the second attempt", due)
	}
}

// After an upgrade the old rows are shown until the new ones are built.
func TestNothingIsDueWhileAnOlderVersionOfTheTimersIsShown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	w.log.append("credits-acc", &credits.Debited{JobID: "lost"})
	w.reachTimers()
	w.exec("ALTER VIEW readmodel.timers RENAME TO new_timers")
	w.exec("CREATE VIEW readmodel.timers AS SELECT kind, key, due_at FROM readmodel.new_timers")
	w.wantDue(orphans, time.Minute)
	if next, any, err := w.timers().Next(w.ctx(), []string{orphans}); any || err != nil {
		t.Errorf("the next is due in %v, %v, %v", next, any, err)
	}
	w.exec("DROP VIEW readmodel.timers")
	w.exec("ALTER VIEW readmodel.new_timers RENAME TO timers")
	w.wantDue(orphans, time.Minute, "lost")
}

// An operator who skips the beginning of something skips all of it.
func TestALoopWhoseBeginningWasSkippedStopsNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	w.log.append("loop-l", &loop.Iterated{SessionID: "s", JobID: "j", At: noon}, &loop.Ended{SessionID: "s", At: noon})
	w.log.append("loop-m", &loop.Started{SessionID: "t", AccountID: "acc", At: noon})
	w.reach(w.sup)
	if _, err := w.reads.Loops.Session(w.ctx(), "acc", "t"); err != nil {
		t.Error(err)
	}
	if _, err := w.reads.Loops.Session(w.ctx(), "acc", "s"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("got %v, want no session", err)
	}
}

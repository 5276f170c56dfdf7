package projections_test

import (
	"reflect"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/loop"
	"humanqa/internal/testing/modeltest"
	"humanqa/projections/loops"
)

func TestALoopsSessionsAreShownAsTheyStand(t *testing.T) {
	t.Parallel()
	w := setup(t, loops.Projector)
	w.Run(w.Sup)
	at := func(minutes int) time.Time { return modeltest.Noon.Add(time.Duration(minutes) * time.Minute) }
	start := func(id string, minutes int) *loop.Started {
		return &loop.Started{SessionID: id, AccountID: "acc", ProjectID: "p1", Skill: "fix", MaxIterations: 10, At: at(minutes)}
	}
	step := func(id, jobID string, minutes int) *loop.Iterated {
		return &loop.Iterated{SessionID: id, JobID: jobID, Iteration: 1, Credits: 5, At: at(minutes)}
	}
	w.Log.Record("loop-l", start("s1", 0), step("s1", "j1", 0))
	w.Reach(w.Sup)
	// What follows comes in another batch, and the next session with it.
	w.Log.Record("loop-l",
		&loop.OutcomeRecorded{SessionID: "s1", JobID: "j1", Overall: "fail", ReportID: "r1", FailingKeys: []string{"mail", "pay"}, At: at(3)},
		step("s1", "j2", 5),
		&loop.OutcomeRecorded{SessionID: "s1", JobID: "j2", FailingKeys: []string{}, Refund: 5, At: at(6)},
		&loop.Ended{SessionID: "s1", FinalStatus: loop.StatusAbandoned, Iterations: 2, CreditsSpent: 5, FinalReportID: "r1", At: at(9)},
		start("s2", 9), step("s2", "j3", 9))
	w.Reach(w.Sup)

	over := at(9)
	for _, want := range []loops.Session{
		{
			ID: "s1", LoopID: "l", AccountID: "acc", ProjectID: "p1", Skill: "fix", Status: loop.StatusAbandoned,
			Iterations: 2, MaxIterations: 10, CreditsSpent: 5, FinalReportID: "r1", FailingKeys: []string{"mail", "pay"},
			JobIDs: []string{"j1", "j2"}, StartedAt: at(0), LastSeenAt: at(5), EndedAt: &over,
		},
		{
			ID: "s2", LoopID: "l", AccountID: "acc", ProjectID: "p1", Skill: "fix", Status: loop.StatusRunning,
			Iterations: 1, MaxIterations: 10, CreditsSpent: 5, FailingKeys: []string{},
			JobIDs: []string{"j3"}, StartedAt: at(9), LastSeenAt: at(9),
		},
	} {
		got, err := w.reads.Loops.Session(w.Ctx(), "acc", want.ID)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", want.ID, got, err, want)
		}
	}
	for accountID, id := range map[string]string{"other": "s1", "acc": "s9"} {
		if _, err := w.reads.Loops.Session(w.Ctx(), accountID, id); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("%s of %s: %v, want not found", id, accountID, err)
		}
	}
	list, err := w.reads.Loops.OfProject(w.Ctx(), "acc", "p1", 5)
	if err != nil || len(list) != 2 || list[0].ID != "s2" || list[1].ID != "s1" {
		t.Errorf("the project's: %+v, %v", list, err)
	}
	if s, found, err := w.reads.Loops.OfJob(w.Ctx(), "acc", "p1", "j2"); err != nil || !found || s.ID != "s1" {
		t.Errorf("the job's: %+v, %v, %v", s, found, err)
	}
	for _, c := range [][3]string{{"other", "p1", "j2"}, {"acc", "p2", "j2"}, {"acc", "p1", "j9"}} {
		if s, found, err := w.reads.Loops.OfJob(w.Ctx(), c[0], c[1], c[2]); found || err != nil {
			t.Errorf("%v: %+v, %v", c, s, err)
		}
	}
	w.Sound(w.Sup, "loops")
}

// An operator who skips the beginning of something skips all of it.
func TestALoopWhoseBeginningWasSkippedStopsNothing(t *testing.T) {
	t.Parallel()
	w := setup(t, loops.Projector)
	w.Run(w.Sup)
	w.Log.Record("loop-l", &loop.Iterated{SessionID: "s", JobID: "j", At: modeltest.Noon}, &loop.Ended{SessionID: "s", At: modeltest.Noon})
	w.Log.Record("loop-m", &loop.Started{SessionID: "t", AccountID: "acc", At: modeltest.Noon})
	w.Reach(w.Sup)
	if _, err := w.reads.Loops.Session(w.Ctx(), "acc", "t"); err != nil {
		t.Error(err)
	}
	if _, err := w.reads.Loops.Session(w.Ctx(), "acc", "s"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("got %v, want no session", err)
	}
}

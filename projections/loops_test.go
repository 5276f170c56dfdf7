package projections

import (
	"reflect"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/loop"
)

func TestALoopsSessionsAreShownAsTheyStand(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	start := func(id string, minutes int) *loop.Started {
		return &loop.Started{SessionID: id, AccountID: "acc", ProjectID: "p1", Skill: "fix", MaxIterations: 10, At: at(minutes)}
	}
	step := func(id, jobID string, minutes int) *loop.Iterated {
		return &loop.Iterated{SessionID: id, JobID: jobID, Iteration: 1, Credits: 5, At: at(minutes)}
	}
	w.log.append("loop-l", start("s1", 0), step("s1", "j1", 0))
	w.reach(w.sup)
	// What follows comes in another batch, and the next session with it.
	w.log.append("loop-l",
		&loop.Judged{SessionID: "s1", JobID: "j1", Overall: "fail", ReportID: "r1", FailingKeys: []string{"mail", "pay"}, At: at(3)},
		step("s1", "j2", 5),
		&loop.Judged{SessionID: "s1", JobID: "j2", FailingKeys: []string{}, Refund: 5, At: at(6)},
		&loop.Ended{SessionID: "s1", FinalStatus: loop.Abandoned, Iterations: 2, CreditsSpent: 5, FinalReportID: "r1", At: at(9)},
		start("s2", 9), step("s2", "j3", 9))
	w.reach(w.sup)

	over := at(9)
	for _, want := range []LoopSession{
		{
			ID: "s1", LoopID: "l", AccountID: "acc", ProjectID: "p1", Skill: "fix", Status: loop.Abandoned,
			Iterations: 2, MaxIterations: 10, CreditsSpent: 5, FinalReportID: "r1", FailingKeys: []string{"mail", "pay"},
			JobIDs: []string{"j1", "j2"}, StartedAt: at(0), LastSeenAt: at(5), EndedAt: &over,
		},
		{
			ID: "s2", LoopID: "l", AccountID: "acc", ProjectID: "p1", Skill: "fix", Status: loop.Running,
			Iterations: 1, MaxIterations: 10, CreditsSpent: 5, FailingKeys: []string{},
			JobIDs: []string{"j3"}, StartedAt: at(9), LastSeenAt: at(9),
		},
	} {
		got, err := w.reads.Loops.Session(w.ctx(), "acc", want.ID)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", want.ID, got, err, want)
		}
	}
	for accountID, id := range map[string]string{"other": "s1", "acc": "s9"} {
		if _, err := w.reads.Loops.Session(w.ctx(), accountID, id); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("%s of %s: %v, want not found", id, accountID, err)
		}
	}
	w.sound(w.sup, "loops")
}

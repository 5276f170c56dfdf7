package streams_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command/streams"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/domain/repository"
	"humanqa/domain/session"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

var at = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// Commands change the repositories' states in place. A caller may keep what it got.
func TestAStateThatWasReadStaysAsItWasWhileCommandsFollow(t *testing.T) {
	t.Parallel()
	s := streams.New(logtest.New(), time.Now)
	id := uuid.NewString()
	item := func(n int) job.Item { return job.Item{ID: fmt.Sprint("i", n), Description: "Pay"} }
	stays(t, s.Jobs, domain.JobStream(id), job.Evolve, func() (job.State, error) { return s.Job(t.Context(), id) },
		&job.Created{Items: []job.Item{item(1)}, CreatedAt: at},
		&job.Claimed{CheckerID: "ann", Token: 1, At: at},
		&job.ItemChecked{ItemID: "i1", Status: job.ItemPass, At: at},
		&job.ItemChecked{ItemID: "i1", Status: job.ItemFail, At: at},
		&job.FindingAdded{Item: item(2), Status: job.ItemFail, At: at},
		&job.FindingAdded{Item: item(3), Status: job.ItemFail, At: at},
		&job.FindingEdited{Item: item(3), Status: job.ItemPass, At: at},
		&job.FindingWithdrawn{FindingID: "i2", At: at},
		&job.QuestionAsked{QuestionID: "q1", Token: 1, Kind: "other", Text: "How?", At: at},
		&job.AnswerGiven{QuestionID: "q1", Text: "So.", At: at},
		&job.MomentMarked{Moment: job.Moment{ID: "m1", At: at}, Token: 1},
		&job.MomentMarked{Moment: job.Moment{ID: "m2", At: at}, Token: 1},
		&job.RecordingAttached{Recording: job.Recording{ID: "r1"}, At: at},
		&job.RecordingAttached{Recording: job.Recording{ID: "r2"}, At: at},
		&job.EvidenceExpired{Pieces: []job.Piece{{ID: "r1"}}, At: at},
		&job.EvidenceExpired{Pieces: []job.Piece{{ID: "r2"}}, At: at},
		&job.Completed{ReportID: "report", At: at},
		&job.AIReportReady{},
		&job.Erased{At: at},
	)
	stays(t, s.Accounts, domain.AccountStream(id), account.Evolve, func() (account.State, error) { return s.Account(t.Context(), id) },
		&account.Created{Name: "Acme"},
		&account.KeyIssued{KeyID: "k1"},
		&account.KeyIssued{KeyID: "k2"},
		&account.KeyRevoked{KeyID: "k1"},
		&account.ClockAdvanced{AdvanceID: "a1", OffsetSeconds: 1},
		&account.ClockAdvanced{AdvanceID: "a2", OffsetSeconds: 2},
	)
	stays(t, s.Sessions, domain.SessionStream(id), session.Evolve, func() (session.State, error) { return s.Session(t.Context(), id) },
		&session.Created{Submission: session.Submission{Slots: []session.Slot{{Slot: 1}, {Slot: 2}}}},
		&session.SlotReady{Slot: 1, CheckerID: "ann", Token: 1},
		&session.SlotReady{Slot: 2, CheckerID: "bob", Token: 1},
		&session.SlotLeft{Slot: 1, CheckerID: "ann"},
		&session.Marked{ID: "m1", At: at},
		&session.Marked{ID: "m2", At: at},
	)
	stays(t, s.Projects, domain.ProjectStream(id), project.Evolve, func() (project.State, error) { return s.Project(t.Context(), id) },
		&project.Created{AccountID: "acme", At: at},
		&project.SecretSet{SecretID: "s1", Rotated: true, At: at},
		&project.SecretSet{SecretID: "s2", Rotated: true, At: at},
		&project.RegressionsPrepared{Items: []project.Prepared{{ID: "f1"}, {ID: "f2"}}, At: at},
		&project.RegressionsAttached{Items: []string{"f1"}, JobIDs: []string{"j1"}, At: at},
		&project.RegressionsAttached{Items: []string{"f2"}, JobIDs: []string{"j2"}, Forgotten: []string{"f1"}, At: at},
		&project.DeployReceived{JobID: "d1", At: at},
		&project.DeployReceived{JobID: "d2", At: at},
	)
}

// stays reads the state behind each event. In the end, each is still what the events up to
// it fold into.
func stays[S any](
	t *testing.T, of *repository.Repository[S], stream string, evolve func(S, domain.Event) S, read func() (S, error), events ...domain.Event,
) {
	t.Helper()
	var kept []S
	for _, e := range events {
		_, err := repository.Decide(t.Context(), of, domain.Cause{}, stream, func(S) ([]domain.Event, error) { return []domain.Event{e}, nil })
		must.NoError(t, err)
		state, err := read()
		must.NoError(t, err)
		kept = append(kept, state)
	}
	for i, state := range kept {
		var want S
		for _, e := range events[:i+1] {
			want = evolve(want, e)
		}
		if !reflect.DeepEqual(state, want) {
			t.Errorf("after %s there was\n%+v, and later it is\n%+v", events[i].EventType(), want, state)
		}
	}
}

package projections_test

import (
	"slices"
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/commitstatuses"
)

// The newest word of one of the jobs holds for all, and jobs that have ended give no way.
func TestJobsWithOneVerdictShowOneStatus(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t, commitstatuses.Projector)
	w.Run(w.Sup)
	at := job.CommitStatus{Provider: job.GitHub, Repository: "acme/shop", Commit: "c", Context: "Human QA", Ref: "refs/pull/7/merge", FailOn: "minor"}
	ask := &job.CommitStatusRequested{CommitStatus: at, Jobs: []string{"a", "b"}}
	for _, id := range ask.Jobs {
		w.Log.Record(domain.JobStream(id), modeltest.Created("acc"), ask)
	}
	w.Log.Record(domain.JobStream("plain"), modeltest.Created("acc"), &job.Cancelled{})
	w.Reach(w.Sup)
	reads := commitstatuses.NewReads(w.DB)
	asked := func(s commitstatuses.Status) job.CommitStatus {
		return job.CommitStatus{Provider: s.Provider, Repository: s.Repository, Commit: s.Commit, Context: s.Context, Ref: s.Ref, FailOn: s.FailOn}
	}
	place := func(account string) []string {
		ids, err := reads.SamePlace(w.Ctx(), account, at)
		must.NoError(t, err)
		return ids
	}
	account := w.Log.Stream(domain.JobStream("a"))[1].Meta.AccountID
	if got := place(account); !slices.Equal(got, []string{"a", "b"}) || len(place("other")) != 0 {
		t.Errorf("at the place: %v", got)
	}
	w.Log.Record(domain.JobStream("a"), &job.CommitStatusSet{State: job.CommitPending, At: *modeltest.At(1)})
	w.Log.Record(domain.JobStream("b"), &job.Cancelled{CommitStatus: true})
	w.Log.Record(domain.JobStream("a"), &job.CommitStatusSet{State: job.CommitError, At: *modeltest.At(2)})
	w.Reach(w.Sup)
	for _, id := range ask.Jobs {
		s, found, err := reads.OfJob(w.Ctx(), account, id)
		must.NoError(t, err)
		if !found || s.State != job.CommitError || asked(s) != at {
			t.Errorf("%s: %+v", id, s)
		}
	}
	if _, found, _ := reads.OfJob(w.Ctx(), "other", "a"); found {
		t.Error("another account sees it")
	}
	if _, found, _ := reads.OfJob(w.Ctx(), account, "plain"); found {
		t.Error("a job without one has one")
	}
	if got := place(account); !slices.Equal(got, []string{"a"}) {
		t.Errorf("at the place: %v", got)
	}
	then := func(events int) (commitstatuses.Status, bool) { // both streams, up to so many events of the first
		past := commitstatuses.NewPast("b")
		for _, r := range w.Log.Stream(domain.JobStream("b")) {
			past.Fold(r)
		}
		if others := past.Others(); !slices.Equal(others, []string{"a"}) {
			t.Errorf("others: %v", others)
		}
		for _, r := range w.Log.Stream(domain.JobStream("a"))[:events] {
			past.Fold(r)
		}
		return past.Status()
	}
	for events, state := range map[int]job.CommitState{1: "", 2: "", 3: job.CommitPending, 4: job.CommitError} {
		if s, found := then(events); !found || s.State != state || asked(s) != at || s.Statement != "a" {
			t.Errorf("after %d events: %+v", events, s)
		}
	}
	if _, found := commitstatuses.NewPast("plain").Status(); found {
		t.Error("a job without one had one")
	}
	w.Sound(w.Sup, "commit_statuses")
}

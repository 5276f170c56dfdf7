package job_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
)

func TestTheVerdictAtACommitIsThatOfAllItsJobs(t *testing.T) {
	t.Parallel()
	passed := job.CommitPart{Status: job.StatusCompleted, OverallStatus: "pass"}
	failed := job.CommitPart{Status: job.StatusCompleted, OverallStatus: "fail", Counted: 2}
	for _, c := range []struct {
		parts []job.CommitPart
		state job.CommitState
		says  string
	}{
		{[]job.CommitPart{passed, {Status: job.StatusClaimed}}, job.CommitPending, "A person tests the app."},
		{[]job.CommitPart{passed, failed, {Status: job.StatusFailed}}, job.CommitFailure, "2 failures in 3 tests."},
		{[]job.CommitPart{passed, {Status: job.StatusFailed}}, job.CommitError, "1 test of 2 ended without a verdict."},
		{[]job.CommitPart{{Status: job.StatusCompleted, OverallStatus: "inconclusive"}}, job.CommitError, "1 test of 1 ended without a verdict."},
		{[]job.CommitPart{{Status: job.StatusCancelled, CancelReason: job.CancelClient}}, job.CommitError, "1 test of 1 ended without a verdict."},
		{[]job.CommitPart{passed, {Status: job.StatusCancelled, CancelReason: job.CancelSuperseded}}, job.CommitError, "A newer commit took the place of this one."},
		{[]job.CommitPart{passed, {Status: job.StatusVoided}}, job.CommitSuccess, "1 test passed."},
		{[]job.CommitPart{{Status: job.StatusCompleted, OverallStatus: "fail"}}, job.CommitSuccess, "1 test passed."}, // none counts
	} {
		if state, says := job.CommitVerdict(c.parts); state != c.state || says != c.says {
			t.Errorf("%+v: %s %q, want %s %q", c.parts, state, says, c.state, c.says)
		}
	}
}

func TestOnlyFailuresAtTheThresholdCountAtACommit(t *testing.T) {
	t.Parallel()
	report := &job.Completed{OverallStatus: "fail", Items: []job.ReportItem{
		{Item: job.Item{Severity: job.Critical}, Status: job.ItemPass}, {Item: job.Item{Severity: job.Major}, Status: job.ItemFail},
		{Item: job.Item{Severity: job.Minor}, Status: job.ItemFail},
	}}
	for failOn, want := range map[string]int{"critical": 0, "major": 1, "minor": 2, job.StatusFailNever: 0} {
		s := given(t, created(), &job.CommitStatusRequested{CommitStatus: job.CommitStatus{FailOn: failOn}}, report).State()
		if got := s.CommitPart().Counted; got != want {
			t.Errorf("%s: %d failures count, want %d", failOn, got, want)
		}
	}
}

func TestAVerdictAtACommitIsToldOnce(t *testing.T) {
	t.Parallel()
	tell := func(state job.CommitState) decide {
		return func(s job.State) ([]domain.Event, error) { return job.DecideTellCommit(s, state, minute(9)) }
	}
	abandon := func(s job.State) ([]domain.Event, error) { return job.DecideAbandonCommit(s, "no", minute(9)) }
	asked := []domain.Event{created(), &job.CommitStatusRequested{Jobs: []string{"j"}}}
	with := func(more ...domain.Event) []domain.Event { return append(append([]domain.Event{}, asked...), more...) }
	told := func(state job.CommitState) domain.Event { return &job.CommitStatusSet{State: state, At: minute(9)} }
	given(t, created()).When(tell(job.CommitPending)).Nothing()
	given(t, asked...).When(tell(job.CommitPending)).Events(told(job.CommitPending))
	given(t, with(told(job.CommitPending))...).When(tell(job.CommitPending)).Nothing()
	given(t, with(told(job.CommitPending))...).When(tell(job.CommitSuccess)).Events(told(job.CommitSuccess))
	given(t, with(told(job.CommitSuccess))...).When(tell(job.CommitPending)).Nothing() // a late one
	given(t, with(told(job.CommitSuccess))...).When(abandon).Nothing()
	given(t, asked...).When(abandon).Events(&job.CommitStatusAbandoned{Reason: "no", At: minute(9)})
	given(t, with(&job.CommitStatusAbandoned{Reason: "no"})...).When(tell(job.CommitSuccess)).Nothing()
}

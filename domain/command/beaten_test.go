package command_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/project"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/must"
)

// beaten is the log of a process that another one is faster than: it runs first
// before each append.
type beaten struct {
	domain.Log
	first func()
}

func (l beaten) Append(ctx context.Context, stream string, expected domain.ExpectedRevision, events []domain.NewEvent) (domain.AppendResult, error) {
	l.first()
	return l.Log.Append(ctx, stream, expected, events)
}

// rivals has twenty callers of one process and twenty of another call at once.
// Each append of the first process comes behind a whole command of the second, as
// long as there is one left. It gives the answers, and how many calls succeeded;
// other errors than those of the kind fail the test.
func (b hostedBundle) rivals(t *testing.T, refused domain.Kind, call func(s *command.Service, i int) (string, error)) (answers map[string]int, good int) {
	t.Helper()
	const each = 20
	var (
		mu   sync.Mutex
		next atomic.Int64
	)
	answers = map[string]int{}
	run := func(s *command.Service, i int) {
		answer, err := call(s, i)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			answers[answer]++
			good++
		case refused == 0 || !domain.IsKind(err, refused):
			t.Errorf("call %d: %v", i, err)
		}
	}
	fast := b.process()
	slow := command.New(command.Deps{
		Log: beaten{b.log, func() {
			if i := next.Add(1) - 1; i < each {
				run(fast, each+int(i))
			}
		}},
		Sealer: openSealer{}, AI: commandtest.AI{}, Reads: b.reads, Now: b.clock.now, ClaimsPerChecker: 1,
	})
	together(each, func(i int) error { run(slow, i); return nil }, nil)
	for i := next.Add(1) - 1; i < each; i = next.Add(1) - 1 {
		run(fast, each+int(i))
	}
	fast.Drain()
	slow.Drain()
	return answers, good
}

// Nobody is refused because another process wrote first.
func TestTwentyCallersAtOnceInEachOfTwoProcesses(t *testing.T) {
	t.Parallel()
	const all = 40
	wants := func(t *testing.T, b hostedBundle, answers map[string]int, different, jobs int) {
		t.Helper()
		if made := b.log.Count("job.created"); len(answers) != different || made != jobs || int(b.ledger().Used()) != 5*jobs {
			t.Errorf("%d different answers, %d jobs, %d credits used: want %d and %d", len(answers), made, b.ledger().Used(), different, jobs)
		}
	}
	t.Run("a job each", func(t *testing.T) {
		t.Parallel()
		b := setupHosted(t, 1000)
		answers, _ := b.rivals(t, 0, func(s *command.Service, _ int) (string, error) {
			j, err := b.submitTo(t.Context(), s, b.cause())
			return j.JobID, err
		})
		wants(t, b, answers, all, all)
	})
	t.Run("one job under one command", func(t *testing.T) {
		t.Parallel()
		b := setupHosted(t, 1000)
		cause := b.cause()
		answers, _ := b.rivals(t, 0, func(s *command.Service, _ int) (string, error) {
			j, err := b.submitTo(t.Context(), s, cause)
			return j.JobID, err
		})
		wants(t, b, answers, 1, 1)
	})
	t.Run("first tests of one app", func(t *testing.T) {
		t.Parallel()
		b := setupHosted(t, 1000)
		var projects sync.Map
		answers, _ := b.rivals(t, 0, func(s *command.Service, _ int) (string, error) {
			j, err := s.TestHosted(t.Context(), b.cause(), aTest())
			projects.Store(j.ProjectID, true)
			return j.JobID, err
		})
		wants(t, b, answers, all, all)
		found := 0
		projects.Range(func(any, any) bool { found++; return true })
		if found != 1 || b.log.Count("project.created") != 1 {
			t.Errorf("%d projects were answered, %d made", found, b.log.Count("project.created"))
		}
	})
	t.Run("fixes for the next test", func(t *testing.T) {
		t.Parallel()
		b := setupHosted(t, 1000)
		p := b.project(t)
		_, good := b.rivals(t, 0, func(s *command.Service, i int) (string, error) {
			_, err := s.PrepareNext(t.Context(), b.cause(), p, []command.PreparedFix{{Description: "fix " + string(rune('A'+i))}})
			return "", err
		})
		fixes := map[string]bool{}
		for _, e := range b.log.Stream(domain.ProjectStream(p)) {
			if prepared, ok := e.Event.(*project.RegressionsPrepared); ok {
				fixes[prepared.Items[0].Description] = true
			}
		}
		if good != all || len(fixes) != all {
			t.Errorf("%d were answered, %d are prepared", good, len(fixes))
		}
	})
	t.Run("a retest under one command", func(t *testing.T) {
		t.Parallel()
		b := setupHosted(t, 1000)
		of, cause := b.submitted(t), b.cause()
		answers, _ := b.rivals(t, 0, func(s *command.Service, _ int) (string, error) {
			j, err := s.Retest(t.Context(), cause, of)
			return j.JobID, err
		})
		wants(t, b, answers, 1, 2)
	})
	t.Run("deploys with one key", func(t *testing.T) {
		t.Parallel()
		b := setupHosted(t, 1000)
		p := b.project(t)
		answers, _ := b.rivals(t, 0, func(s *command.Service, _ int) (string, error) {
			j, err := s.Deploy(t.Context(), b.cause(), p, aDeploy("commit:a"))
			return j.JobID, err
		})
		wants(t, b, answers, 1, 1)
	})
	t.Run("claims of one job", func(t *testing.T) {
		t.Parallel()
		b := setupHosted(t, 1000)
		id := b.submitted(t)
		checkers := make([]string, all)
		for i := range checkers {
			checkers[i] = b.newChecker(t)
		}
		_, good := b.rivals(t, domain.KindConflict, func(s *command.Service, i int) (string, error) {
			_, err := s.ClaimJob(t.Context(), b.checkerCause(checkers[i]), checkers[i], id)
			return checkers[i], err
		})
		if good != 1 || b.log.Count("job.claimed") != 1 {
			t.Errorf("%d claims were answered, %d made", good, b.log.Count("job.claimed"))
		}
	})
	t.Run("completions under one claim", func(t *testing.T) {
		t.Parallel()
		b := setupHosted(t, 1000)
		ann, id := b.newChecker(t), b.submitted(t)
		c, err := b.ClaimJob(t.Context(), b.checkerCause(ann), ann, id)
		must.NoError(t, err)
		claim := command.Claim{CheckerID: ann, JobID: id, Token: c.Token}
		_, _, err = b.CheckItem(t.Context(), b.checkerCause(ann), claim, command.CheckItem{ItemID: "item-1", Status: "pass"})
		must.NoError(t, err)
		answers, good := b.rivals(t, 0, func(s *command.Service, _ int) (string, error) {
			r, _, err := s.CompleteJob(t.Context(), b.checkerCause(ann), claim, command.CompleteJob{Summary: "done"})
			return r.ReportID, err
		})
		if good != all || len(answers) != 1 || b.log.Count("job.completed") != 1 {
			t.Errorf("%d completions were answered with %d reports, %d made", good, len(answers), b.log.Count("job.completed"))
		}
	})
}

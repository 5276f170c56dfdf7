package command_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

func aDeploy(keys ...string) command.Deploy {
	return command.Deploy{Test: command.HostedTest{Submission: job.Submission{URL: "https://shop.example/", Branch: "main"}, Host: "shop.example"}, Keys: keys}
}

func (b hostedBundle) project(t *testing.T) string {
	t.Helper()
	p, err := b.CreateProject(t.Context(), b.cause(), command.CreateProject{Name: "Shop"})
	must.NoError(t, err)
	return p.ProjectID
}

func (b hostedBundle) deploy(t *testing.T, projectID string, in command.Deploy) command.HostedJob {
	t.Helper()
	j, err := b.Deploy(t.Context(), b.cause(), projectID, in)
	must.NoError(t, err)
	return j
}

func TestADeployIsTestedOnceForEachOfItsKeysWhileTheJobLives(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	p := b.project(t)
	b.prepare(t, p, "login")
	first := b.deploy(t, p, aDeploy("commit:a", "key:x"))
	if first.Deduplicated || first.CreditsDeducted != 5 || first.RegressionItems != 1 || first.ProjectID != p {
		t.Errorf("the first deploy: %+v", first)
	}
	if c := b.created(t, first.JobID); c.Source != "deploy" || c.Branch != "main" {
		t.Errorf("the job is %+v", c)
	}
	for _, keys := range [][]string{{"commit:a"}, {"key:x"}, {"commit:b", "key:x"}} {
		again := b.deploy(t, p, aDeploy(keys...))
		if !again.Deduplicated || again.JobID != first.JobID || again.CreditsDeducted != 0 || again.CreditsRemaining != 95 || again.RegressionItems != 1 {
			t.Errorf("under %v: %+v", keys, again)
		}
	}
	for _, keys := range [][]string{{"commit:c"}, {"key:commit:a"}, nil, nil} {
		if other := b.deploy(t, p, aDeploy(keys...)); other.Deduplicated || other.JobID == first.JobID {
			t.Errorf("under %v: %+v", keys, other)
		}
	}
	t.Run("and again once it has ended", func(t *testing.T) {
		_, err := b.CancelJob(t.Context(), b.cause(), first.JobID, job.CancelClient)
		must.NoError(t, err)
		next := b.deploy(t, p, aDeploy("commit:a"))
		if next.Deduplicated || next.JobID == first.JobID {
			t.Errorf("%+v", next)
		}
		if after := b.deploy(t, p, aDeploy("commit:a")); after.JobID != next.JobID {
			t.Errorf("%+v", after)
		}
	})
	t.Run("another project's deploys are its own", func(t *testing.T) {
		if other := b.deploy(t, b.project(t), aDeploy("key:x")); other.Deduplicated {
			t.Errorf("%+v", other)
		}
	})
}

func TestTwentyDeploysAtOnceWithOneKeyMakeOneJob(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 1000)
	p := b.project(t)
	processes := []*command.Service{b.Service, b.process()}
	var mu sync.Mutex
	jobs := map[string]int{}
	fresh := 0
	together(20, func(i int) error {
		j, err := processes[i%2].Deploy(t.Context(), b.cause(), p, aDeploy("commit:a"))
		mu.Lock()
		defer mu.Unlock()
		jobs[j.JobID]++
		if !j.Deduplicated {
			fresh++
		}
		return err
	}, func(err error) { t.Error(err) })
	if used := b.ledger().Used(); len(jobs) != 1 || fresh != 1 || used != 5 {
		t.Errorf("jobs %v, %d of them fresh, %d credits used", jobs, fresh, used)
	}
}

// between runs something once, right before the first append to a stream of the
// category: after whoever appends has looked, before they write.
func (b bundle) between(category string, do func()) {
	var done atomic.Bool // what do itself appends comes here, too
	b.log.Before(func(stream string) {
		if strings.HasPrefix(stream, category) && !done.Swap(true) {
			do()
		}
	})
}

func TestADeployThatLooksBeforeAnotherOneWritesMakesTheSameJob(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	p := b.project(t)
	other := b.process()
	var first command.HostedJob
	b.between(domain.ProjectStreams, func() {
		var err error
		if first, err = other.Deploy(t.Context(), b.cause(), p, aDeploy("commit:a")); err != nil {
			t.Error(err)
		}
	})
	second := b.deploy(t, p, aDeploy("commit:a"))
	if !second.Deduplicated || second.JobID != first.JobID || b.ledger().Used() != 5 {
		t.Errorf("one made %+v, the other %+v", first, second)
	}
}

// The other one has written down which job it makes, and is not done.
func TestADeployFinishesTheJobOfOneThatIsUnderWay(t *testing.T) {
	t.Parallel()
	for name, urgent := range map[string]bool{"at the same price": false, "unless it was paid for at another price": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupHosted(t, 100)
			p := b.project(t)
			other := b.process()
			b.between(domain.JobStreams, func() {
				in := aDeploy("commit:a")
				in.Test.Urgent = urgent
				j, err := other.Deploy(t.Context(), b.cause(), p, in)
				switch {
				case urgent:
					wantKind(t, err, domain.KindConflict)
				case err != nil || !j.Deduplicated || j.CreditsDeducted != 0:
					t.Errorf("%+v, %v", j, err)
				}
			})
			if j := b.deploy(t, p, aDeploy("commit:a")); j.Deduplicated || b.streams(domain.JobStreams) != 1 || b.ledger().Used() != 5 {
				t.Errorf("%+v, %d credits used", j, b.ledger().Used())
			}
		})
	}
}

func TestARepeatedDeployNeedsNoCredits(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 5)
	p := b.project(t)
	first := b.deploy(t, p, aDeploy("commit:a"))
	if again := b.deploy(t, p, aDeploy("commit:a")); !again.Deduplicated || again.JobID != first.JobID {
		t.Errorf("%+v", again)
	}
}

func TestADeployThatFailsAnywhereIsFinishedByTheNextOne(t *testing.T) {
	t.Parallel()
	for _, category := range []string{domain.ProjectStreams, domain.CreditsStreams, domain.JobStreams} {
		for _, persist := range []bool{false, true} {
			t.Run(category+map[bool]string{true: "persisted", false: "lost"}[persist], func(t *testing.T) {
				t.Parallel()
				b := setupHosted(t, 100)
				p := b.project(t)
				b.prepare(t, p, "login")
				b.log.Fail(logtest.To(category), persist, errCut)
				_, err := b.Deploy(t.Context(), b.cause(), p, aDeploy("commit:a"))
				wantKind(t, err, domain.KindUnavailable)
				b.log.Heal()
				b.Service = b.process()
				next := b.deploy(t, p, aDeploy("commit:a")) // a command of its own
				if used := b.ledger().Used(); used != 5 || b.streams(domain.JobStreams) != 1 || next.RegressionItems != 1 {
					t.Errorf("%d credits used, %d jobs, %+v", used, b.streams(domain.JobStreams), next)
				}
			})
		}
	}
}

func TestADeployOfAProjectThatIsNotTheAccountsIsNotFound(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	p := b.project(t)
	other := b.cause()
	other.AccountID = "somebody-else"
	_, err := b.Deploy(t.Context(), other, p, aDeploy())
	wantKind(t, err, domain.KindNotFound)
}

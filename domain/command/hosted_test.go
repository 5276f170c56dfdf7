package command_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

func TestTheFirstHostedTestOfAHostOpensItsProject(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	in := aTest()
	in.AccessInstructions, in.HostedApp, in.Target = "user ann, password sesame", true, job.Target{Device: "Pixel 9"}
	j := b.test(t, in)
	wantTypes(t, b.log, domain.HostStream(b.account, "shop.example"), "host.linked")
	wantTypes(t, b.log, domain.ProjectStream(j.ProjectID), "project.created")
	if j.Type != job.FirstImpression || j.TypeEcho != "First Impression" || j.CreditsDeducted != 5 || j.CreditsRemaining != 95 ||
		j.Status != job.StatusPending || j.EstimatedMinutes != 60 || j.ChecklistItemCount != 1 || j.RegressionItems != 0 {
		t.Errorf("the answer is %+v", j)
	}
	c := b.created(t, j.JobID)
	if c.Title != "Hosted test of shop.example" || c.Description == "" || !c.HostedApp || c.Source != "hosted" || c.Target.Device != "Pixel 9" {
		t.Errorf("the job is %+v", c)
	}
	if !strings.HasPrefix(c.AccessInstructions, "sealed:"+b.account+":"+domain.JobStream(j.JobID)) {
		t.Errorf("the access instructions are not sealed: %q", c.AccessInstructions)
	}
	asked := aTest()
	asked.Feature = " Pay with a voucher,\nthen return  the order. "
	if c := b.created(t, b.test(t, asked).JobID); c.Title != "Pay with a voucher, then return the order." {
		t.Errorf("the title is %q, not what was asked", c.Title)
	}
	again := b.test(t, aTest())
	if again.ProjectID != j.ProjectID {
		t.Errorf("the second test went to project %s, the first to %s", again.ProjectID, j.ProjectID)
	}
}

func TestTwentyParallelHostedTestsOnANewHostMakeOneProject(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 1000)
	processes := []*command.Service{b.Service, b.process()}
	var mu sync.Mutex
	projects := map[string]bool{}
	good := together(20, func(i int) error {
		j, err := processes[i%2].TestHosted(t.Context(), b.cause(), aTest())
		mu.Lock()
		defer mu.Unlock()
		projects[j.ProjectID] = true
		return err
	}, func(err error) { t.Error(err) })
	if good != 20 || len(projects) != 1 || b.streams(domain.ProjectStreams) != 1 || b.streams(domain.JobStreams) != 20 {
		t.Errorf("%d tests went to %v; the log has %d projects and %d jobs",
			good, projects, b.streams(domain.ProjectStreams), b.streams(domain.JobStreams))
	}
}

func TestAHostedTestFindsTheProjectOfTheHost(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	minutes := 15
	p, err := b.CreateProject(t.Context(), b.cause(), command.CreateProject{Name: "Shop", DefaultSLAMinutes: &minutes})
	must.NoError(t, err)
	b.reads.byHost["shop.example"] = p.ProjectID
	j := b.test(t, aTest())
	if j.ProjectID != p.ProjectID || j.EstimatedMinutes != 15 {
		t.Errorf("the test is %+v, want project %s and its SLA", j, p.ProjectID)
	}
	t.Run("and keeps it, whatever the read models say later", func(t *testing.T) {
		b.reads.byHost["shop.example"] = "another"
		if again := b.test(t, aTest()); again.ProjectID != p.ProjectID {
			t.Errorf("the test went to %s", again.ProjectID)
		}
	})
	t.Run("unless the caller names one", func(t *testing.T) {
		own, err := b.CreateProject(t.Context(), b.cause(), command.CreateProject{Name: "Own"})
		must.NoError(t, err)
		in := aTest()
		in.ProjectID = own.ProjectID
		if named := b.test(t, in); named.ProjectID != own.ProjectID {
			t.Errorf("the test went to %s", named.ProjectID)
		}
	})
	t.Run("which is not found where it is another account's", func(t *testing.T) {
		in, other := aTest(), b.cause()
		in.ProjectID, other.AccountID = p.ProjectID, "somebody-else"
		_, err := b.TestHosted(t.Context(), other, in)
		wantKind(t, err, domain.KindNotFound)
	})
}

// The read models may nominate one project now and none a moment ago: the first
// link stands, and whoever comes second goes there too.
func TestTwoFirstHostedTestsThatReadDifferentProjectsGoToOne(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	own := b.project(t)
	other := b.process()
	var first command.HostedJob
	b.between(domain.HostStreams, func() {
		b.reads.mu.Lock()
		b.reads.byHost["shop.example"] = own
		b.reads.mu.Unlock()
		var err error
		if first, err = other.TestHosted(t.Context(), b.cause(), aTest()); err != nil {
			t.Error(err)
		}
	})
	if second := b.test(t, aTest()); first.ProjectID != own || second.ProjectID != own || b.streams(domain.ProjectStreams) != 1 {
		t.Errorf("one went to %s, the other to %s", first.ProjectID, second.ProjectID)
	}
}

// A secret that comes in while this test is being looked at.
func TestASecretThatAnotherTestSetsMeanwhileIsAConflictWithoutACharge(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	other := b.process()
	with := func(secret string) command.HostedTest {
		in := aTest()
		in.Webhook = command.Webhook{URL: "https://hooks.example/" + secret[:1], Secret: strings.Repeat(secret, 32)}
		return in
	}
	b.between(domain.ProjectStreams, func() {
		if _, err := other.TestHosted(t.Context(), b.cause(), with("s")); err != nil {
			t.Error(err)
		}
	})
	_, err := b.TestHosted(t.Context(), b.cause(), with("t"))
	wantKind(t, err, domain.KindConflict)
	if used := b.ledger().Used(); used != 5 || b.streams(domain.JobStreams) != 1 {
		t.Errorf("%d credits used, %d jobs", used, b.streams(domain.JobStreams))
	}
}

func TestARefusedHostedTestWritesNothing(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 7)
	in := aTest()
	in.Urgent, in.Webhook = true, command.Webhook{URL: "https://hooks.example/in"}
	before := len(b.log.All())
	_, err := b.TestHosted(t.Context(), b.cause(), in)
	wantKind(t, err, domain.KindPayment)
	var refusal *domain.Error
	if errors.As(err, &refusal) && fmt.Sprint(refusal.Extras) != "map[creditsAvailable:7 creditsRequired:10 creditsShort:3]" {
		t.Errorf("the extras are %v", refusal.Extras)
	}
	b.reads.err = errors.New("the read models are away")
	_, err = b.TestHosted(t.Context(), b.cause(), aTest())
	wantKind(t, err, domain.KindUnavailable)
	if after := len(b.log.All()); after != before {
		t.Errorf("%d events were written", after-before)
	}
}

func TestTwoFirstHostedTestsWithTwoSecretsAreOneTestAndOneConflict(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	processes := []*command.Service{b.Service, b.process()}
	good := together(2, func(i int) error {
		in := aTest()
		in.Webhook = command.Webhook{URL: "https://hooks.example/in", Secret: strings.Repeat(fmt.Sprint(i), 32)}
		_, err := processes[i].TestHosted(t.Context(), b.cause(), in)
		return err
	}, func(err error) {
		var e *domain.Error
		if !errors.As(err, &e) || e.Code != domain.CodeSecretConflict {
			t.Error(err)
		}
	})
	if used := b.ledger().Used(); good != 1 || used != 5 || b.streams(domain.JobStreams) != 1 {
		t.Errorf("%d tests, %d credits used, %d jobs", good, used, b.streams(domain.JobStreams))
	}
}

func TestASecretConflictComesBeforeTheWantOfCreditsAndChangesNothing(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 5)
	in := aTest()
	in.Webhook = command.Webhook{URL: "https://hooks.example/in", Secret: strings.Repeat("s", 32)}
	j := b.test(t, in)
	secret, err := b.WebhookSecret(t.Context(), j.ProjectID)
	if err != nil || secret != in.Webhook.Secret {
		t.Errorf("%q signs, %v", secret, err)
	}
	before := len(b.log.All())
	in.Webhook = command.Webhook{URL: "https://hooks.example/other", Secret: strings.Repeat("t", 32), Events: &[]string{}}
	_, err = b.TestHosted(t.Context(), b.cause(), in)
	wantKind(t, err, domain.KindConflict)
	if after := len(b.log.All()); after != before {
		t.Errorf("%d events were written", after-before)
	}
}

// Each append of a hosted test fails once persisted and once not. Whatever
// happened, the same command sent again ends in one project, one job, one
// charge, with the fixes in it.
func TestAHostedTestThatFailsAnywhereCanBeRepeated(t *testing.T) {
	t.Parallel()
	for _, category := range []string{domain.HostStreams, domain.ProjectStreams, domain.CreditsStreams, domain.JobStreams} {
		for _, persist := range []bool{false, true} {
			t.Run(category+map[bool]string{true: "persisted", false: "lost"}[persist], func(t *testing.T) {
				t.Parallel()
				b := setupHosted(t, 100)
				in := aTest()
				in.Webhook.URL = "https://hooks.example/in"
				b.log.Fail(logtest.To(category), persist, errCut)
				c := b.cause()
				_, err := b.TestHosted(t.Context(), c, in)
				wantKind(t, err, domain.KindUnavailable)
				b.log.Heal()
				b.Service = b.process()
				first, err := b.TestHosted(t.Context(), c, in)
				must.NoError(t, err)
				again, err := b.TestHosted(t.Context(), c, in)
				first.Position, again.Position = domain.Position{}, domain.Position{}
				if err != nil || again != first {
					t.Errorf("the repeat answers %+v, %v; the first %+v", again, err, first)
				}
				wantTypes(t, b.log, domain.ProjectStream(first.ProjectID),
					"project.created", "project.webhook_secret_set", "project.webhook_set")
				if used := b.ledger().Used(); used != 5 || b.streams(domain.JobStreams) != 1 || b.streams(domain.ProjectStreams) != 1 {
					t.Errorf("%d credits used, %d jobs", used, b.streams(domain.JobStreams))
				}
			})
		}
	}
}

func TestALoopsTestSaysSo(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 5)
	in := aTest()
	in.Loop = &command.LoopStep{Skill: "fix-shop", Iteration: 1}
	j := b.test(t, in)
	c := b.created(t, j.JobID)
	if c.Source != "loop" || c.LoopID != command.LoopID(j.ProjectID, "fix-shop") {
		t.Errorf("source %q, loop %q", c.Source, c.LoopID)
	}
	in.Loop.Iteration = 2
	_, err := b.TestHosted(t.Context(), b.cause(), in)
	wantKind(t, err, domain.KindPayment)
	wantTypes(t, b.log, domain.LoopStream(c.LoopID), "loop_session.started", "loop_session.iterated", "loop_session.ended")
}

// An older version bound the host as it was written.
func TestAHostThatWasBoundAsItWasWrittenKeepsItsProject(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	in := aTest()
	in.URL, in.Host = "https://shop.example/", "b\u00fccher.example"
	older := b.test(t, in)
	in.URL, in.Host = "https://xn--bcher-kva.example/", "xn--bcher-kva.example"
	for range 2 {
		if j := b.test(t, in); j.ProjectID != older.ProjectID {
			t.Errorf("the project is %s, not %s", j.ProjectID, older.ProjectID)
		}
	}
	wantTypes(t, b.log, domain.HostStream(b.account, in.Host), "host.linked")
}

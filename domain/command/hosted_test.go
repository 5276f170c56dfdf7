package command_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/command/commandtest"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/eventstore/logtest"
)

// toldReads answers what a test says the read models know.
type toldReads struct {
	commandtest.NoReads
	mu       sync.Mutex
	byHost   map[string]string
	failures map[string][]command.Regression
	tested   map[string]bool
	err      error
}

func (p *toldReads) ProjectForHost(_ context.Context, _, host string) (string, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, found := p.byHost[host]
	return id, found, p.err
}

func (p *toldReads) OpenFailures(_ context.Context, _, projectID string, limit int) ([]command.Regression, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.failures[projectID]
	return all[:min(limit, len(all))], p.err
}

func (p *toldReads) Tested(_ context.Context, _, projectID string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tested[projectID], p.err
}

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// hostedBundle is a service whose read models a test tells.
type hostedBundle struct {
	bundle
	reads *toldReads
	clock *clock
}

func setupHosted(t *testing.T, amount domain.Credits) hostedBundle {
	t.Helper()
	b := hostedBundle{
		bundle: setup(t, amount),
		reads:  &toldReads{byHost: map[string]string{}, failures: map[string][]command.Regression{}, tested: map[string]bool{}},
		clock:  &clock{at: time.Now()},
	}
	b.Service = b.process()
	t.Cleanup(b.Drain)
	return b
}

// process is another process on the same log.
func (b hostedBundle) process() *command.Service {
	return command.New(command.Deps{
		Log: b.log, Sealer: openSealer{}, AI: commandtest.AI{}, Reads: b.reads, Now: b.clock.now, ClaimsPerChecker: 1,
	})
}

func aTest() command.HostedTest {
	return command.HostedTest{Submission: job.Submission{URL: "https://shop.example/", Source: "hosted"}, Host: "shop.example"}
}

func (b hostedBundle) test(t *testing.T, in command.HostedTest) command.HostedJob {
	t.Helper()
	j, err := b.TestHosted(t.Context(), b.cause(), in)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (b hostedBundle) prepare(t *testing.T, projectID string, fixes ...string) {
	t.Helper()
	var in []command.PreparedFix
	for _, f := range fixes {
		in = append(in, command.PreparedFix{Description: f})
	}
	if _, err := b.PrepareNext(t.Context(), b.cause(), projectID, in); err != nil {
		t.Fatal(err)
	}
}

// created is the job.created of a job.
func (b hostedBundle) created(t *testing.T, jobID string) *job.Created {
	t.Helper()
	for _, e := range b.log.Stream(domain.JobStream(jobID)) {
		if c, ok := e.Event.(*job.Created); ok {
			return c
		}
	}
	t.Fatalf("there is no job %s", jobID)
	return nil
}

// regressions are the items that the read models put into the job's list, "key
// origin" each.
func (b hostedBundle) regressions(t *testing.T, jobID string) []string {
	t.Helper()
	var out []string
	for _, item := range b.created(t, jobID).Items {
		if item.Origin != "" {
			out = append(out, item.Key+" "+string(item.Origin))
		}
	}
	return out
}

// streams counts the streams of a category.
func (b hostedBundle) streams(category string) int {
	n := 0
	for _, e := range b.log.All() {
		if e.Revision == 0 && strings.HasPrefix(e.Stream, category) {
			n++
		}
	}
	return n
}

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
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
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

func TestAHostedTestRepeatsWhatFailedAndWhatWasFixed(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 1000)
	p := b.test(t, aTest()).ProjectID
	b.reads.tested[p] = true
	hour := func(n int) time.Time { return b.clock.now().Add(time.Duration(n) * time.Hour) }
	b.reads.failures[p] = []command.Regression{
		{Key: "login", Description: "Login", Severity: job.Critical, FailedAt: hour(-1)},
		{Key: "menu", Description: "Menu", Severity: job.Minor, FailedAt: hour(-2)},
	}
	_, err := b.PrepareNext(t.Context(), b.cause(), p, []command.PreparedFix{
		{BugID: "item-1", Key: "login", Description: "Login", ExpectedOutcome: "in", Severity: job.Critical},
		{Description: "The cart adds up"}, {Description: "the cart   adds up."},
	})
	if err != nil {
		t.Fatal(err)
	}
	j := b.test(t, aTest())
	want := []string{"the-cart-adds-up prepared_fix", "login prepared_fix", "menu open_failure"}
	if got := b.regressions(t, j.JobID); !slices.Equal(got, want) || j.RegressionItems != 3 || j.ChecklistItemCount != 4 || j.Type != job.GeneralQA {
		t.Errorf("the list repeats %v, want %v; %+v", got, want, j)
	}
	first := b.created(t, j.JobID).Items[1]
	if first.ExpectedOutcome != "in" || first.Severity != job.Critical || len(b.created(t, j.JobID).Prepared) != 2 {
		t.Errorf("the item is %+v of %v", first, b.created(t, j.JobID).Prepared)
	}
	t.Run("but the fixes once", func(t *testing.T) {
		next := b.test(t, aTest())
		want := []string{"login open_failure", "menu open_failure"}
		if got := b.regressions(t, next.JobID); !slices.Equal(got, want) {
			t.Errorf("the list repeats %v, want %v", got, want)
		}
	})
	t.Run("the newest twenty only", func(t *testing.T) {
		b.reads.failures[p] = nil
		for n := range 25 {
			b.reads.failures[p] = append(b.reads.failures[p], command.Regression{
				Key: fmt.Sprintf("k%02d", n), Description: "x", Severity: job.Major, FailedAt: hour(-n - 1),
			})
		}
		b.prepare(t, p, "newest")
		got := b.regressions(t, b.test(t, aTest()).JobID)
		if len(got) != 20 || got[0] != "newest prepared_fix" || got[19] != "k18 open_failure" {
			t.Errorf("the list repeats %v", got)
		}
	})
	t.Run("not in an AI review, which could not tell", func(t *testing.T) {
		b.prepare(t, p, "later")
		in := aTest()
		in.Type, in.TypeEcho = job.AIReview, "AI Review"
		if review := b.test(t, in); review.RegressionItems != 0 || review.CreditsDeducted != 2 {
			t.Errorf("%+v", review)
		}
		if got := b.regressions(t, b.test(t, aTest()).JobID); got[0] != "later prepared_fix" {
			t.Errorf("the list repeats %v", got)
		}
	})
}

func TestPreparedFixesAreTakenAlongByOneOfManyTests(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 1000)
	p := b.test(t, aTest()).ProjectID
	b.prepare(t, p, "one", "two", "three")
	processes := []*command.Service{b.Service, b.process()}
	var mu sync.Mutex
	taken := 0
	together(20, func(i int) error {
		j, err := processes[i%2].TestHosted(t.Context(), b.cause(), aTest())
		mu.Lock()
		defer mu.Unlock()
		taken += j.RegressionItems
		return err
	}, func(err error) { t.Error(err) })
	if taken != 3 {
		t.Errorf("the fixes were taken along %d times, want 3", taken)
	}
}

func TestPreparedFixesComeBackWhenTheirJobEndsWithoutAReport(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 1000)
	p := b.test(t, aTest()).ProjectID
	b.prepare(t, p, "login")
	j := b.test(t, aTest())
	if _, err := b.CancelJob(t.Context(), b.cause(), j.JobID, job.CancelClient); err != nil {
		t.Fatal(err)
	}
	again := b.test(t, aTest())
	if again.RegressionItems != 1 {
		t.Errorf("%d items came back, want 1", again.RegressionItems)
	}
	t.Run("and leave for good when it reports", func(t *testing.T) {
		ann := b.newChecker(t)
		claimed, err := b.ClaimJob(t.Context(), b.checkerCause(ann), ann, again.JobID)
		if err != nil {
			t.Fatal(err)
		}
		claim := command.Claim{CheckerID: ann, JobID: again.JobID, Token: claimed.Token}
		for _, item := range claimed.Checklist {
			if _, _, err := b.CheckItem(t.Context(), b.checkerCause(ann), claim, command.CheckItem{ItemID: item.ID, Status: job.ItemPass}); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := b.CompleteJob(t.Context(), b.checkerCause(ann), claim, command.CompleteJob{Summary: "good"}); err != nil {
			t.Fatal(err)
		}
		if next := b.test(t, aTest()); next.RegressionItems != 0 {
			t.Errorf("%d items were repeated, want none", next.RegressionItems)
		}
	})
}

// A crash between the project and the job: the fixes count as taken for a
// minute, in which the job may still come.
func TestPreparedFixesComeBackWhenTheirJobNeverCame(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 1000)
	p := b.test(t, aTest()).ProjectID
	b.prepare(t, p, "login")
	b.log.Fail(logtest.To(domain.CreditsStreams), false, errors.New("no log"))
	_, err := b.TestHosted(t.Context(), b.cause(), aTest())
	wantKind(t, err, domain.KindUnavailable)
	b.log.Heal()
	if soon := b.test(t, aTest()); soon.RegressionItems != 0 {
		t.Error("the fix was taken along while its job may still come")
	}
	b.clock.pass(time.Minute)
	if later := b.test(t, aTest()); later.RegressionItems != 1 {
		t.Error("the fix did not come back")
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
				if err != nil {
					t.Fatal(err)
				}
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

func TestPreparingTheNextTest(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	p := b.test(t, aTest()).ProjectID
	c := b.cause()
	fixes := []command.PreparedFix{{Description: "Login"}, {BugID: "item-2", Key: "menu", Description: "Menu"}}
	for range 2 { // a repeat
		out, err := b.PrepareNext(t.Context(), c, p, fixes)
		if err != nil || !slices.Equal(out.Descriptions, []string{"Login", "Menu"}) {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	wantTypes(t, b.log, domain.ProjectStream(p), "project.created", "project.regressions_prepared")
	items := b.log.Stream(domain.ProjectStream(p))[1].Event.(*project.RegressionsPrepared).Items
	if items[0].Key != "login" || items[0].Severity != "major" || items[1].BugID != "item-2" || items[0].ID == items[1].ID {
		t.Errorf("queued are %+v", items)
	}
	other := b.cause()
	other.AccountID = "somebody-else"
	_, err := b.PrepareNext(t.Context(), other, p, fixes)
	wantKind(t, err, domain.KindNotFound)
}

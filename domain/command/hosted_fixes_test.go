package command_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

func TestAHostedTestRepeatsWhatFailedAndWhatWasFixed(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 1000)
	p := b.test(t, aTest()).ProjectID
	b.reads.tested[p] = true
	hour := func(n int) time.Time { return b.clock.now().Add(time.Duration(n) * time.Hour) }
	b.reads.failures[p] = []command.Regression{
		{Item: job.Item{Key: "login", Description: "Login", Severity: job.Critical}, FailedAt: hour(-1)},
		{Item: job.Item{Key: "menu", Description: "Menu", Severity: job.Minor}, FailedAt: hour(-2)},
	}
	_, err := b.PrepareNext(t.Context(), b.cause(), p, []command.PreparedFix{
		{BugID: "item-1", Key: "login", Description: "Login", ExpectedOutcome: "in", Severity: job.Critical},
		{Description: "The cart adds up"}, {Description: "the cart   adds up."},
	})
	must.NoError(t, err)
	j := b.test(t, aTest())
	want := []string{job.KeyFor("The cart adds up") + " prepared_fix", "login prepared_fix", "menu open_failure"}
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
				Item: job.Item{Key: fmt.Sprintf("k%02d", n), Description: "x", Severity: job.Major}, FailedAt: hour(-n - 1),
			})
		}
		b.prepare(t, p, "newest")
		got := b.regressions(t, b.test(t, aTest()).JobID)
		if len(got) != 20 || got[0] != job.KeyFor("newest")+" prepared_fix" || got[19] != "k18 open_failure" {
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
		if got := b.regressions(t, b.test(t, aTest()).JobID); got[0] != job.KeyFor("later")+" prepared_fix" {
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
	_, err := b.CancelJob(t.Context(), b.cause(), j.JobID, job.CancelClient)
	must.NoError(t, err)
	again := b.test(t, aTest())
	if again.RegressionItems != 1 {
		t.Errorf("%d items came back, want 1", again.RegressionItems)
	}
	t.Run("and leave for good when it reports", func(t *testing.T) {
		ann := b.newChecker(t)
		claimed, err := b.ClaimJob(t.Context(), b.checkerCause(ann), ann, again.JobID)
		must.NoError(t, err)
		claim := command.Claim{CheckerID: ann, JobID: again.JobID, Token: claimed.Token}
		for _, item := range claimed.Checklist {
			_, _, err := b.CheckItem(t.Context(), b.checkerCause(ann), claim, command.CheckItem{ItemID: item.ID, Status: job.ItemPass})
			must.NoError(t, err)
		}
		_, _, err = b.CompleteJob(t.Context(), b.checkerCause(ann), claim, command.CompleteJob{Summary: "good"})
		must.NoError(t, err)
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
	if items[0].Key != job.KeyFor("Login") || items[0].Severity != "major" || items[1].BugID != "item-2" || items[0].ID == items[1].ID {
		t.Errorf("queued are %+v", items)
	}
	other := b.cause()
	other.AccountID = "somebody-else"
	_, err := b.PrepareNext(t.Context(), other, p, fixes)
	wantKind(t, err, domain.KindNotFound)
}

func TestARetestTakesTheFixesOfItsProject(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 16)
	first := b.test(t, aTest())
	b.prepare(t, first.ProjectID, "The cart adds up")
	cause := b.cause()
	again, err := b.Retest(t.Context(), cause, first.JobID)
	must.NoError(t, err)
	want := []string{job.KeyFor("The cart adds up") + " prepared_fix"}
	if got := b.regressions(t, again.JobID); !slices.Equal(got, want) || again.ChecklistItemCount != first.ChecklistItemCount+1 {
		t.Errorf("the retest repeats %v, want %v; %+v", got, want, again)
	}
	repeated, err := b.Retest(t.Context(), cause, first.JobID)
	if err != nil || repeated.JobID != again.JobID || repeated.ChecklistItemCount != again.ChecklistItemCount || repeated.CreditsRemaining != again.CreditsRemaining {
		t.Errorf("the repeat: %+v, %v; want %+v", repeated, err, again)
	}
	other, err := b.Retest(t.Context(), b.cause(), first.JobID)
	if err != nil || len(b.regressions(t, other.JobID)) != 0 {
		t.Errorf("a fix is tested twice: %v, %v", b.regressions(t, other.JobID), err)
	}

	// Without credits nothing leaves the queue.
	b.prepare(t, first.ProjectID, "The menu opens")
	before := b.log.Head()
	if _, err := b.Retest(t.Context(), b.cause(), first.JobID); !domain.IsKind(err, domain.KindPayment) || b.log.Head() != before {
		t.Errorf("%v, and the log grew from %v to %v", err, before, b.log.Head())
	}
}

// What older versions took for one text is two where a sign changes the meaning.
func TestAnItemKeepsTheKeyThatAnOlderVersionGaveToItsText(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	b.test(t, aTest())
	older := func(text string) string { return job.OlderKeys(text)[0] }
	b.reads.known = map[string]string{
		older("Total is 5"): "Total is 5", older("cafe\u0301 opens"): "cafe\u0301 opens", older("C sharp-ly"): domain.ErasedText, "log-in": "Log-in.",
	}
	in := aTest()
	in.Items = []command.NewItem{
		{Description: "Total is -5"}, {Description: "Total is 5."}, {Description: "Caf\u00e9 opens"}, {Description: "C sharp-ly"}, {Description: "log-in"},
	}
	want := []string{job.KeyFor("Total is -5"), older("Total is 5"), older("cafe\u0301 opens"), older("C sharp-ly"), "log-in"}
	var got []string
	for _, item := range b.created(t, b.test(t, in).JobID).Items {
		got = append(got, item.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the keys are %q, want %q", got, want)
	}
}

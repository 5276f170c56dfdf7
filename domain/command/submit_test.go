package command_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/must"
)

// plain is a submission without a list.
func plain() command.SubmitJob {
	return command.SubmitJob{
		Submission: job.Submission{
			URL: "https://example.com", Title: "Title", Description: "Look", Type: job.GeneralQA,
			TypeEcho: "General QA", Source: "api",
		},
	}
}

func (b bundle) project(t *testing.T, slaMinutes int) string {
	t.Helper()
	p, err := b.CreateProject(t.Context(), b.cause(), command.CreateProject{Name: "P", DefaultSLAMinutes: &slaMinutes})
	must.NoError(t, err)
	return p.ProjectID
}

func TestAListThatTakesItsTimeComesAfterTheAnswer(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	s.ai.set(func(a *scriptedAI) { a.instant = false })
	j, err := s.SubmitJob(t.Context(), s.cause(), plain())
	if err != nil || j.ChecklistItemCount != 0 || j.Status != job.StatusPending {
		t.Fatalf("submit: %+v, %v", j, err)
	}
	if len(s.ai.briefs) > 0 {
		t.Error("the list was asked for before the answer")
	}
	ann := s.newChecker(t)
	_, err = s.ClaimJob(t.Context(), s.checkerCause(ann), ann, j.JobID)
	wantKind(t, err, domain.KindConflict)

	t.Run("and no checker's place is held for a job that cannot be claimed yet", func(t *testing.T) {
		other := s.submitted(t)
		if _, err := s.ClaimJob(t.Context(), s.checkerCause(ann), ann, other); err != nil {
			t.Error(err)
		}
	})
	t.Run("once, whoever writes it", func(t *testing.T) {
		for range 2 {
			_, err := s.WriteChecklist(t.Context(), s.cause(), j.JobID)
			must.NoError(t, err)
		}
		wantTypes(t, s.log, domain.JobStream(j.JobID), "job.created", "job.checklist_written")
		if st := s.job(j.JobID); len(st.Items) != 1 || st.Items[0].ID != "item-1" || st.GeneratedBy != "test" {
			t.Errorf("the job is %+v", st)
		}
		if n := len(s.ai.briefs); n != 1 {
			t.Errorf("the list was asked for %d times", n)
		}
	})
	t.Run("then the job can be claimed", func(t *testing.T) { s.claimed(t, j.JobID) })
}

func TestAListIsNotWrittenForAJobThatEndedMeanwhile(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	s.ai.set(func(a *scriptedAI) { a.instant = false })
	j, err := s.SubmitJob(t.Context(), s.cause(), plain())
	must.NoError(t, err)
	s.ai.set(func(a *scriptedAI) {
		a.during = func() {
			if _, err := s.CancelJob(t.Context(), s.cause(), j.JobID, job.CancelClient); err != nil {
				t.Error(err)
			}
		}
	})
	if _, err := s.WriteChecklist(t.Context(), s.cause(), j.JobID); err != nil {
		t.Error(err)
	}
	wantTypes(t, s.log, domain.JobStream(j.JobID), "job.created", "job.cancelled")
}

func TestWhoeverWaitsGetsTheListWithTheAnswer(t *testing.T) {
	t.Parallel()
	s := setStage(t, 5)
	s.ai.set(func(a *scriptedAI) { a.instant = false })
	wait := plain()
	wait.Wait = true
	t.Run("unless the AI fails: then nothing is written", func(t *testing.T) {
		for name, script := range map[string]func(*scriptedAI){
			"with an error":      func(a *scriptedAI) { a.err = errNoModel },
			"with an empty list": func(a *scriptedAI) { a.items = []command.NewItem{} },
		} {
			s.ai.set(script)
			s.nothing(t, func() {
				_, err := s.SubmitJob(t.Context(), s.cause(), wait)
				if !domain.IsKind(err, domain.KindUnavailable) {
					t.Errorf("%s: %v", name, err)
				}
			})
			s.ai.set(func(a *scriptedAI) { a.err, a.items, a.briefs = nil, nil, nil })
		}
	})
	j, err := s.SubmitJob(t.Context(), s.cause(), wait)
	if err != nil || j.ChecklistItemCount != 1 {
		t.Fatalf("submit: %+v, %v", j, err)
	}
	t.Run("and who cannot pay does not have it written", func(t *testing.T) {
		s.nothing(t, func() {
			_, err := s.SubmitJob(t.Context(), s.cause(), wait)
			wantKind(t, err, domain.KindPayment)
		})
		if n := len(s.ai.briefs); n != 1 {
			t.Errorf("the list was asked for %d times, want once", n)
		}
	})
}

func TestTheWriterIsToldWhatFailedBefore(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	s.ai.set(func(a *scriptedAI) {
		a.failures = []command.Regression{{Item: job.Item{Key: "pay", Description: "Pay"}}}
	})
	in := plain()
	in.ProjectID = s.project(t, 30)
	_, err := s.SubmitJob(t.Context(), s.cause(), in)
	must.NoError(t, err)
	if got := s.ai.briefs[0]; len(got.Failures) != 1 || got.Failures[0].Key != "pay" || got.AccountID != s.account {
		t.Errorf("the brief was %+v", got)
	}
}

// The read model may show a failure a moment after the items that open the list were chosen.
func TestTheWriterIsToldWhatOpensTheList(t *testing.T) {
	t.Parallel()
	for name, instant := range map[string]bool{"written at once": true, "written later": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setStage(t, 100)
			_, err := s.TestHosted(t.Context(), s.cause(), aTest())
			must.NoError(t, err)
			pay := command.Regression{Item: job.Item{Key: "pay", Description: "Pay", Severity: job.Critical}}
			s.ai.set(func(a *scriptedAI) { a.instant, a.failures, a.briefs = instant, []command.Regression{pay}, nil })
			j, err := s.TestHosted(t.Context(), s.cause(), aTest())
			must.NoError(t, err)
			s.ai.set(func(a *scriptedAI) {
				a.failures = append(a.failures, command.Regression{Item: job.Item{Key: "late", Description: "Log in"}})
			})
			_, err = s.WriteChecklist(t.Context(), s.cause(), j.JobID)
			must.NoError(t, err)
			if got := s.ai.briefs[0]; len(got.Opening) != 1 || got.Opening[0].Key != "pay" {
				t.Errorf("the brief was %+v", got)
			}
		})
	}
}

func TestAnAIReviewMakesItsOwnList(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	in := plain()
	in.Type = job.AIReview
	j, err := s.SubmitJob(t.Context(), s.cause(), in)
	if err != nil || j.CreditsDeducted != 2 || j.ChecklistItemCount != 0 || len(s.ai.briefs) > 0 {
		t.Errorf("submit: %+v, %v; %d briefs", j, err, len(s.ai.briefs))
	}
}

func TestASandboxsJobIsMarked(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	cause := s.cause()
	cause.Sandbox = true
	j, err := s.SubmitJob(t.Context(), cause, plain())
	if err != nil || !s.job(j.JobID).Sandbox {
		t.Fatalf("submit: %+v, %v", s.job(j.JobID), err)
	}
	ann := s.newChecker(t)
	_, err = s.ClaimJob(t.Context(), s.checkerCause(ann), ann, j.JobID)
	wantKind(t, err, domain.KindConflict)
}

func TestAnEstimateWritesNothing(t *testing.T) {
	t.Parallel()
	s := setStage(t, 7)
	in := plain()
	in.Urgent, in.ProjectID = true, s.project(t, 30)
	s.nothing(t, func() {
		got, err := s.EstimateJob(t.Context(), s.cause(), in)
		want := command.Estimate{CreditsRequired: 10, CreditsAvailable: 7, EstimatedMinutes: 15, SLAMinutes: 30}
		if err != nil || got != want {
			t.Errorf("estimate: %+v, %v; want %+v", got, err, want)
		}
		in.ProjectID = "nobody's"
		_, err = s.EstimateJob(t.Context(), s.cause(), in)
		wantKind(t, err, domain.KindNotFound)
	})
}

func bulk(n int) []command.SubmitJob {
	jobs := make([]command.SubmitJob, n)
	for i := range jobs {
		jobs[i] = plain()
		jobs[i].Title, jobs[i].Source = fmt.Sprint("Job ", i), "bulk"
	}
	return jobs
}

func TestTwentyJobsWithCreditsForNineteenAreNotSubmitted(t *testing.T) {
	t.Parallel()
	s := setStage(t, 19*5)
	s.nothing(t, func() {
		_, err := s.SubmitBulk(t.Context(), s.cause(), bulk(20))
		if want := domain.InsufficientCredits(100, 95); !reflect.DeepEqual(err, error(want)) {
			t.Errorf("refused with %v, want %v", err, want)
		}
	})
}

func TestABatchIsChargedByOneAppendAndKeepsItsOrder(t *testing.T) {
	t.Parallel()
	s := setStage(t, 1000)
	jobs := bulk(20)
	jobs[3].Urgent, jobs[4].Type = true, job.AIReview
	jobs[5].ProjectID = s.project(t, 15)
	appends := s.log.Appends(domain.CreditsStream(s.account))
	cause := s.cause()
	got, err := s.SubmitBulk(t.Context(), cause, jobs)
	if err != nil || len(got.JobIDs) != 20 || got.CreditsDeducted != 18*5+10+2 || got.CreditsRemaining != 1000-102 || got.EstimatedMinutes != 60 {
		t.Fatalf("bulk: %+v, %v", got, err)
	}
	if n := s.log.Appends(domain.CreditsStream(s.account)) - appends; n != 1 {
		t.Errorf("the batch was charged by %d appends", n)
	}
	for i, id := range got.JobIDs {
		created := s.log.Stream(domain.JobStream(id))[0].Event.(*job.Created)
		if created.BatchID != got.BatchID || created.BatchIndex != i || created.Title != fmt.Sprint("Job ", i) {
			t.Errorf("job %d is %+v", i, created)
		}
	}
	if sla := s.job(got.JobIDs[5]).SLAMinutes; sla != 15 {
		t.Errorf("the project's SLA became %d", sla)
	}
	t.Run("and the same command again writes nothing more", func(t *testing.T) {
		s.nothing(t, func() {
			again, err := s.SubmitBulk(t.Context(), cause, jobs)
			if err != nil || again.BatchID != got.BatchID || !slices.Equal(again.JobIDs, got.JobIDs) || again.CreditsRemaining != got.CreditsRemaining {
				t.Errorf("again: %+v, %v", again, err)
			}
		})
	})
}

func TestABatchWithAForeignProjectIsNotSubmitted(t *testing.T) {
	t.Parallel()
	s, other := setStage(t, 100), setup(t, 0)
	jobs := bulk(3)
	jobs[2].ProjectID = other.project(t, 30)
	s.nothing(t, func() {
		_, err := s.SubmitBulk(t.Context(), s.cause(), jobs)
		wantKind(t, err, domain.KindNotFound)
	})
}

// One append of a batch fails: the charge's, or that of a job in the middle;
// once persisted and once not. The same command sent again ends in one batch.
func TestABatchThatFailsAnywhereCanBeRepeated(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"Debited", "Job 2"} {
		for _, persist := range []bool{false, true} {
			t.Run(what+map[bool]string{true: " persisted", false: " lost"}[persist], func(t *testing.T) {
				t.Parallel()
				s := setStage(t, 100)
				s.log.Fail(func(_ string, events []domain.NewEvent) bool {
					return strings.Contains(fmt.Sprintf("%T %+v", events[0].Event, events[0].Event), what)
				}, persist, errCut)
				cause := s.cause()
				_, err := s.SubmitBulk(t.Context(), cause, bulk(4))
				wantKind(t, err, domain.KindUnavailable)
				s.log.Heal()
				got, err := s.SubmitBulk(t.Context(), cause, bulk(4))
				must.NoError(t, err)
				for _, id := range got.JobIDs {
					wantTypes(t, s.log, domain.JobStream(id), "job.created")
				}
				if used := s.ledger().Used(); used != 20 {
					t.Errorf("%d credits used, want 20", used)
				}
			})
		}
	}
}

func TestWhatNeverCameOfABatchIsRefunded(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	s.log.Fail(func(_ string, events []domain.NewEvent) bool {
		created, ok := events[0].Event.(*job.Created)
		return ok && created.BatchIndex > 1
	}, false, errCut)
	_, err := s.SubmitBulk(t.Context(), s.cause(), bulk(4))
	wantKind(t, err, domain.KindUnavailable)
	s.log.Heal()
	s.settle(t)
	if used := s.ledger().Used(); used != 10 {
		t.Errorf("%d credits used for two jobs, want 10", used)
	}
}

func TestRegressionsOpenTheListAndStandInItOnce(t *testing.T) {
	t.Parallel()
	for name, instant := range map[string]bool{"written at once": true, "written later": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setStage(t, 100)
			_, err := s.TestHosted(t.Context(), s.cause(), aTest())
			must.NoError(t, err)
			s.ai.set(func(a *scriptedAI) {
				a.instant = instant
				a.failures = []command.Regression{{Item: job.Item{Key: "pay", Description: "Paying works", Severity: job.Critical}}}
				a.items = []command.NewItem{{Description: "Log in"}, {Description: "Pay!"}, {Key: "pay", Description: "Pay again"}}
			})
			j, err := s.TestHosted(t.Context(), s.cause(), aTest())
			if err != nil || j.RegressionItems != 1 {
				t.Fatalf("the test: %+v, %v", j, err)
			}
			_, err = s.WriteChecklist(t.Context(), s.cause(), j.JobID)
			must.NoError(t, err)
			want := []job.Item{
				{ID: "item-1", Key: "pay", Description: "Paying works", Severity: job.Critical, Origin: job.OpenFailure},
				{ID: "item-2", Key: job.KeyFor("log in"), Description: "Log in"},
			}
			if got := s.job(j.JobID).Items; !reflect.DeepEqual(got, want) {
				t.Errorf("the list is %+v, want %+v", got, want)
			}
		})
	}
}

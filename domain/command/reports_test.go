package command_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

func TestAReportIsAnalysedOnce(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	secret := plain()
	secret.Credentials = &command.Credentials{Password: "hunter2"}
	secret.AccessInstructions = "ring twice"
	j, err := s.SubmitJob(t.Context(), s.cause(), secret)
	must.NoError(t, err)
	s.nothing(t, func() { // there is no report yet
		if _, err := s.AnalyseJob(t.Context(), s.cause(), j.JobID); err != nil {
			t.Error(err)
		}
	})
	s.completed(t, j.JobID)

	s.ai.set(func(a *scriptedAI) { a.err = errNoModel })
	_, err = s.AnalyseJob(t.Context(), s.cause(), j.JobID)
	wantKind(t, err, domain.KindUnavailable)
	s.ai.set(func(a *scriptedAI) { a.err = nil })

	good := together(8, func(i int) error {
		_, err := s.AnalyseJob(t.Context(), s.cause(), j.JobID)
		return err
	}, func(err error) { t.Error(err) })
	types := s.log.Types(domain.JobStream(j.JobID))
	if good != 8 || strings.Count(strings.Join(types, " "), "job.ai_report_ready") != 1 {
		t.Errorf("%d analyses made %v", good, types)
	}
	st := s.job(j.JobID)
	if a := st.AIReport; a == nil || a.ID == "" || a.PassCount != 1 || a.FailCount != 0 || a.SkipCount != 0 || a.At.IsZero() {
		t.Errorf("the analysis is %+v", a)
	}
	for _, brief := range s.ai.analyses {
		if brief.AccountID != s.account || !reflect.DeepEqual(brief.Report, *st.Report) {
			t.Errorf("the brief was %+v", brief)
		}
	}
}

func TestAnAIReviewIsDoneByTheReviewer(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	in := plain()
	in.Type = job.AIReview
	in.Items = []command.NewItem{
		{Description: "The page loads", Severity: job.Critical},
		{Description: "The colours please", Severity: job.Minor},
	}
	j, err := s.SubmitJob(t.Context(), s.cause(), in)
	must.NoError(t, err)
	s.ai.set(func(a *scriptedAI) {
		a.review = command.Review{Summary: "reviewed", Items: []job.ReportItem{
			{Item: job.Item{ID: "item-1", Key: "images", Description: "Images have texts", Severity: job.Minor}, Status: job.ItemFail, Note: "two have none"},
			{Item: job.Item{ID: "item-2", Key: job.KeyFor("The page loads"), Description: "It loads", Severity: job.Major}, Status: job.ItemPass, Note: "200"},
		}}
		a.err = errNoModel
	})
	_, err = s.ReviewJob(t.Context(), s.cause(), j.JobID)
	wantKind(t, err, domain.KindUnavailable)
	s.ai.set(func(a *scriptedAI) { a.err = nil })
	for range 2 {
		_, err := s.ReviewJob(t.Context(), s.cause(), j.JobID)
		must.NoError(t, err)
	}
	wantTypes(t, s.log, domain.JobStream(j.JobID), "job.created", "job.claimed", "job.completed")
	st := s.job(j.JobID)
	want := &job.Completed{
		ReportID: st.ReportID(), OverallStatus: job.OverallFail, PassCount: 1, FailCount: 1, SkipCount: 1, Summary: "reviewed",
		Items: []job.ReportItem{
			{Item: st.Items[0], Status: job.ItemPass, Note: "200"},
			{Item: st.Items[1], Status: job.ItemSkip, Reason: "not_applicable", Note: "An AI review cannot judge this."},
			{Item: job.Item{ID: "item-3", Key: "images", Description: "Images have texts", Severity: job.Minor}, Status: job.ItemFail, Note: "two have none"},
		},
		At: st.CompletedAt,
	}
	if st.CheckerID != job.Reviewer || st.ReportID() == "" || !reflect.DeepEqual(st.Report, want) {
		t.Errorf("by %s: %+v\nwanted %+v", st.CheckerID, st.Report, want)
	}
	t.Run("and nobody can be rated for it", func(t *testing.T) {
		_, err := s.RateJob(t.Context(), s.cause(), j.JobID, 5, "")
		wantKind(t, err, domain.KindConflict)
	})
}

func TestOnlyAIReviewsAreReviewed(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	id := s.submitted(t)
	s.nothing(t, func() {
		if _, err := s.ReviewJob(t.Context(), s.cause(), id); err != nil {
			t.Error(err)
		}
	})
}

func TestTheClientRatesACompletedJob(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	id := s.submitted(t)
	_, err := s.RateJob(t.Context(), s.cause(), id, 5, "")
	wantKind(t, err, domain.KindConflict)
	s.completed(t, id)
	for _, rating := range []int{5, 5, 3} {
		_, err := s.RateJob(t.Context(), s.cause(), id, rating, "thorough")
		must.NoError(t, err)
	}
	wantTypes(t, s.log, domain.JobStream(id),
		"job.created", "job.claimed", "job.item_checked", "job.completed", "job.rated", "job.rated")
	if r := s.job(id).Rating; r.Rating != 3 || r.Note != "thorough" {
		t.Errorf("the rating is %+v", r)
	}
	stranger := s.cause()
	stranger.AccountID = "somebody-else"
	for _, id := range []string{id, "nobody's"} {
		_, err = s.RateJob(t.Context(), stranger, id, 1, "")
		wantKind(t, err, domain.KindNotFound)
	}
}

// What the AI wrote is lost with the connection, or was written all the same:
// the same command sent again ends in one event of its kind.
func TestWhatTheAIWritesIsWrittenOnceWhateverFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wrote string
		setUp func(*testing.T, stage) (jobID string)
		write func(*command.Service, context.Context, command.Cause, string) (domain.Position, error)
	}{
		"a checklist": {"job.checklist_written", func(t *testing.T, s stage) string {
			s.ai.set(func(a *scriptedAI) { a.instant = false })
			j, err := s.SubmitJob(t.Context(), s.cause(), plain())
			must.NoError(t, err)
			return j.JobID
		}, (*command.Service).WriteChecklist},
		"an analysis": {"job.ai_report_ready", func(t *testing.T, s stage) string {
			id := s.submitted(t)
			s.completed(t, id)
			return id
		}, (*command.Service).AnalyseJob},
		"a review": {"job.completed", func(t *testing.T, s stage) string {
			in := plain()
			in.Type = job.AIReview
			j, err := s.SubmitJob(t.Context(), s.cause(), in)
			must.NoError(t, err)
			return j.JobID
		}, (*command.Service).ReviewJob},
	} {
		for _, persist := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " persisted", false: " lost"}[persist], func(t *testing.T) {
				t.Parallel()
				s := setStage(t, 100)
				id, cause := c.setUp(t, s), s.cause()
				s.log.Fail(logtest.To(""), persist, errCut)
				_, err := c.write(s.Service, t.Context(), cause, id)
				wantKind(t, err, domain.KindUnavailable)
				s.log.Heal()
				for range 2 {
					if _, err := c.write(s.Service, t.Context(), cause, id); err != nil {
						t.Error(err)
					}
				}
				written := 0
				for _, typ := range s.log.Types(domain.JobStream(id)) {
					if typ == c.wrote {
						written++
					}
				}
				if written != 1 {
					t.Errorf("%s was written %d times", c.wrote, written)
				}
			})
		}
	}
}

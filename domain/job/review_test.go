package job_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
)

func analysis() job.AIReport {
	return job.AIReport{ID: "a1", ExecutiveSummary: "fine", HealthScore: 90, PassCount: 2, GeneratedBy: "rules", At: minute(21)}
}

func analyse(s job.State) ([]domain.Event, error) { return job.DecideAnalysed(s, analysis()) }

func rate(rating int, note string) decide {
	return func(s job.State) ([]domain.Event, error) { return job.DecideRate(s, rating, note, minute(22)) }
}

func rated(rating int, note string) *job.Rated {
	return &job.Rated{Rating: rating, Note: note, At: minute(22)}
}

func TestTheAnalysis(t *testing.T) {
	t.Parallel()
	t.Run("follows the report, once", func(t *testing.T) {
		s := given(t, created(), claimedBy("ann", 1), completed()).
			When(analyse).
			Events(&job.AIReportReady{AIReport: analysis()}).
			State()
		if s.Status != job.StatusCompleted || s.AIReport == nil || s.AIReport.ID != "a1" {
			t.Errorf("the job is %+v", s)
		}
		other := &job.AIReportReady{AIReport: job.AIReport{ID: "a0"}}
		given(t, created(), claimedBy("ann", 1), completed(), other).When(analyse).Nothing()
	})
	t.Run("needs the report", func(t *testing.T) {
		given(t, created()).When(analyse).Conflict("the job is pending")
		given(t, created(), claimedBy("ann", 1)).When(analyse).Conflict("the job is claimed")
		given(t, created(), cancelled()).When(analyse).Conflict("the job is cancelled")
		given(t).When(analyse).NotFound("job")
	})
}

func TestARating(t *testing.T) {
	t.Parallel()
	done := []domain.Event{created(), claimedBy("ann", 1), completed()}
	t.Run("is recorded from one to five", func(t *testing.T) {
		for rating := 1; rating <= 5; rating++ {
			s := given(t, done...).When(rate(rating, "thorough")).Events(rated(rating, "thorough")).State()
			if s.Rating == nil || s.Rating.Rating != rating || s.Status != job.StatusCompleted {
				t.Errorf("the job is %+v", s)
			}
		}
		for _, rating := range []int{-1, 0, 6} {
			given(t, done...).When(rate(rating, "")).Invalid("rating")
		}
	})
	t.Run("replaces the one before", func(t *testing.T) {
		given(t, append(done, rated(5, "thorough"))...).When(rate(2, "thorough")).Events(rated(2, "thorough"))
		given(t, append(done, rated(5, "thorough"))...).When(rate(5, "")).Events(rated(5, ""))
	})
	t.Run("is about a person's completed work", func(t *testing.T) {
		e := given(t, created(aiReview), claimedBy(job.Reviewer, 1), completed()).
			When(rate(5, "")).
			Conflict("an AI review has no checker")
		if e.Hint != "rate tests that a person did" {
			t.Errorf("the hint is %q", e.Hint)
		}
		given(t, created()).When(rate(5, "")).Conflict("the job is pending")
		given(t, created(), claimedBy("ann", 1)).When(rate(5, "")).Conflict("the job is claimed")
		given(t, created(), cancelled()).When(rate(5, "")).Conflict("the job is cancelled")
		given(t).When(rate(5, "")).NotFound("job")
	})
}

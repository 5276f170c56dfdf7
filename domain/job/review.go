package job

import (
	"time"

	"humanqa/domain"
)

// The decisions after the report: its analysis, and the client's rating.

// DecideAnalysed brings the analysis of the completed job, once.
func DecideAnalysed(s State, report AIReport) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case s.Status != StatusCompleted:
		return nil, domain.Conflict("the job is %s", s.Status).WithHint("there is no report to analyse")
	case s.AIReport != nil, !s.ErasedAt.IsZero():
		return nil, nil
	}
	return []domain.Event{&AIReportReady{AIReport: report}}, nil
}

// DecideRate records the client's rating of the checker's work; a later one
// replaces an earlier one, the same one is a repeat.
func DecideRate(s State, rating int, note string, now time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case rating < 1 || rating > 5:
		return nil, domain.Invalid(domain.Detail{Path: "rating", Message: "must be 1 to 5"})
	case s.Type == AIReview:
		return nil, domain.Conflict("an AI review has no checker").WithHint("rate tests that a person did")
	case s.Status != StatusCompleted:
		return nil, domain.Conflict("the job is %s", s.Status).WithHint("a job can be rated once it is completed")
	case !s.ErasedAt.IsZero():
		return nil, errErased()
	case s.Rating != nil && s.Rating.Rating == rating && s.Rating.Note == note:
		return nil, nil
	}
	return []domain.Event{&Rated{Rating: rating, Note: note, At: now}}, nil
}

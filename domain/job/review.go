package job

import (
	"time"

	"humanqa/domain"
)

// The decisions after the report: its analysis, and the client's rating.

// AIReport is the analysis of a report (specification, "AI report").
type AIReport struct {
	ID               string    `json:"id"`
	ExecutiveSummary string    `json:"executiveSummary" sealed:"text"`
	HealthScore      int       `json:"healthScore"` // 0 to 100, higher is better
	Bugs             []Bug     `json:"bugs"`        // gravest first
	PassCount        int       `json:"passCount"`
	FailCount        int       `json:"failCount"`
	SkipCount        int       `json:"skipCount"`
	Strengths        []string  `json:"strengths" sealed:"text"`
	Recommendations  []string  `json:"recommendations" sealed:"text"`
	GeneratedBy      string    `json:"generatedBy"` // rules, or a model's name
	At               time.Time `json:"at"`
}

// Bug is a failed item in the analysis.
type Bug struct {
	ItemID            string   `json:"itemId,omitempty"`
	Title             string   `json:"title" sealed:"text"`
	Severity          Severity `json:"severity"`
	Description       string   `json:"description" sealed:"text"`
	ReproductionSteps []string `json:"reproductionSteps" sealed:"text"`
	SuggestedFix      string   `json:"suggestedFix" sealed:"text"`
}

// AIReportReady adds the analysis of the completed job.
type AIReportReady struct {
	AIReport
}

// Rated is the client's rating of the checker's work. A later rating replaces an
// earlier one.
type Rated struct {
	Rating int       `json:"rating"` // 1 to 5
	Note   string    `json:"note,omitempty" sealed:"text"`
	At     time.Time `json:"at"`
}

func (*AIReportReady) EventType() string { return "job.ai_report_ready" }
func (*Rated) EventType() string         { return "job.rated" }

func (e *AIReportReady) evolve(s *State) { s.AIReport = &e.AIReport }
func (e *Rated) evolve(s *State)         { s.Rating = e }

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
	if len(s.Disputes) > 0 { // a verdict may have been overturned meanwhile
		report = report.Overturned(s.Report.Items)
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
		return nil, domain.InvalidAt("rating", "must be 1 to 5")
	case s.Type.Automatic():
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

package job

import (
	"fmt"
	"time"

	"humanqa/domain"
)

// Completed ends the job with its report.
type Completed struct {
	ReportID      string       `json:"reportId"`
	OverallStatus string       `json:"overallStatus"` // pass, fail, inconclusive
	PassCount     int          `json:"passCount"`
	FailCount     int          `json:"failCount"`
	SkipCount     int          `json:"skipCount"`
	Summary       string       `json:"summary" sealed:"text"`
	RecordingURL  string       `json:"recordingUrl,omitempty" sealed:"link"`
	Items         []ReportItem `json:"items"`
	SessionID     string       `json:"sessionId,omitempty"`
	LoopID        string       `json:"loopId,omitempty"`
	// CommitStatus says that a commit status tells the verdict.
	CommitStatus bool      `json:"commitStatus,omitempty"`
	At           time.Time `json:"at"`
}

func (*Completed) EventType() string { return "job.completed" }

func (e *Completed) evolve(s *State) {
	s.Status, s.CompletedAt, s.Report = StatusCompleted, e.At, e
	s.Verdicts, s.Findings, s.Withdrawn, s.Script = nil, nil, nil, nil
}

// Completion ends the claimant's work.
type Completion struct {
	CheckerID    string
	Token        int
	ReportID     string
	Summary      string
	RecordingURL string
	At           time.Time
}

// DecideComplete ends the job with its report. Every item of the list needs a verdict.
// A second completion by the same claim is a repeat: the first report stands.
func DecideComplete(s State, c Completion) ([]domain.Event, error) {
	if s.Status == StatusCompleted && s.CheckerID == c.CheckerID && s.Token == c.Token {
		return nil, nil
	}
	if err := working(s, c.CheckerID, c.Token); err != nil {
		return nil, err
	}
	items := s.ReportItems()
	var unchecked []string
	for _, i := range items {
		if i.Status == ItemPending {
			unchecked = append(unchecked, i.ID)
		}
	}
	if n := len(unchecked); n > 0 {
		return nil, domain.Conflict("%s", withoutVerdict(n)).
			WithHint("check every item of the list, or skip it with a reason").
			With("uncheckedItems", unchecked)
	}
	return s.leaving(c.At, s.complete(Completed{
		ReportID: c.ReportID, Summary: c.Summary, RecordingURL: c.RecordingURL, Items: items, At: c.At,
	})), nil
}

func withoutVerdict(n int) string {
	if n == 1 {
		return "1 item has no verdict yet"
	}
	return fmt.Sprintf("%d items have no verdict yet", n)
}

// complete fills in what follows from the report's items, and the job's own facts.
func (s State) complete(report Completed) *Completed {
	report.OverallStatus = OverallStatus(report.Items)
	report.PassCount, report.FailCount, report.SkipCount = Counts(report.Items)
	report.SessionID, report.LoopID, report.CommitStatus = s.SessionID, s.LoopID, s.TellsCommit()
	return &report
}

package workbench

import (
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/ui"
	"humanqa/projections/history"
)

const (
	// similarAmong is how many of a project's open failures are looked at, similarShown
	// how many are shown.
	similarAmong = 200
	similarShown = 3
	// similarText is how many bytes of what is typed count.
	similarText = 2000
)

// knownFailure is what a checker learns of a failure: nothing of who tested it
// when.
type knownFailure struct {
	Key         string       `json:"key"`
	Description string       `json:"description"`
	Severity    job.Severity `json:"severity"`
	Tests       int          `json:"tests"` // in so many it failed
	Since       time.Time    `json:"since"`
}

// similar gives the open failures of the claimed test's project that what is typed
// sounds like, to who holds the claim. What the list or a finding is about
// already is none of them.
func (d Deps) similar(r *ui.Request) (ui.Answer, error) {
	c, mine, err := d.held(r.Context(), r)
	switch {
	case err != nil:
		return ui.Answer{}, err
	case !mine || c.Waiting:
		return ui.Answer{}, domain.NotFound("test")
	}
	out := []knownFailure{}
	if c.ProjectID == "" {
		return ui.Answer{JSON: out, Secret: true}, nil
	}
	open, err := d.Reads.History.Open(r.Context(), c.AccountID, c.ProjectID, similarAmong)
	if err != nil {
		return ui.Answer{}, err
	}
	told := map[string]bool{}
	for _, items := range [][]job.ReportItem{c.Checklist, c.Findings} {
		for _, i := range items {
			told[i.Key] = true
		}
	}
	var others []history.OpenFailure
	for _, f := range open {
		if !told[f.Key] {
			others = append(others, f)
		}
	}
	text := r.FormValue("text")
	for _, f := range history.Similar(others, text[:min(len(text), similarText)], similarShown) {
		out = append(out, knownFailure{Key: f.Key, Description: f.Description, Severity: f.Severity, Tests: f.FailedTests, Since: f.FirstFailedAt})
	}
	return ui.Answer{JSON: out, Secret: true}, nil
}

package words

import (
	"strings"
	"time"

	"humanqa/domain/job"
	"humanqa/httpapi/ui"
	"humanqa/projections/jobs"
)

// JobLine is a test as lists show it.
type JobLine struct {
	ID, Title, Host string
	Type            string
	Urgent          bool
	State           ui.State
	CreatedAt       time.Time
	// Empty if not known, or if the test has no result yet.
	Asked, Verdicts, Commit string
	Took                    time.Duration
}

// JobState is the state of a test as pages show it.
func JobState(j jobs.Summary) ui.State {
	if j.Asks {
		return ui.NewState("Question", "warn", "person")
	}
	switch j.Status {
	case job.StatusPending:
		return ui.NewState("Waiting", "", "clock")
	case job.StatusClaimed:
		return ui.NewState("Testing", "live", "")
	case job.StatusCancelled:
		return ui.NewState("Cancelled", "", "skip")
	case job.StatusFailed:
		return ui.NewState("Not tested", "warn", "alert")
	case job.StatusCompleted, job.StatusVoided: // a voided job is never shown
	}
	switch j.OverallStatus {
	case job.OverallPass:
		return ui.NewState("Passed", "pass", "check")
	case job.OverallFail:
		return ui.NewState("Failed", "fail", "cross")
	}
	return ui.NewState("Inconclusive", "warn", "skip")
}

// LineOf is the test as a list shows it.
func LineOf(j jobs.Summary) JobLine {
	return JobLine{
		ID: j.ID, Title: j.Title, Host: ui.HostOf(j.URL), Type: j.Type.Title(), Urgent: j.Urgent,
		State: JobState(j), CreatedAt: j.CreatedAt,
	}
}

// OneLine puts a text on one line, so that its author cannot add lines to the page's own.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

package report

import (
	"fmt"
	"strings"
	"time"

	"humanqa/domain/job"
	"humanqa/domain/retention"
	"humanqa/projections/jobs"
)

// Job is a job that has ended, with its report if it has one.
type Job struct {
	jobs.Outline
	Report *jobs.Report
	Page   string // of the report, for people
	// Gone is the evidence that is kept no longer. Its links answer 410, and formats for
	// people show its words in their place.
	Gone []retention.Gone
}

// reason says in words why a job has no report.
func (t Job) reason() string {
	switch {
	case t.CancelReason != "":
		return fmt.Sprintf("the job was cancelled (%s)", t.CancelReason)
	case t.FailReason != "" && t.FailNote != "":
		return fmt.Sprintf("the job failed (%s): %s", t.FailReason, strings.ReplaceAll(t.FailNote, "\n", "; "))
	case t.FailReason != "":
		return fmt.Sprintf("the job failed (%s)", t.FailReason)
	}
	return fmt.Sprintf("the job is %s", t.Status)
}

// span is when the test began and ended, as far as that is known.
func (t Job) span() (from, to time.Time) {
	from = t.CreatedAt
	if t.ClaimedAt != nil {
		from = *t.ClaimedAt
	}
	to = from
	for _, at := range []*time.Time{t.CompletedAt, t.CancelledAt, t.FailedAt} {
		if at != nil {
			to = *at
		}
	}
	return from, to
}

// verdict says why an item did not pass: its note, else its reason, else its description.
func verdict(i job.ReportItem) string {
	switch {
	case i.Note != "":
		return i.Note
	case i.Reason != "":
		return i.Reason
	}
	return i.Description
}

package jobpage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"humanqa/domain/job"
	"humanqa/httpapi/ui"
	"humanqa/projections/jobs"
)

// prospect describes the expected wait for a checker; empty for a test that waits for none.
func (d Deps) prospect(ctx context.Context, j jobs.Job) (string, error) {
	if j.Status != job.StatusPending || j.Type.Automatic() || j.Sandbox {
		return "", nil
	}
	p, err := d.Reads.Overall.Prospect(ctx, j.AccountID, j.Type, j.Urgent, d.Now())
	if err != nil {
		return "", err
	}
	words := "No checker is online right now."
	if p.Online {
		words = "Checkers are online."
	}
	if p.Typical > 0 {
		words += " Similar tests recently took about " + ui.Span(p.Typical) + "."
	}
	return words, nil
}

// tell puts the state of the test into words.
func (v *jobView) tell(now time.Time) {
	checked := len(v.Items) - v.Pending
	switch v.Status {
	case job.StatusPending:
		v.Heading, v.Saying = "Waiting for a checker", "Due "+ui.Until(now, v.DueAt)+", or your credits are refunded."
		switch {
		case v.ByAI:
			v.Heading, v.Saying = "The AI is looking at the page", "This takes a minute or two."
		case v.RequeueCount > 0:
			v.Heading = "Back in the queue"
		case len(v.Items) == 0:
			v.Saying = "The checklist is being written."
		}
		if now.After(v.DueAt) {
			v.Saying = "The test is overdue. It returns to the queue, or your credits are refunded."
		}
	case job.StatusClaimed:
		v.Heading = "A checker is testing"
		if v.Open != nil {
			v.Heading = "The checker has a question"
			v.Saying = fmt.Sprintf("%d of %s checked. The time limit is paused until you answer.", checked, ui.Count(len(v.Items), "item"))
			return
		}
		v.Saying = fmt.Sprintf("%d of %s checked, due %s.", checked, ui.Count(len(v.Items), "item"), ui.Until(now, v.DueAt))
	case job.StatusCancelled:
		v.Heading, v.Saying = "Cancelled", refundWords(v.Job)
	case job.StatusFailed:
		v.Heading = "Could not be tested"
		v.Saying = strings.TrimSpace(job.FailSentence(v.FailReason) + " " + refundWords(v.Job))
	case job.StatusCompleted, job.StatusVoided:
		switch v.OverallStatus {
		case job.OverallFail:
			v.Heading = ui.Count(v.Fail, "problem") + " found"
		case job.OverallPass:
			v.Heading = "All tested items passed"
		default:
			v.Heading = "No item could be tested"
		}
		if v.CompletedAt != nil {
			v.Saying = "Tested in " + took(v.Job) + "."
		}
	}
}

func refundWords(j jobs.Job) string {
	if back := j.Refunded; back > 0 {
		return ui.Credits(back) + " refunded."
	}
	return ""
}

// took is the time that the checker worked, in words.
func took(j jobs.Job) string {
	from := j.CreatedAt
	if j.ClaimedAt != nil {
		from = *j.ClaimedAt
	}
	d := j.CompletedAt.Sub(from)
	if d < time.Minute {
		return "less than a minute"
	}
	return ui.Count(int(d.Round(time.Minute)/time.Minute), "minute")
}

package jobpage

import (
	"context"
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

// Failed says why the test failed.
func (v jobView) Failed() string { return job.FailSentence(v.FailReason) }

// Worked is the time from the claim to the report; of a review, from its request.
func (v jobView) Worked() time.Duration {
	if v.ClaimedAt == nil {
		return v.CompletedAt.Sub(v.CreatedAt)
	}
	return v.CompletedAt.Sub(*v.ClaimedAt)
}

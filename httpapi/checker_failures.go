package httpapi

import (
	"context"
	"net/http"
	"slices"
	"unicode/utf8"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/projections/history"
)

const (
	// failuresAmong is how many of a project's open failures are looked at.
	failuresAmong = 200
	// maxFailureText is how many characters may say what a failure sounds like.
	maxFailureText = 2000
)

// KnownFailure is what a checker learns of an open failure: nothing of who tested
// it, and in which test.
type KnownFailure struct {
	Key           string       `json:"key"` // a finding that names it goes on with its lineage
	Description   string       `json:"description"`
	Severity      job.Severity `json:"severity"`
	FailedTests   int          `json:"failedTests"`
	FirstFailedAt timestamp    `json:"firstFailedAt"`
}

type knownFailuresBody struct {
	JobID        string         `json:"jobId"`
	OpenFailures []KnownFailure `json:"openFailures"`
}

// knownFailures is GET /v1/checker/jobs/:id/open-failures.
func (a *API) knownFailures(r *request) (answer, error) {
	var p problems
	q := r.query(&p)
	text, limit := q.text("text"), q.integer("limit", 20, 1, 100)
	if n := utf8.RuneCountInString(text); n > maxFailureText {
		p.add("text", "must have at most %d characters, has %d", maxFailureText, n)
	}
	if err := p.err(); err != nil {
		return answer{}, err
	}
	known, err := a.KnownFailures(r.Context(), r.caller.checkerID, r.vars["id"], text, limit)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, knownFailuresBody{JobID: r.vars["id"], OpenFailures: known})
}

// KnownFailures gives the open failures of the project of the job that the checker
// holds, the newest first, or those that a text sounds like, the likest first. What
// the list or a finding is about already is none of them.
func (a *API) KnownFailures(ctx context.Context, checkerID, jobID, text string, limit int) ([]KnownFailure, error) {
	c, held, err := a.commands.LiveClaim(ctx, checkerID)
	switch {
	case err != nil:
		return nil, err
	case !held || c.JobID != jobID:
		return nil, domain.NotFound("job")
	case c.Waiting:
		return nil, job.NotStarted()
	}
	known := []KnownFailure{}
	if c.ProjectID == "" {
		return known, nil
	}
	open, err := a.reads.History.Open(ctx, c.AccountID, c.ProjectID, failuresAmong)
	if err != nil {
		return nil, err
	}
	told := map[string]bool{}
	for _, items := range [][]job.ReportItem{c.Checklist, c.Findings} {
		for _, i := range items {
			told[i.Key] = true
		}
	}
	open = slices.DeleteFunc(open, func(f history.OpenFailure) bool { return told[f.Key] })
	if text != "" {
		open = history.Similar(open, text, limit)
	}
	for _, f := range open[:min(len(open), limit)] {
		known = append(known, KnownFailure{
			Key: f.Key, Description: f.Description, Severity: f.Severity, FailedTests: f.FailedTests, FirstFailedAt: timestamp(f.FirstFailedAt),
		})
	}
	return known, nil
}

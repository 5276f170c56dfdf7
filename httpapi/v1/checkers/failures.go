package checkers

import (
	"net/http"
	"unicode/utf8"

	"humanqa/domain/job"
	"humanqa/httpapi/wire"
)

const (
	// maxFailureText is how many characters may say what a failure sounds like.
	maxFailureText = 2000
)

// knownFailure is what a checker learns of an open failure: nothing of who tested
// it, and in which test.
type knownFailure struct {
	Key           string         `json:"key"` // a finding that names it goes on with its lineage
	Description   string         `json:"description"`
	Severity      job.Severity   `json:"severity"`
	FailedTests   int            `json:"failedTests"`
	FirstFailedAt wire.Timestamp `json:"firstFailedAt"`
}

type knownFailuresBody struct {
	JobID        string         `json:"jobId"`
	OpenFailures []knownFailure `json:"openFailures"`
}

// KnownFailures is GET /v1/checker/jobs/:id/open-failures.
func (a *Handlers) KnownFailures(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	q := r.Query(&p)
	text, limit := q.Text("text"), q.Integer("limit", 20, 1, 100)
	if n := utf8.RuneCountInString(text); n > maxFailureText {
		p.Add("text", "must have at most %d characters, has %d", maxFailureText, n)
	}
	if err := p.Err(); err != nil {
		return wire.Answer{}, err
	}
	known, err := a.reads.History.KnownTo(r.Context(), a.commands, r.Caller.CheckerID, r.Vars["id"], text, limit)
	if err != nil {
		return wire.Answer{}, err
	}
	out := knownFailuresBody{JobID: r.Vars["id"], OpenFailures: []knownFailure{}}
	for _, f := range known {
		out.OpenFailures = append(out.OpenFailures, knownFailure{
			Key: f.Key, Description: f.Description, Severity: f.Severity, FailedTests: f.FailedTests,
			FirstFailedAt: wire.Timestamp(f.FirstFailedAt),
		})
	}
	return wire.Reply(http.StatusOK, out)
}

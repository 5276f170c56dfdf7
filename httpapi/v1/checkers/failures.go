package checkers

import (
	"net/http"
	"unicode/utf8"

	"humanqa/httpapi/report"
	"humanqa/httpapi/wire"
)

// maxFailureText bounds the text that describes a failure, in characters.
const maxFailureText = 2000

type knownFailuresBody struct {
	JobID        string                `json:"jobId"`
	OpenFailures []report.KnownFailure `json:"openFailures"`
}

// knownFailures is GET /v1/checker/jobs/:id/open-failures.
func (a *Handlers) knownFailures(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	q := r.Query(&p)
	text, limit := q.Text("text"), q.Integer("limit", 20, 1, 100)
	if n := utf8.RuneCountInString(text); n > maxFailureText {
		p.Add("text", "must have at most %d characters, has %d", maxFailureText, n)
	}
	if err := p.Err(); err != nil {
		return wire.Answer{}, err
	}
	known, err := a.Reads.History.KnownTo(r.Context(), a.Commands, r.Caller.CheckerID, r.Vars["id"], text, limit)
	return wire.ReplyUnless(err, http.StatusOK, knownFailuresBody{
		JobID: r.Vars["id"], OpenFailures: wire.List(known, report.KnownFailureOf),
	})
}

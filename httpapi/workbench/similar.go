package workbench

import (
	"humanqa/domain/job"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
)

const (
	// similarShown is how many open failures are shown while somebody types.
	similarShown = 3
	// similarText is how many bytes of what is typed count.
	similarText = 2000
)

// knownFailure is what the page's script shows of an open failure: nothing of who
// tested it, and in which test.
type knownFailure struct {
	Key           string         `json:"key"`
	Description   string         `json:"description"`
	Severity      job.Severity   `json:"severity"`
	FailedTests   int            `json:"failedTests"`
	FirstFailedAt wire.Timestamp `json:"firstFailedAt"`
}

// similar gives the open failures of the claimed test's project that what is typed
// sounds like, to who holds the claim.
func (d Deps) similar(r *ui.Request) (ui.Answer, error) {
	text := r.FormValue("text")
	known, err := d.Reads.History.KnownTo(r.Context(), d.Commands, r.Person.CheckerID(), r.PathValue("id"),
		text[:min(len(text), similarText)], similarShown)
	if err != nil {
		return ui.Answer{}, err
	}
	shown := []knownFailure{}
	for _, f := range known {
		shown = append(shown, knownFailure{
			Key: f.Key, Description: f.Description, Severity: f.Severity, FailedTests: f.FailedTests,
			FirstFailedAt: wire.Timestamp(f.FirstFailedAt),
		})
	}
	return ui.Answer{JSON: shown, Secret: true}, nil
}

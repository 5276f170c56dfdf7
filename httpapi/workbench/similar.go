package workbench

import (
	"humanqa/httpapi/report"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
)

const (
	// similarShown is how many open failures are shown while somebody types.
	similarShown = 3
	// similarText is how many bytes of what is typed count.
	similarText = 2000
)

// similar gives the open failures of the claimed test's project that what is typed
// sounds like, to who holds the claim.
func (d Deps) similar(r *ui.Request) (ui.Answer, error) {
	text := r.FormValue("text")
	known, err := d.Reads.History.KnownTo(r.Context(), d.Commands, r.Person.CheckerID(), r.PathValue("id"),
		text[:min(len(text), similarText)], similarShown)
	return ui.Answer{JSON: wire.List(known, report.KnownFailureOf), Secret: true}, err
}

package workbench

import (
	"humanqa/httpapi/report"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
)

const (
	// similarShown bounds the open failures that are shown while a person types.
	similarShown = 3
	// similarText bounds the typed text that counts, in bytes.
	similarText = 2000
)

// similar gives the holder of a claim the open failures of the test's project that are
// similar to the typed text.
func (d Deps) similar(r *ui.Request) (ui.Answer, error) {
	text := r.FormValue("text")
	known, err := d.Reads.History.KnownTo(r.Context(), d.Commands, r.Person.CheckerID(), r.PathValue("id"),
		text[:min(len(text), similarText)], similarShown)
	return ui.Answer{JSON: wire.List(known, report.KnownFailureOf), Secret: true}, err
}

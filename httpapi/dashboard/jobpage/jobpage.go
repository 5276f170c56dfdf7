// Package jobpage has the page of a test, live and as a report: its recordings,
// questions, links to share and the replay of its events.
package jobpage

import (
	"embed"

	"humanqa/httpapi/dashboard/deps"
	"humanqa/httpapi/report"
	"humanqa/httpapi/ui"
)

// Templates are the package's, for ui.Config.
//
//go:embed templates/*.html
var Templates embed.FS

// Deps are the dependencies of the pages.
type Deps deps.Deps

// reports reads reports, with links that work.
func (d Deps) reports() report.Reader {
	return report.Reader{Jobs: d.Reads.Jobs, Links: d.Evidence, BaseURL: d.BaseURL}
}

// Files are the formats to export the report in.
func (jobView) Files() []report.Format { return report.Files() }

// Pages are the pages of the package.
func Pages(d Deps) []ui.Page {
	aTest, aShared := ui.About("test", d.Reads.Jobs.Job), ui.With(d.sharedJob)
	return []ui.Page{
		{Method: "GET", Pattern: "/dashboard/jobs/{id}", For: ui.Viewers, Handle: d.job},
		{Method: "GET", Pattern: "/dashboard/jobs/{id}/report/{format}", For: ui.Viewers, Handle: aTest(d.reportFile)},
		{Method: "GET", Pattern: "/dashboard/jobs/{id}/evidence/{evidence}", For: ui.Viewers, Handle: aTest(d.evidenceOf)},
		{Method: "GET", Pattern: "/dashboard/jobs/{id}/recordings/{recording}", For: ui.Viewers, Handle: aTest(d.film)},
		{Method: "GET", Pattern: "/dashboard/jobs/{id}/recordings/{recording}/marks", For: ui.Viewers, Handle: aTest(d.filmMarks)},
		{Method: "GET", Pattern: "/dashboard/jobs/{id}/replay", For: ui.Viewers, Handle: aTest(d.replay)},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/share", For: ui.Developers, Handle: aTest(ui.Changing(d.share))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/share/end", For: ui.Developers, Says: "The link is ended.",
			Handle: aTest(d.endShare)},
		{Method: "GET", Pattern: "/shared/{token}", Handle: aShared(d.shared)},
		{Method: "GET", Pattern: "/shared/{token}/evidence/{evidence}", Handle: aShared(d.sharedPicture)},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/retest", For: ui.Developers, Says: "The test is submitted.",
			Handle: aTest(ui.Changing(d.retest))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/cancel", For: ui.Developers, Says: "The test is cancelled.",
			Handle: aTest(ui.Changing(d.cancel))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/rating", For: ui.Developers, Says: "Saved.", Handle: aTest(ui.Changing(d.rate))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/disputes", For: ui.Developers, Says: "Your objection is sent.",
			Handle: aTest(ui.Changing(d.dispute))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/questions/{question}", For: ui.Developers, Says: "The answer is sent.",
			Handle: aTest(ui.Changing(d.answer))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/fixed", For: ui.Developers, Handle: aTest(ui.Changing(d.fixed))},
	}
}

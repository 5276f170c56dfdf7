// Package dashboard has the pages of an account's people: the overview, lists, forms,
// sessions and credits. Below it jobpage has the page of a test, projects those of
// projects, and settings those of the account.
//
// Each file is one subject: its pages above, its forms below. An id is searched in
// every account of the person, so a link opens for every person with the right to it.
// For all others it leads nowhere.
package dashboard

import (
	"embed"
	"io/fs"
	"slices"

	"humanqa/domain"
	"humanqa/httpapi/dashboard/deps"
	"humanqa/httpapi/dashboard/jobpage"
	"humanqa/httpapi/dashboard/projects"
	"humanqa/httpapi/ui"
)

//go:embed templates/*.html
var templates embed.FS

// Templates are those of the package and of the two below it, for ui.Config.
var Templates = []fs.FS{templates, jobpage.Templates, projects.Templates}

// Deps are the dependencies of the pages.
type Deps deps.Deps

// Pages are the pages of the package and of the two below it.
func Pages(d Deps) []ui.Page {
	aTest, aBatch := ui.About("test", d.Reads.Jobs.Job), ui.About("batch", d.Reads.Jobs.Batch)
	aSession, aChoice := ui.About("session", d.Reads.Sessions.Session), ui.With(d.ticked)
	pages := []ui.Page{
		{Method: "GET", Pattern: "/dashboard", For: ui.Viewers, Handle: d.overview},
		{Method: "POST", Pattern: "/dashboard/notices/seen", For: ui.Viewers, Handle: d.markSeen},
		{Method: "POST", Pattern: "/dashboard/refused/test", For: ui.Developers, Says: "The tests are submitted.",
			Handle: ui.WhileOpen(d.testRefused)},
		{Method: "POST", Pattern: "/dashboard/account", For: ui.Viewers, Handle: d.switchAccount},

		{Method: "GET", Pattern: "/dashboard/find", For: ui.Viewers, Handle: d.find},

		{Method: "GET", Pattern: "/dashboard/jobs", For: ui.Viewers, Handle: d.jobs},
		{Method: "GET", Pattern: "/dashboard/jobs/chosen", For: ui.Developers, Handle: d.chosen},
		{Method: "POST", Pattern: "/dashboard/jobs/cancel", For: ui.Developers, Says: "What waited is cancelled.",
			Handle: ui.WhileOpen(aChoice(d.cancelChosen))},
		{Method: "POST", Pattern: "/dashboard/jobs/retest", For: ui.Developers, Says: "The batch is submitted.",
			Handle: ui.WhileOpen(aChoice(d.retestChosen))},
		{Method: "POST", Pattern: "/dashboard/views", For: ui.Viewers, Says: "Saved.", Handle: d.keepView},
		{Method: "POST", Pattern: "/dashboard/views/drop", For: ui.Viewers, Says: "The view was removed.", Handle: d.dropView},
		{Method: "GET", Pattern: "/dashboard/jobs/new", For: ui.Developers, Handle: d.newHosted(testForm)},
		{Method: "POST", Pattern: "/dashboard/jobs", For: ui.Developers, Says: "The test is submitted.",
			Handle: ui.WhileOpen(d.startHosted(testForm))},
		{Method: "POST", Pattern: "/dashboard/jobs/preview", For: ui.Developers, Handle: d.previewHosted(testForm)},
		{Method: "POST", Pattern: "/dashboard/jobs/draft", For: ui.Developers, Handle: d.draft(testDraft)},

		{Method: "GET", Pattern: "/dashboard/sessions", For: ui.Viewers, Handle: d.sessions},
		{Method: "GET", Pattern: "/dashboard/sessions/new", For: ui.Developers, Handle: d.newHosted(sessionForm)},
		{Method: "POST", Pattern: "/dashboard/sessions", For: ui.Developers, Handle: ui.WhileOpen(d.startHosted(sessionForm))},
		{Method: "POST", Pattern: "/dashboard/sessions/preview", For: ui.Developers, Handle: d.previewHosted(sessionForm)},
		{Method: "POST", Pattern: "/dashboard/sessions/draft", For: ui.Developers, Handle: d.draft(sessionDraft)},
		{Method: "POST", Pattern: "/dashboard/sessions/{id}/ready", For: ui.Developers, Handle: aSession(d.gather)},

		{Method: "GET", Pattern: "/dashboard/batches", For: ui.Viewers, Handle: d.batches},
		{Method: "GET", Pattern: "/dashboard/batches/new", For: ui.Developers, Handle: d.newBatch},
		{Method: "POST", Pattern: "/dashboard/batches", For: ui.Developers, Handle: ui.WhileOpen(d.startBatch)},
		{Method: "POST", Pattern: "/dashboard/batches/preview", For: ui.Developers, Handle: d.previewBatch},
		{Method: "POST", Pattern: "/dashboard/batches/draft", For: ui.Developers, Handle: d.draft(batchDraft)},
		{Method: "GET", Pattern: "/dashboard/batches/{id}", For: ui.Viewers, Handle: aBatch(d.batch)},
		{Method: "POST", Pattern: "/dashboard/batches/{id}/cancel", For: ui.Developers, Says: "What waited is cancelled.",
			Handle: aBatch(ui.Changing(d.cancelBatch))},
		{Method: "POST", Pattern: "/dashboard/batches/{id}/retest", For: ui.Developers, Says: "The batch is submitted.",
			Handle: aBatch(ui.Changing(d.retestBatch))},

		{Method: "GET", Pattern: "/dashboard/sandbox", For: ui.Viewers, Handle: d.sandbox},
		{Method: "POST", Pattern: "/dashboard/sandbox/clock", For: ui.Developers, Handle: d.advance},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/play", For: ui.Developers, Handle: aTest(ui.Changing(d.play))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/expire", For: ui.Developers, Handle: aTest(ui.Changing(d.expire))},

		{Method: "GET", Pattern: "/dashboard/credits", For: ui.Viewers, Handle: d.credits},
		{Method: "POST", Pattern: "/dashboard/credits/low", For: ui.Owners, Says: "Saved.", Handle: ui.WhileOpen(d.setLow)},
		{Method: "GET", Pattern: "/dashboard/credits/statement", For: ui.Viewers, Handle: d.statement},

		{Method: "GET", Pattern: "/dashboard/notifications/news", For: ui.Viewers, Handle: d.news},

		{Method: "GET", Pattern: "/dashboard/looks", For: ui.Owners, Handle: d.looks},
		{Method: "GET", Pattern: "/dashboard/activity", For: ui.Owners, Handle: d.activity},
		{Method: "GET", Pattern: "/dashboard/secrets", For: ui.Owners, Handle: d.secrets},
	}
	return slices.Concat(pages, jobpage.Pages(jobpage.Deps(d)), projects.Pages(projects.Deps(d)))
}

func (d Deps) switchAccount(r *ui.Request) (ui.Answer, error) {
	for _, m := range r.Accounts {
		if m.AccountID == r.PostFormValue("account") {
			err := d.Credentials.LookAt(r.Context(), r.Session.ID, m.AccountID)
			return ui.Go("/dashboard"), err
		}
	}
	return ui.Answer{}, domain.NotFound("account")
}

// Package dashboard has the pages of an account's people: tests live and as reports,
// projects, sessions and credits. The account's settings are in dashboard/settings.
//
// Each file is one subject: its pages above, its forms below. An id is searched in
// every account of the person, so a link opens for every person with the right to it.
// For all others it leads nowhere.
package dashboard

import (
	"embed"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/input"
	"humanqa/httpapi/report"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/internal/credential"
	"humanqa/internal/preferences"
	"humanqa/projections"
	"humanqa/webhooks"
)

// Templates are the package's, for ui.Config.
//
//go:embed templates/*.html
var Templates embed.FS

// Deps is what the pages stand on. All fields are required.
type Deps struct {
	Commands    *command.Service
	Reads       *projections.Reads
	Limits      *input.Limits
	Evidence    *evidence.Service
	Fresh       *admit.Freshness
	PastReads   *wire.Quota // of pages that read a whole stream
	Credentials *credential.Store
	Preferences *preferences.Store
	Deliveries  *webhooks.Log
	Now         func() time.Time
	// BaseURL starts the links that are shown to be copied.
	BaseURL string
}

// reports reads reports, with links that work.
func (d Deps) reports() report.Reader {
	return report.Reader{Jobs: d.Reads.Jobs, Links: d.Evidence, BaseURL: d.BaseURL}
}

// Pages are the pages of the package.
func Pages(d Deps) []ui.Page {
	aTest, aProject := ui.About("test", d.Reads.Jobs.Job), ui.About("project", d.Reads.Projects.Get)
	aLoop, aSession := ui.About("loop", d.Reads.Loops.Session), ui.About("session", d.Reads.Sessions.Session)
	aBatch := ui.About("batch", d.Reads.Jobs.Batch)
	return []ui.Page{
		{Method: "GET", Pattern: "/dashboard", For: ui.Viewers, Handle: d.overview},
		{Method: "POST", Pattern: "/dashboard/notices/seen", For: ui.Viewers, Handle: d.markSeen},
		{Method: "POST", Pattern: "/dashboard/account", For: ui.Viewers, Handle: d.switchAccount},

		{Method: "GET", Pattern: "/dashboard/find", For: ui.Viewers, Handle: d.find},

		{Method: "GET", Pattern: "/dashboard/jobs", For: ui.Viewers, Handle: d.jobs},
		{Method: "POST", Pattern: "/dashboard/views", For: ui.Viewers, Says: "Saved.", Handle: d.keepView},
		{Method: "POST", Pattern: "/dashboard/views/drop", For: ui.Viewers, Says: "The view was removed.", Handle: d.dropView},
		{Method: "GET", Pattern: "/dashboard/jobs/new", For: ui.Developers, Handle: d.newTest},
		{Method: "POST", Pattern: "/dashboard/jobs", For: ui.Developers, Says: "The test is submitted.", Handle: d.startTest},
		{Method: "POST", Pattern: "/dashboard/jobs/preview", For: ui.Developers, Handle: d.previewTest},
		{Method: "POST", Pattern: "/dashboard/jobs/draft", For: ui.Developers, Handle: d.draft(testDraft)},
		{Method: "GET", Pattern: "/dashboard/jobs/{id}", For: ui.Viewers, Handle: d.job},
		{Method: "GET", Pattern: "/dashboard/jobs/{id}/report/{format}", For: ui.Viewers, Handle: aTest(d.reportFile)},
		{Method: "GET", Pattern: "/dashboard/jobs/{id}/evidence/{evidence}", For: ui.Viewers, Handle: aTest(d.evidenceOf)},
		{Method: "GET", Pattern: "/dashboard/jobs/{id}/recordings/{recording}", For: ui.Viewers, Handle: d.film},
		{Method: "GET", Pattern: "/dashboard/jobs/{id}/recordings/{recording}/marks", For: ui.Viewers, Handle: d.filmMarks},
		{Method: "GET", Pattern: "/dashboard/jobs/{id}/replay", For: ui.Viewers, Handle: aTest(d.replay)},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/share", For: ui.Developers, Handle: aTest(ui.Changing(d.share))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/share/end", For: ui.Developers, Says: "The link is ended.",
			Handle: aTest(d.endShare)},
		{Method: "GET", Pattern: "/shared/{token}", Handle: d.shared},
		{Method: "GET", Pattern: "/shared/{token}/evidence/{evidence}", Handle: d.sharedPicture},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/retest", For: ui.Developers, Says: "The test is submitted.",
			Handle: aTest(ui.Changing(d.retest))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/cancel", For: ui.Developers, Says: "The test is cancelled.",
			Handle: aTest(ui.Changing(d.cancel))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/rating", For: ui.Developers, Says: "Saved.", Handle: aTest(ui.Changing(d.rate))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/questions/{question}", For: ui.Developers, Says: "The answer is sent.",
			Handle: aTest(ui.Changing(d.answer))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/fixed", For: ui.Developers, Handle: aTest(ui.Changing(d.fixed))},

		{Method: "GET", Pattern: "/dashboard/projects", For: ui.Viewers, Handle: d.projects},
		{Method: "POST", Pattern: "/dashboard/projects", For: ui.Developers, Says: "The project is created.", Handle: d.createProject},
		{Method: "GET", Pattern: "/dashboard/projects/{id}", For: ui.Viewers, Handle: d.project},
		{Method: "POST", Pattern: "/dashboard/projects/{id}", For: ui.Developers, Says: "Saved.",
			Handle: aProject(ui.Changing(d.updateProject))},
		{Method: "GET", Pattern: "/dashboard/sessions", For: ui.Viewers, Handle: d.sessions},
		{Method: "GET", Pattern: "/dashboard/sessions/new", For: ui.Developers, Handle: d.newSession},
		{Method: "POST", Pattern: "/dashboard/sessions", For: ui.Developers, Handle: d.startSession},
		{Method: "POST", Pattern: "/dashboard/sessions/preview", For: ui.Developers, Handle: d.previewSession},
		{Method: "POST", Pattern: "/dashboard/sessions/draft", For: ui.Developers, Handle: d.draft(sessionDraft)},
		{Method: "POST", Pattern: "/dashboard/sessions/{id}/ready", For: ui.Developers, Handle: aSession(d.gather)},

		{Method: "GET", Pattern: "/dashboard/batches", For: ui.Viewers, Handle: d.batches},
		{Method: "GET", Pattern: "/dashboard/batches/new", For: ui.Developers, Handle: d.newBatch},
		{Method: "POST", Pattern: "/dashboard/batches", For: ui.Developers, Handle: d.startBatch},
		{Method: "POST", Pattern: "/dashboard/batches/preview", For: ui.Developers, Handle: d.previewBatch},
		{Method: "POST", Pattern: "/dashboard/batches/draft", For: ui.Developers, Handle: d.draft(batchDraft)},
		{Method: "GET", Pattern: "/dashboard/batches/{id}", For: ui.Viewers, Handle: aBatch(d.batch)},

		{Method: "GET", Pattern: "/dashboard/loops/{id}", For: ui.Viewers, Handle: aLoop(d.loop)},
		{Method: "POST", Pattern: "/dashboard/loops/{id}/end", For: ui.Developers, Handle: aLoop(ui.Changing(d.endLoop))},

		{Method: "GET", Pattern: "/dashboard/sandbox", For: ui.Viewers, Handle: d.sandbox},
		{Method: "POST", Pattern: "/dashboard/sandbox/clock", For: ui.Developers, Handle: d.advance},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/play", For: ui.Developers, Handle: aTest(ui.Changing(d.play))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/expire", For: ui.Developers, Handle: aTest(ui.Changing(d.expire))},

		{Method: "GET", Pattern: "/dashboard/credits", For: ui.Viewers, Handle: d.credits},
		{Method: "POST", Pattern: "/dashboard/credits/low", For: ui.Owners, Says: "Saved.", Handle: d.setLow},
		{Method: "GET", Pattern: "/dashboard/credits/statement", For: ui.Viewers, Handle: d.statement},

		{Method: "GET", Pattern: "/dashboard/notifications/news", For: ui.Viewers, Handle: d.news},

		{Method: "GET", Pattern: "/dashboard/looks", For: ui.Owners, Handle: d.looks},
	}
}

func (d Deps) switchAccount(r *ui.Request) (ui.Answer, error) {
	for _, m := range r.Accounts {
		if m.AccountID == r.PostFormValue("account") {
			if err := d.Credentials.LookAt(r.Context(), r.Session.ID, m.AccountID); err != nil {
				return ui.Answer{}, err
			}
			return ui.Go("/dashboard")
		}
	}
	return ui.Answer{}, domain.NotFound("account")
}

// now is the account's time: a sandbox has its own.
func (d Deps) now(r *ui.Request) (time.Time, error) {
	return d.Commands.AccountTime(r.Context(), command.Cause{AccountID: r.Account.ID, Sandbox: r.Account.Sandbox})
}

// What all pages share, by shorter names.
var (
	wrongs    = ui.Wrongs
	sentences = ui.Sentences
	hostOf    = ui.HostOf
	safeLink  = ui.SafeLink
	pageOf    = ui.PageOf
	newPager  = ui.NewPager
)

// pageSize is how many rows a list shows.
const pageSize = ui.PageSize

type pager = ui.Pager

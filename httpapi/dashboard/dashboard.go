// Package dashboard has the pages of an account's people: tests live and as reports,
// projects, sessions, credits, keys and members.
//
// Each file is one subject: its pages above, its forms below. An id is searched in
// every account of the person, so a link opens for every person with the right to it.
// For all others it leads nowhere.
package dashboard

import (
	"context"
	"embed"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/input"
	"humanqa/httpapi/report"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/internal/clientlogin"
	"humanqa/internal/credential"
	"humanqa/internal/mail"
	"humanqa/internal/preferences"
	"humanqa/projections"
	"humanqa/webhooks"
)

// Templates are the package's, for ui.Config.
//
//go:embed templates/*.html
var Templates embed.FS

// Deps is what the pages stand on. All fields but Mail and DemoKey are required.
type Deps struct {
	Commands    *command.Service
	Reads       *projections.Reads
	Limits      *input.Limits
	Evidence    *evidence.Service
	Fresh       *admit.Freshness
	PastReads   *wire.Quota // of pages that read a whole stream
	Credentials *credential.Store
	Logins      *clientlogin.Store
	Preferences *preferences.Store
	Mail        *mail.Store // nil: the service sends no e-mail
	Deliveries  *webhooks.Log
	Now         func() time.Time
	// BaseURL starts the links that are shown to be copied.
	BaseURL string
	// DemoKey gives the API key that the demo of the service uses; nil or empty: there is no demo.
	DemoKey func() string
}

// reports reads reports, with links that work.
func (d Deps) reports() report.Reader {
	return report.Reader{Jobs: d.Reads.Jobs, Links: d.Evidence, BaseURL: d.BaseURL}
}

// Pages are the pages of the package.
func Pages(d Deps) []ui.Page {
	aTest, aProject := about("test", d.Reads.Jobs.Job), about("project", d.Reads.Projects.Get)
	aLoop, aSession := about("loop", d.Reads.Loops.Session), about("session", d.Reads.Sessions.Session)
	aBatch, aDelivery := about("batch", d.Reads.Jobs.Batch), about("delivery", d.getDelivery)
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
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/share", For: ui.Developers, Handle: aTest(changing(d.share))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/share/end", For: ui.Developers, Says: "The link is ended.",
			Handle: aTest(d.endShare)},
		{Method: "GET", Pattern: "/shared/{token}", Handle: d.shared},
		{Method: "GET", Pattern: "/shared/{token}/evidence/{evidence}", Handle: d.sharedPicture},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/retest", For: ui.Developers, Says: "The test is submitted.",
			Handle: aTest(changing(d.retest))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/cancel", For: ui.Developers, Says: "The test is cancelled.",
			Handle: aTest(changing(d.cancel))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/rating", For: ui.Developers, Says: "Saved.", Handle: aTest(changing(d.rate))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/questions/{question}", For: ui.Developers, Says: "The answer is sent.",
			Handle: aTest(changing(d.answer))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/fixed", For: ui.Developers, Handle: aTest(changing(d.fixed))},

		{Method: "GET", Pattern: "/dashboard/projects", For: ui.Viewers, Handle: d.projects},
		{Method: "POST", Pattern: "/dashboard/projects", For: ui.Developers, Says: "The project is created.", Handle: d.createProject},
		{Method: "GET", Pattern: "/dashboard/projects/{id}", For: ui.Viewers, Handle: d.project},
		{Method: "POST", Pattern: "/dashboard/projects/{id}", For: ui.Developers, Says: "Saved.",
			Handle: aProject(changing(d.updateProject))},
		{Method: "GET", Pattern: "/dashboard/projects/{id}/webhook", For: ui.Viewers, Handle: d.webhook},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook", For: ui.Developers, Says: "Saved.",
			Handle: aProject(changing(d.caughtUp(d.updateWebhook)))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook/enable", For: ui.Developers,
			Handle: aProject(changing(d.caughtUp(d.enableWebhook)))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook/test", For: ui.Developers,
			Handle: aProject(changing(d.caughtUp(d.testWebhook)))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook/replay", For: ui.Developers,
			Handle: aProject(changing(d.caughtUp(d.replayHeld)))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook/drop", For: ui.Developers,
			Handle: aProject(changing(d.caughtUp(d.dropHeld)))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook/rotate", For: ui.Owners, Fresh: true,
			Handle: aProject(changing(d.caughtUp(d.rotateSecret)))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook/finish", For: ui.Owners,
			Handle: aProject(changing(d.caughtUp(d.finishRotation)))},
		{Method: "GET", Pattern: "/dashboard/projects/{id}/webhook/secret", For: ui.Owners, Fresh: true, Handle: aProject(d.webhookSecret)},
		{Method: "GET", Pattern: "/dashboard/deliveries/{id}", For: ui.Viewers, Handle: aDelivery(d.delivery)},
		{Method: "POST", Pattern: "/dashboard/deliveries/{id}/redeliver", For: ui.Developers, Handle: aDelivery(changing(d.redeliver))},

		{Method: "GET", Pattern: "/dashboard/projects/{id}/hook", For: ui.Owners, Fresh: true, Handle: aProject(d.hook)},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/hook/rotate", For: ui.Owners, Fresh: true,
			Handle: aProject(changing(d.rotateHook))},

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
		{Method: "POST", Pattern: "/dashboard/loops/{id}/end", For: ui.Developers, Handle: aLoop(changing(d.endLoop))},

		{Method: "GET", Pattern: "/dashboard/sandbox", For: ui.Viewers, Handle: d.sandbox},
		{Method: "POST", Pattern: "/dashboard/sandbox/clock", For: ui.Developers, Handle: d.advance},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/play", For: ui.Developers, Handle: aTest(changing(d.play))},
		{Method: "POST", Pattern: "/dashboard/jobs/{id}/expire", For: ui.Developers, Handle: aTest(changing(d.expire))},

		{Method: "GET", Pattern: "/dashboard/credits", For: ui.Viewers, Handle: d.credits},
		{Method: "POST", Pattern: "/dashboard/credits/low", For: ui.Owners, Says: "Saved.", Handle: d.setLow},
		{Method: "GET", Pattern: "/dashboard/credits/statement", For: ui.Viewers, Handle: d.statement},

		{Method: "GET", Pattern: "/dashboard/notifications", For: ui.Viewers, Handle: d.notifications},
		{Method: "POST", Pattern: "/dashboard/notifications", For: ui.Viewers, Says: "Saved.", Handle: d.setNotifications},
		{Method: "POST", Pattern: "/dashboard/notifications/link", For: ui.Viewers, Says: "Another link is on its way.",
			Handle: d.askAgain},
		{Method: "GET", Pattern: "/dashboard/notifications/news", For: ui.Viewers, Handle: d.news},
		{Method: "GET", Pattern: "/mail/confirm/{token}", Handle: d.confirmMail},
		{Method: "POST", Pattern: "/mail/confirm/{token}", Handle: d.confirmMailNow},
		{Method: "GET", Pattern: "/mail/stop/{token}", Handle: d.stopMail},
		{Method: "POST", Pattern: "/mail/stop/{token}", Handle: d.stopMailNow},

		{Method: "GET", Pattern: "/dashboard/keys", For: ui.Owners, Handle: d.keys},
		{Method: "POST", Pattern: "/dashboard/keys", For: ui.Owners, Fresh: true, Handle: d.createKey},
		{Method: "POST", Pattern: "/dashboard/keys/revoke", For: ui.Owners, Says: "The key is revoked.", Handle: d.revokeKey},

		{Method: "GET", Pattern: "/dashboard/device", For: ui.Owners, Handle: d.device},
		{Method: "POST", Pattern: "/dashboard/device", For: ui.Owners, Fresh: true, Handle: d.answerDevice},

		{Method: "GET", Pattern: "/dashboard/looks", For: ui.Owners, Handle: d.looks},

		{Method: "GET", Pattern: "/dashboard/members", For: ui.Owners, Handle: d.members},
		{Method: "POST", Pattern: "/dashboard/members", For: ui.Owners, Handle: d.invite},
		{Method: "POST", Pattern: "/dashboard/members/{person}", For: ui.Owners, Says: "Saved.", Handle: d.changeMember},
		{Method: "POST", Pattern: "/dashboard/members/{person}/link", For: ui.Owners, Fresh: true, Handle: d.newLink},
	}
}

// handler answers a page about something.
type handler[T any] func(*ui.Request, T) (ui.Answer, error)

// about finds what a page's path names, for its handler.
func about[T any](
	what string, get func(ctx context.Context, accountID, id string) (T, error),
) func(handler[T]) func(*ui.Request) (ui.Answer, error) {
	return func(handle handler[T]) func(*ui.Request) (ui.Answer, error) {
		return func(r *ui.Request) (ui.Answer, error) {
			found, err := ui.Find(r, what, get)
			if err != nil {
				return ui.Answer{}, err
			}
			return handle(r, found)
		}
	}
}

// changing is the handler of a form, which an account that is suspended must not use.
func changing[T any](handle handler[T]) handler[T] {
	return func(r *ui.Request, found T) (ui.Answer, error) {
		if err := open(r); err != nil {
			return ui.Answer{}, err
		}
		return handle(r, found)
	}
}

// open refuses to change anything in an account that is suspended.
func open(r *ui.Request) error {
	if r.Account.Suspended {
		return domain.Forbidden("%s is suspended", r.Account.Name).WithHint("nothing can be changed until it is reinstated")
	}
	return nil
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

// may says whether the request's person may do what needs the role.
func may(r *ui.Request, role person.Role) bool { return r.May(role) }

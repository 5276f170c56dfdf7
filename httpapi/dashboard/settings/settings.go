// Package settings has the pages on which an account's people set it up: keys, the
// command line, members, e-mail, and the webhooks of projects with their deliveries.
package settings

import (
	"embed"
	"time"

	"humanqa/domain/command"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/ui"
	"humanqa/internal/clientlogin"
	"humanqa/internal/credential"
	"humanqa/internal/mail"
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
	Fresh       *admit.Freshness
	Credentials *credential.Store
	Logins      *clientlogin.Store
	Mail        *mail.Store // nil: the service sends no e-mail
	Deliveries  *webhooks.Log
	Now         func() time.Time
	// BaseURL starts the links that are shown to be copied.
	BaseURL string
	// DemoKey gives the API key that the demo of the service uses; nil or empty: there is no demo.
	DemoKey func() string
}

// Pages are the pages of the package.
func Pages(d Deps) []ui.Page {
	aProject, aDelivery := ui.About("project", d.Reads.Projects.Get), ui.About("delivery", d.getDelivery)
	return []ui.Page{
		{Method: "GET", Pattern: "/dashboard/keys", For: ui.Owners, Handle: d.keys},
		{Method: "POST", Pattern: "/dashboard/keys", For: ui.Owners, Fresh: true, Handle: d.createKey},
		{Method: "POST", Pattern: "/dashboard/keys/revoke", For: ui.Owners, Says: "The key is revoked.", Handle: d.revokeKey},

		{Method: "GET", Pattern: "/dashboard/device", For: ui.Owners, Handle: d.device},
		{Method: "POST", Pattern: "/dashboard/device", For: ui.Owners, Fresh: true, Handle: d.answerDevice},

		{Method: "GET", Pattern: "/dashboard/members", For: ui.Owners, Handle: d.members},
		{Method: "POST", Pattern: "/dashboard/members", For: ui.Owners, Handle: d.invite},
		{Method: "POST", Pattern: "/dashboard/members/{person}", For: ui.Owners, Says: "Saved.", Handle: d.changeMember},
		{Method: "POST", Pattern: "/dashboard/members/{person}/link", For: ui.Owners, Fresh: true, Handle: d.newLink},

		{Method: "GET", Pattern: "/dashboard/notifications", For: ui.Viewers, Handle: d.notifications},
		{Method: "POST", Pattern: "/dashboard/notifications", For: ui.Viewers, Says: "Saved.", Handle: d.setNotifications},
		{Method: "POST", Pattern: "/dashboard/notifications/link", For: ui.Viewers, Says: "Another link is on its way.",
			Handle: d.askAgain},
		{Method: "GET", Pattern: "/mail/confirm/{token}", Handle: d.confirmMail},
		{Method: "POST", Pattern: "/mail/confirm/{token}", Handle: d.confirmMailNow},
		{Method: "GET", Pattern: "/mail/stop/{token}", Handle: d.stopMail},
		{Method: "POST", Pattern: "/mail/stop/{token}", Handle: d.stopMailNow},

		{Method: "GET", Pattern: "/dashboard/projects/{id}/webhook", For: ui.Viewers, Handle: d.webhook},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook", For: ui.Developers, Says: "Saved.",
			Handle: aProject(ui.Changing(d.caughtUp(d.updateWebhook)))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook/enable", For: ui.Developers,
			Handle: aProject(ui.Changing(d.caughtUp(d.enableWebhook)))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook/test", For: ui.Developers,
			Handle: aProject(ui.Changing(d.caughtUp(d.testWebhook)))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook/replay", For: ui.Developers,
			Handle: aProject(ui.Changing(d.caughtUp(d.replayHeld)))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook/drop", For: ui.Developers,
			Handle: aProject(ui.Changing(d.caughtUp(d.dropHeld)))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook/rotate", For: ui.Owners, Fresh: true,
			Handle: aProject(ui.Changing(d.caughtUp(d.rotateSecret)))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook/finish", For: ui.Owners,
			Handle: aProject(ui.Changing(d.caughtUp(d.finishRotation)))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook/headers", For: ui.Owners, Says: "Saved.",
			Handle: aProject(d.caughtUp(d.setHeader))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/webhook/headers/remove", For: ui.Owners, Says: "The header is removed.",
			Handle: aProject(d.caughtUp(d.removeHeader))},
		{Method: "GET", Pattern: "/dashboard/projects/{id}/webhook/secret", For: ui.Owners, Fresh: true, Handle: aProject(d.webhookSecret)},
		{Method: "GET", Pattern: "/dashboard/deliveries/{id}", For: ui.Viewers, Handle: aDelivery(d.delivery)},
		{Method: "POST", Pattern: "/dashboard/deliveries/{id}/redeliver", For: ui.Developers, Handle: aDelivery(ui.Changing(d.redeliver))},

		{Method: "GET", Pattern: "/dashboard/projects/{id}/hook", For: ui.Owners, Fresh: true, Handle: aProject(d.hook)},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/hook/rotate", For: ui.Owners, Fresh: true,
			Handle: aProject(ui.Changing(d.rotateHook))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/hook/signature", For: ui.Owners, Fresh: true, Says: "Saved.",
			Handle: aProject(ui.Changing(d.signHook))},
	}
}

// projectsOffered is how many projects a form offers.
const projectsOffered = 100

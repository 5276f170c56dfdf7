// Package projects has the pages of projects: their tests side by side, loops of
// agents, the webhook with its deliveries, and the deploy hook.
package projects

import (
	"embed"

	"humanqa/httpapi/dashboard/deps"
	"humanqa/httpapi/ui"
)

// Templates are the package's, for ui.Config.
//
//go:embed templates/*.html
var Templates embed.FS

// Deps are the dependencies of the pages.
type Deps deps.Deps

// Pages are the pages of the package.
func Pages(d Deps) []ui.Page {
	aProject, aDelivery := ui.About("project", d.Reads.Projects.Get), ui.About("delivery", d.getDelivery)
	aLoop := ui.About("loop", d.Reads.Loops.Session)
	return []ui.Page{
		{Method: "GET", Pattern: "/dashboard/projects", For: ui.Viewers, Handle: d.projects},
		{Method: "POST", Pattern: "/dashboard/projects", For: ui.Developers, Says: "The project is created.",
			Handle: ui.WhileOpen(d.createProject)},
		{Method: "POST", Pattern: "/dashboard/projects/archive", For: ui.Developers, Says: "What was chosen is archived.",
			Handle: ui.WhileOpen(d.archiveChosen)},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/archive", For: ui.Developers, Says: "The project is archived.",
			Handle: aProject(ui.Changing(d.archive(true)))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/restore", For: ui.Developers, Says: "The project is restored.",
			Handle: aProject(ui.Changing(d.archive(false)))},
		{Method: "GET", Pattern: "/dashboard/projects/{id}", For: ui.Viewers, Handle: d.project},
		{Method: "POST", Pattern: "/dashboard/projects/{id}", For: ui.Developers, Says: "Saved.",
			Handle: aProject(ui.Changing(d.updateProject))},
		{Method: "GET", Pattern: "/dashboard/loops/{id}", For: ui.Viewers, Handle: aLoop(d.loop)},
		{Method: "POST", Pattern: "/dashboard/loops/{id}/end", For: ui.Developers, Handle: aLoop(ui.Changing(d.endLoop))},

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

		{Method: "GET", Pattern: "/dashboard/projects/{id}/chat", For: ui.Viewers, Handle: aProject(d.chat)},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/chat", For: ui.Developers, Says: "Saved.",
			Handle: aProject(ui.Changing(d.setChat))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/chat/test", For: ui.Developers, Handle: aProject(ui.Changing(d.testChat))},

		{Method: "GET", Pattern: "/dashboard/projects/{id}/hook", For: ui.Owners, Fresh: true, Handle: aProject(d.hook)},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/hook/rotate", For: ui.Owners, Fresh: true,
			Handle: aProject(ui.Changing(d.rotateHook))},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/hook/try", For: ui.Owners, Fresh: true, Handle: aProject(d.tryHook)},
		{Method: "POST", Pattern: "/dashboard/projects/{id}/hook/signature", For: ui.Owners, Fresh: true, Says: "Saved.",
			Handle: aProject(ui.Changing(d.signHook))},
	}
}

// Package settings has the pages on which an account's people set it up: keys, the
// command line, members and e-mail.
package settings

import (
	"embed"

	"humanqa/httpapi/dashboard/deps"
	"humanqa/httpapi/ui"
	"humanqa/internal/mail"
)

// Templates are the package's, for ui.Config.
//
//go:embed templates/*.html
var Templates embed.FS

// Deps are the dependencies of the pages.
type Deps deps.Deps

// Pages are the pages of the package.
func Pages(d Deps) []ui.Page {
	aMember := ui.With(d.member)
	return []ui.Page{
		{Method: "GET", Pattern: "/dashboard/keys", For: ui.Owners, Handle: d.keys},
		{Method: "POST", Pattern: "/dashboard/keys", For: ui.Owners, Fresh: true, Handle: ui.WhileOpen(d.createKey)},
		{Method: "POST", Pattern: "/dashboard/keys/revoke", For: ui.Owners, Says: "The key is revoked.", Handle: d.revokeKey},

		{Method: "GET", Pattern: "/dashboard/readers", For: ui.Developers, Handle: d.readers},
		{Method: "POST", Pattern: "/dashboard/readers/forget", For: ui.Developers, Says: "The reader is forgotten.",
			Handle: ui.WhileOpen(d.forgetReader)},

		{Method: "GET", Pattern: "/dashboard/device", For: ui.Owners, Handle: d.device},
		{Method: "POST", Pattern: "/dashboard/device", For: ui.Owners, Fresh: true, Handle: ui.WhileOpen(d.answerDevice)},

		{Method: "GET", Pattern: "/dashboard/evidence", For: ui.Owners, Handle: d.evidence},
		{Method: "POST", Pattern: "/dashboard/evidence", For: ui.Owners, Handle: d.estimateEvidence},
		{Method: "POST", Pattern: "/dashboard/evidence/save", For: ui.Owners, Says: "Saved.", Handle: ui.WhileOpen(d.keepEvidence)},
		{Method: "POST", Pattern: "/dashboard/evidence/hold", For: ui.Owners, Says: "The hold is in place.",
			Handle: ui.WhileOpen(d.holdEvidence)},
		{Method: "POST", Pattern: "/dashboard/evidence/release", For: ui.Owners, Says: "The hold is released.",
			Handle: ui.WhileOpen(d.releaseEvidence)},

		{Method: "GET", Pattern: "/dashboard/members", For: ui.Owners, Handle: d.members},
		{Method: "POST", Pattern: "/dashboard/members", For: ui.Owners, Handle: ui.WhileOpen(d.invite)},
		{Method: "POST", Pattern: "/dashboard/members/{person}", For: ui.Owners, Says: "Saved.",
			Handle: ui.WhileOpen(aMember(d.changeMember))},
		{Method: "POST", Pattern: "/dashboard/members/{person}/link", For: ui.Owners, Fresh: true, Handle: ui.WhileOpen(aMember(d.newLink))},

		{Method: "GET", Pattern: "/dashboard/notifications", For: ui.Viewers, Handle: d.notifications},
		{Method: "POST", Pattern: "/dashboard/notifications", For: ui.Viewers, Says: "Saved.",
			Handle: d.mailing(errNoMail, d.setNotifications)},
		{Method: "POST", Pattern: "/dashboard/notifications/link", For: ui.Viewers, Says: "Another link is on its way.",
			Handle: d.mailing(errNoMail, d.askAgain)},
		{Method: "GET", Pattern: "/mail/confirm/{token}", Handle: d.mailing(mail.ErrNoLink, d.confirmMail)},
		{Method: "POST", Pattern: "/mail/confirm/{token}", Handle: d.mailing(mail.ErrNoLink, d.confirmMailNow)},
		{Method: "GET", Pattern: "/mail/stop/{token}", Handle: d.mailing(mail.ErrNoLink, d.stopMail)},
		{Method: "POST", Pattern: "/mail/stop/{token}", Handle: d.mailing(mail.ErrNoLink, d.stopMailNow)},
	}
}

// projectsOffered bounds the projects that a form offers.
const projectsOffered = 100

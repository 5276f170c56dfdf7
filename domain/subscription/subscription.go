// Package subscription lists the events that a project's list may name. It holds only
// the names, so that the project can check a list. The payloads are in domain/announce.
package subscription

import "slices"

// Account-level events (decisions, "Account events").
const (
	WebhookDisabled    = "account.webhook_disabled"
	CreditsLow         = "account.credits_low"
	SubmissionsRefused = "account.submissions_refused"
)

// Specified are the names of the specification ("Event kinds"); an omitted list
// means all of them.
func Specified() []string {
	return []string{
		"job.created", "job.completed", "job.ai_report_ready", "job.session_ready", "job.session_completed", "loop_session.ended",
	}
}

// Questions are events about a checker's questions. A list may name them, and an omitted
// list means them, too; the specification does not have them.
func Questions() []string { return []string{"job.question_asked", "job.question_answered"} }

// Disputes are events about disputed verdicts. Only a list that names them has them.
func Disputes() []string {
	return []string{"job.disputed", "job.dispute_answered", "job.dispute_decided"}
}

// OfAccount are events of the whole account. A subscription that names such an event gets
// it from every project; no other subscription gets it.
func OfAccount() []string { return []string{WebhookDisabled, CreditsLow, SubmissionsRefused} }

// Names are all names that a list may hold.
func Names() []string { return slices.Concat(Specified(), Questions(), Disputes(), OfAccount()) }

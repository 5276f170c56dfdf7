package announce

import (
	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/domain/session"
)

// Enrichment holds the facts that an announcement adds to the event itself. They come
// from earlier events of the stream, so they are fixed when the event happens.
type Enrichment struct {
	// Submission is the job's, without the long texts, which no announcement contains.
	// For a session or a loop it holds only the account and the project; for a ledger
	// only the account; for a project also its name.
	job.Submission
	ReportID string `json:"reportId,omitempty"` // once the job is completed

	Slots   []session.Slot `json:"slots,omitempty"`   // of a session
	Dropped []int          `json:"dropped,omitempty"` // the slots that the session started without, once it did
}

// Begin gives the enrichment after the first event of a job, a session, a loop session, a
// project or a ledger, and after refusals of an account; ok is false for every other event.
func Begin(r domain.Recorded) (about Enrichment, ok bool) {
	switch e := r.Event.(type) {
	case *job.Created:
		about = Enrichment{Submission: e.Submission}
		about.Description, about.Feature = "", ""
	case *session.Created:
		about.AccountID, about.ProjectID, about.Slots = e.AccountID, e.ProjectID, e.Slots
	case *loop.Started:
		about.AccountID, about.ProjectID = e.AccountID, e.ProjectID
	case *project.Created:
		about.AccountID, about.ProjectID, about.Title = e.AccountID, r.StreamID(), e.Name
	case *account.SubmissionsRefused:
		about.AccountID = r.StreamID()
	case *credits.Granted:
		if r.Revision > 0 {
			return about, false
		}
		about.AccountID = r.StreamID()
	default:
		return about, false
	}
	return about, true
}

// Learn folds a later event of the stream and says whether the enrichment changed.
func (n *Enrichment) Learn(e domain.Event) bool {
	switch e := e.(type) {
	case *job.Completed:
		n.ReportID = e.ReportID
	case *session.Started:
		n.Dropped = e.Dropped
	case *project.SettingsChanged:
		n.Title = e.Name
	default:
		return false
	}
	return true
}

// Types lists the names in the log of the events that are announced or change an
// Enrichment.
func Types() []string {
	types := domain.TypesOf((*session.Created)(nil), (*loop.Started)(nil), (*project.Created)(nil), (*project.SettingsChanged)(nil),
		(*credits.Granted)(nil))
	for _, k := range catalogue {
		types = append(types, k.Type)
	}
	return types
}

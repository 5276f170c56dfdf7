package announce

import (
	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/domain/session"
)

// Enrichment is what an announcement says beside the event itself: what its
// stream has told so far. All of it is fixed by the time the event happens.
type Enrichment struct {
	// Submission is the job's, without the long texts, which nothing announces. Of a
	// session, a loop or a ledger it holds only the account; of a project also the
	// name.
	job.Submission
	ReportID string `json:"reportId,omitempty"` // once the job is completed

	Slots   []session.Slot `json:"slots,omitempty"`   // of a session
	Dropped []int          `json:"dropped,omitempty"` // the slots that the session started without, once it did
}

// Begin gives the enrichment as the first event of a job, a session, a loop
// session, a project or a ledger leaves it; ok is false for every other event.
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

// Learn folds a later event of the stream and says whether it told anything.
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

// Types lists the events, by their names in the log, that are announced or tell
// what announcements say.
func Types() []string {
	types := domain.TypesOf((*session.Created)(nil), (*loop.Started)(nil), (*project.Created)(nil), (*project.SettingsChanged)(nil),
		(*credits.Granted)(nil))
	for _, k := range catalogue {
		types = append(types, k.Type)
	}
	return types
}

package announce

import (
	"humanqa/domain"
	"humanqa/domain/job"
)

// Told is the event with what its announcement says, or a page that shows what was
// announced. A store of events that are to be announced needs no more. Secrets are never
// in it.
func Told(e domain.Event) domain.Event {
	switch e := e.(type) {
	case *job.Created: // what was submitted the Enrichment has
		return &job.Created{
			Submission: job.Submission{SLAMinutes: e.SLAMinutes, Price: e.Price, Source: e.Source},
			Items:      make([]job.Item, len(e.Items)), CreatedAt: e.CreatedAt,
		}
	case *job.Claimed: // nobody is told by whom
		return &job.Claimed{At: e.At}
	case *job.Completed:
		told := *e
		told.RecordingURL, told.SessionID, told.LoopID = "", "", ""
		told.Items = make([]job.ReportItem, len(e.Items))
		for i, item := range e.Items {
			told.Items[i] = job.ReportItem{
				Item:   job.Item{Description: item.Description, Severity: item.Severity},
				Status: item.Status, Note: item.Note,
			}
		}
		return &told
	}
	return e
}

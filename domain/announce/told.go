package announce

import (
	"humanqa/domain"
	"humanqa/domain/job"
)

// Told reduces the event to the fields that its announcement, or a page of announcements,
// shows. A store of announced events needs no more. It never holds secrets.
func Told(e domain.Event) domain.Event {
	switch e := e.(type) {
	case *job.Created: // the Enrichment holds the submission
		return &job.Created{
			Submission: job.Submission{SLAMinutes: e.SLAMinutes, Price: e.Price, Source: e.Source},
			Items:      make([]job.Item, len(e.Items)), CreatedAt: e.CreatedAt,
		}
	case *job.Claimed: // no announcement names the checker
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

package job

import (
	"time"

	"humanqa/domain"
)

// State is a job after some events. It belongs to its fold: Evolve changes the
// map and the slices in place, so a state that was passed to Evolve must not
// be used again.
type State struct {
	// Exists is false before job.created, and for ever once the job is voided.
	Exists bool
	Status Status

	// What was submitted (see Created).
	AccountID          string
	ProjectID          string
	URL                string
	Title              string
	Description        string
	Feature            string
	Type               Type
	TypeEcho           string
	Urgent             bool
	SLAMinutes         int
	Price              domain.Credits
	Source             string
	ParentID           string
	BatchID            string
	SessionID          string
	Target             Target
	Items              []Item
	GeneratedBy        string
	Credentials        string // sealed
	AccessInstructions string // sealed
	CreatedAt          time.Time

	// The claim. Token counts the claims ever made, so that it fences the work
	// of earlier ones. CheckerID, ClaimedAt and DueAt are zero without a live
	// or completed claim; ReleasedBy is who held the claim of Token before the
	// job went back.
	CheckerID  string
	Token      int
	DueAt      time.Time
	ClaimedAt  time.Time
	ReleasedBy string

	// The draft of the report. Verdicts, by item id, and Findings outlive a
	// release; after completion only Report holds them.
	Verdicts map[string]Verdict
	Findings []ReportItem

	CompletedAt time.Time
	Report      *CompletedWith

	CancelledAt  time.Time
	CancelReason string
	Refund       domain.Credits
}

// Verdict is what the checker says about one item of the list. Severity is
// empty unless the checker overrode the item's.
type Verdict struct {
	Status        ItemStatus
	Note          string
	Severity      Severity
	Reason        string
	ScreenshotURL string
}

// SLA is how long the job may take, counted from CreatedAt.
func (s State) SLA() time.Duration { return time.Duration(s.SLAMinutes) * time.Minute }

// ReportID is empty until a report exists.
func (s State) ReportID() string {
	if s.Report == nil {
		return ""
	}
	return s.Report.ReportID
}

// Evolve folds one event into the state and takes the old state over (see
// State). Events of other aggregates change nothing.
func Evolve(s State, e domain.Event) State {
	switch e := e.(type) {
	case *Created:
		s.create(e)
	case *ClaimedBy:
		s.Status, s.CheckerID, s.Token = Claimed, e.CheckerID, e.Token
		s.DueAt, s.ClaimedAt, s.ReleasedBy = e.DueAt, e.At, ""
	case *Released:
		s.Status, s.ReleasedBy = Pending, s.CheckerID
		s.CheckerID, s.DueAt, s.ClaimedAt = "", time.Time{}, time.Time{}
	case *ItemChecked:
		if s.Verdicts == nil {
			s.Verdicts = make(map[string]Verdict, len(s.Items))
		}
		s.Verdicts[e.ItemID] = Verdict{
			Status: e.Status, Note: e.Note, Severity: e.Severity,
			Reason: e.Reason, ScreenshotURL: e.ScreenshotURL,
		}
	case *FindingAdded:
		s.Findings = append(s.Findings, ReportItem{Item: e.Item, Status: e.Status, Note: e.Note})
	case *CompletedWith:
		s.Status, s.CompletedAt, s.Report = Completed, e.At, e
		s.Verdicts, s.Findings = nil, nil
	case *CancelledBy:
		s.Status, s.CancelledAt, s.CancelReason, s.Refund = Cancelled, e.At, e.Reason, e.Refund
	case *VoidedOrphan:
		s.Status, s.AccountID = Voided, e.AccountID
	}
	return s
}

func (s *State) create(e *Created) {
	s.Exists, s.Status = true, Pending
	s.AccountID, s.ProjectID = e.AccountID, e.ProjectID
	s.URL, s.Title, s.Description, s.Feature = e.URL, e.Title, e.Description, e.Feature
	s.Type, s.TypeEcho, s.Urgent = e.Type, e.TypeEcho, e.Urgent
	s.SLAMinutes, s.Price, s.Source = e.SLAMinutes, e.Price, e.Source
	s.ParentID, s.BatchID, s.SessionID = e.ParentID, e.BatchID, e.SessionID
	s.Target, s.Items, s.GeneratedBy = e.Target, e.Items, e.GeneratedBy
	s.Credentials, s.AccessInstructions = e.Credentials, e.AccessInstructions
	s.CreatedAt = e.CreatedAt
}

// Package job is the life of one test: submitted, claimed, completed.
// Everything here is pure; time and ids come in with the command, secrets come
// in sealed.
package job

import (
	"time"

	"humanqa/domain"
)

// Status is where a job stands (specification, "Job states"; decisions,
// section 3).
type Status string

// The states. Completed, Cancelled and Failed are ends and absorb. Voided is
// never shown: the submission crashed between its charge and its job, the
// charge was given back, and a late job.created must lose.
const (
	Pending   Status = "pending"
	Claimed   Status = "claimed"
	Completed Status = "completed"
	Cancelled Status = "cancelled"
	Failed    Status = "failed"
	Voided    Status = "voided"
)

// ItemStatus is the verdict on one checklist item.
type ItemStatus string

// The verdicts. ItemPending is what an unchecked item shows.
const (
	ItemPass    ItemStatus = "pass"
	ItemFail    ItemStatus = "fail"
	ItemSkip    ItemStatus = "skip"
	ItemPending ItemStatus = "pending"
)

// Severity of a checklist item or a finding.
type Severity string

// The severities, gravest first.
const (
	Critical Severity = "critical"
	Major    Severity = "major"
	Minor    Severity = "minor"
)

// Item is one thing to check. Key is stable across the project's tests.
type Item struct {
	ID              string   `json:"id"`
	Key             string   `json:"key"`
	Description     string   `json:"description"`
	ExpectedOutcome string   `json:"expectedOutcome,omitempty"`
	Severity        Severity `json:"severity"`
}

// Target is what the checker should test on. Empty strings mean anything.
type Target struct {
	Device     string `json:"device,omitempty"`
	OS         string `json:"os,omitempty"`
	Browser    string `json:"browser,omitempty"`
	ScreenSize string `json:"screenSize,omitempty"`
	Network    string `json:"network,omitempty"`
}

// Created submits a job. Its credits were debited before under the same job
// id.
type Created struct {
	AccountID string `json:"accountId"`
	ProjectID string `json:"projectId,omitempty"`
	URL       string `json:"url"`
	Title     string `json:"title"`
	// Description is what the checker should test; Feature is the hosted
	// endpoints' word for it.
	Description string `json:"description,omitempty"`
	Feature     string `json:"feature,omitempty"`
	// Type is the canonical code, TypeEcho the spelling that was submitted.
	Type        Type           `json:"type"`
	TypeEcho    string         `json:"typeEcho"`
	Urgent      bool           `json:"urgent,omitempty"`
	SLAMinutes  int            `json:"slaMinutes"`
	Price       domain.Credits `json:"price"`
	Source      string         `json:"source"` // api, hosted, session, retest, bulk, deploy, loop
	ParentID    string         `json:"parentId,omitempty"`
	BatchID     string         `json:"batchId,omitempty"`
	SessionID   string         `json:"sessionId,omitempty"`
	Target      Target         `json:"target,omitzero"`
	Items       []Item         `json:"items"`
	GeneratedBy string         `json:"generatedBy,omitempty"` // who wrote the checklist when the client did not
	// Credentials and AccessInstructions are sealed (vault, bound to this
	// stream); only the current claimant ever sees them open.
	Credentials        string    `json:"credentials,omitempty"`
	AccessInstructions string    `json:"accessInstructions,omitempty"`
	CreatedAt          time.Time `json:"createdAt"`
}

// ClaimedBy says that a checker took the job. The token fences every later
// call: work sent under an older token is refused. DueAt is when the SLA ends.
type ClaimedBy struct {
	CheckerID string    `json:"checkerId"`
	Token     int       `json:"token"`
	DueAt     time.Time `json:"dueAt"`
	At        time.Time `json:"at"`
}

// Released puts a claimed job back into the queue; ticks stay as a draft for
// the next checker.
type Released struct {
	Token  int       `json:"token"`
	Reason string    `json:"reason"` // checker
	At     time.Time `json:"at"`
}

// ItemChecked is the claimant's verdict on an item of the list; a later one
// replaces an earlier one. Severity is empty unless the checker overrode it.
type ItemChecked struct {
	ItemID        string     `json:"itemId"`
	Status        ItemStatus `json:"status"`
	Note          string     `json:"note,omitempty"`
	Severity      Severity   `json:"severity,omitempty"`
	Reason        string     `json:"reason,omitempty"` // of a skip: blocked, not_applicable, no_access, out_of_time
	ScreenshotURL string     `json:"screenshotUrl,omitempty"`
	At            time.Time  `json:"at"`
}

// FindingAdded is something the checker saw outside the list: an item with its
// verdict.
type FindingAdded struct {
	Item   Item       `json:"item"`
	Status ItemStatus `json:"status"`
	Note   string     `json:"note,omitempty"`
	At     time.Time  `json:"at"`
}

// ReportItem is one line of the report.
type ReportItem struct {
	Item
	Status        ItemStatus `json:"status"`
	Note          string     `json:"note,omitempty"`
	Reason        string     `json:"reason,omitempty"`
	ScreenshotURL string     `json:"screenshotUrl,omitempty"`
}

// CompletedWith ends the job with its report.
type CompletedWith struct {
	ReportID      string       `json:"reportId"`
	OverallStatus string       `json:"overallStatus"` // pass, fail, inconclusive
	PassCount     int          `json:"passCount"`
	FailCount     int          `json:"failCount"`
	SkipCount     int          `json:"skipCount"`
	Summary       string       `json:"summary"`
	RecordingURL  string       `json:"recordingUrl,omitempty"`
	Items         []ReportItem `json:"items"`
	At            time.Time    `json:"at"`
}

// CancelledBy ends a job that nobody had claimed. The refund follows in the
// ledger; Refund is its amount.
type CancelledBy struct {
	Reason string         `json:"reason"` // client, operator, session_expired, session_cancelled
	Refund domain.Credits `json:"refund"`
	At     time.Time      `json:"at"`
}

// VoidedOrphan closes the stream of a job that never came (see Voided).
type VoidedOrphan struct {
	AccountID string    `json:"accountId"`
	At        time.Time `json:"at"`
}

func (*Created) EventType() string       { return "job.created" }
func (*ClaimedBy) EventType() string     { return "job.claimed" }
func (*Released) EventType() string      { return "job.released" }
func (*ItemChecked) EventType() string   { return "job.item_checked" }
func (*FindingAdded) EventType() string  { return "job.finding_added" }
func (*CompletedWith) EventType() string { return "job.completed" }
func (*CancelledBy) EventType() string   { return "job.cancelled" }
func (*VoidedOrphan) EventType() string  { return "job.voided" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return []domain.EventSpec{
		{New: func() domain.Event { return new(Created) }},
		{New: func() domain.Event { return new(ClaimedBy) }},
		{New: func() domain.Event { return new(Released) }},
		{New: func() domain.Event { return new(ItemChecked) }},
		{New: func() domain.Event { return new(FindingAdded) }},
		{New: func() domain.Event { return new(CompletedWith) }},
		{New: func() domain.Event { return new(CancelledBy) }},
		{New: func() domain.Event { return new(VoidedOrphan) }},
	}
}

// Package job is the life of one test: submitted, claimed, completed. Everything here
// is pure: time and ids come in with the command. Secrets come in sealed.
package job

import (
	"time"

	"humanqa/domain"
)

// Status is the state of a job (specification, "Job states"; decisions, "Job states").
type Status string

// The states. Completed, cancelled and failed are ends and absorb. A voided job is
// never shown. Its submission crashed between the charge and the job, the charge
// was given back, and a late job.created must lose.
const (
	StatusPending   Status = "pending"
	StatusClaimed   Status = "claimed"
	StatusCompleted Status = "completed"
	StatusCancelled Status = "cancelled"
	StatusFailed    Status = "failed"
	StatusVoided    Status = "voided"
)

// Ended reports whether the state is an end that clients see.
func (s Status) Ended() bool {
	return s == StatusCompleted || s == StatusCancelled || s == StatusFailed
}

// ItemStatus is the verdict on one checklist item.
type ItemStatus string

// The verdicts. An unchecked item shows ItemPending.
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
	Description     string   `json:"description" sealed:"text"`
	ExpectedOutcome string   `json:"expectedOutcome,omitempty" sealed:"text"`
	Severity        Severity `json:"severity"`
	// Origin is the reason that the project's past put the item here; empty without one.
	Origin Origin `json:"origin,omitempty"`
}

// Origin is the source of a regression item (decisions, "Open failures" and
// "prepare-next").
type Origin string

// The origins.
const (
	OpenFailure Origin = "open_failure" // its latest result in the project is fail
	PreparedFix Origin = "prepared_fix" // queued by prepare-next
)

// Created submits a job. Its credits were debited earlier, under the same job id.
type Created struct {
	Submission
	// Items is empty while the checklist is still to be written.
	Items       []Item `json:"items"`
	GeneratedBy string `json:"generatedBy,omitempty"` // author of a checklist that is not the client's
	// Regressions, without ids, open a list that is still to be written; a written
	// list holds them.
	Regressions []Item `json:"regressions,omitempty"`
	// Prepared are the ids of prepared fixes that the list verifies.
	Prepared []string `json:"prepared,omitempty"`
	// Credentials and AccessInstructions are sealed (vault, bound to this
	// stream); only the current claimant ever sees them open.
	Credentials        string    `json:"credentials,omitempty" sealed:"secret"`
	AccessInstructions string    `json:"accessInstructions,omitempty" sealed:"secret"`
	CreatedAt          time.Time `json:"createdAt"`
}

// Claimed gives the job to a checker. The token fences every later call: work under an
// older token is refused. DueAt is the end of the SLA.
type Claimed struct {
	CheckerID string    `json:"checkerId"`
	Token     int       `json:"token"`
	DueAt     time.Time `json:"dueAt"`
	At        time.Time `json:"at"`
}

// Released puts a claimed job back into the queue. Its verdicts stay as a draft for the
// next checker.
type Released struct {
	Token  int       `json:"token"`
	Reason string    `json:"reason"` // checker, silent, left
	At     time.Time `json:"at"`
}

// ItemChecked is the claimant's verdict on an item of the list. A later verdict
// replaces an earlier one. Severity is empty unless the checker overrode it.
type ItemChecked struct {
	ItemID        string     `json:"itemId"`
	Status        ItemStatus `json:"status"`
	Note          string     `json:"note,omitempty" sealed:"text"`
	Severity      Severity   `json:"severity,omitempty"`
	Reason        string     `json:"reason,omitempty"` // of a skip: blocked, not_applicable, no_access, out_of_time
	ScreenshotURL string     `json:"screenshotUrl,omitempty" sealed:"link"`
	// MoreScreenshotURLs are the pictures beside the first.
	MoreScreenshotURLs []string  `json:"moreScreenshotUrls,omitempty" sealed:"link"`
	At                 time.Time `json:"at"`
}

// FindingAdded is a finding outside the list: an item with its verdict.
type FindingAdded struct {
	Item   Item       `json:"item"`
	Status ItemStatus `json:"status"`
	Note   string     `json:"note,omitempty" sealed:"text"`
	At     time.Time  `json:"at"`
}

// FindingEdited replaces what a finding says. Its id stays.
type FindingEdited struct {
	Item   Item       `json:"item"`
	Status ItemStatus `json:"status"`
	Note   string     `json:"note,omitempty" sealed:"text"`
	At     time.Time  `json:"at"`
}

// FindingWithdrawn takes a finding out of the draft.
type FindingWithdrawn struct {
	FindingID string    `json:"findingId"`
	At        time.Time `json:"at"`
}

// ReportItem is one line of the report.
type ReportItem struct {
	Item
	Status        ItemStatus `json:"status"`
	Note          string     `json:"note,omitempty" sealed:"text"`
	Reason        string     `json:"reason,omitempty"`
	ScreenshotURL string     `json:"screenshotUrl,omitempty" sealed:"link"`
	// MoreScreenshotURLs are the pictures beside the first.
	MoreScreenshotURLs []string `json:"moreScreenshotUrls,omitempty" sealed:"link"`
}

// Screenshots are all pictures of the item, in the order of their arrival.
func (i ReportItem) Screenshots() []string { return screenshots(i.ScreenshotURL, i.MoreScreenshotURLs) }

func screenshots(first string, more []string) []string {
	if first == "" {
		return nil
	}
	return append([]string{first}, more...)
}

// Completed ends the job with its report.
type Completed struct {
	ReportID      string       `json:"reportId"`
	OverallStatus string       `json:"overallStatus"` // pass, fail, inconclusive
	PassCount     int          `json:"passCount"`
	FailCount     int          `json:"failCount"`
	SkipCount     int          `json:"skipCount"`
	Summary       string       `json:"summary" sealed:"text"`
	RecordingURL  string       `json:"recordingUrl,omitempty" sealed:"link"`
	Items         []ReportItem `json:"items"`
	SessionID     string       `json:"sessionId,omitempty"`
	LoopID        string       `json:"loopId,omitempty"`
	// CommitStatus says that a commit status tells the verdict.
	CommitStatus bool      `json:"commitStatus,omitempty"`
	At           time.Time `json:"at"`
}

// ChecklistWritten adds the list of a job that was submitted without one.
type ChecklistWritten struct {
	Items       []Item    `json:"items"`
	GeneratedBy string    `json:"generatedBy"`
	At          time.Time `json:"at"`
}

// SLAMissed ends the claim, if there is one. Requeued puts the job back into the queue
// until DueAt. Otherwise the job has failed, and job.failed follows in the same append.
// RequeueCount counts the returns to the queue; the miss that fails the job does not
// count.
type SLAMissed struct {
	RequeueCount int            `json:"requeueCount"`
	Requeued     bool           `json:"requeued"`
	Refund       domain.Credits `json:"refund,omitempty"`
	// RefundExpired is as in Cancelled.
	RefundExpired domain.Credits `json:"refundExpired,omitempty"`
	DueAt         time.Time      `json:"dueAt,omitzero"`
	SessionID     string         `json:"sessionId,omitempty"`
	At            time.Time      `json:"at"`
}

// UntestableReported is a checker's report that the job cannot be tested. It ends the
// claim. A report by a second checker or an operator adds job.failed in the same
// append.
type UntestableReported struct {
	CheckerID string    `json:"checkerId"`
	Token     int       `json:"token"`
	Reason    string    `json:"reason" sealed:"text"`
	Note      string    `json:"note,omitempty" sealed:"text"`
	At        time.Time `json:"at"`
}

// Failed ends the job with a full refund; the refund follows in the ledger. Failed items
// never fail a job (decisions, "failed").
type Failed struct {
	Reason string         `json:"reason"` // sla, untestable, operator
	Refund domain.Credits `json:"refund"`
	// Note has the reports of checkers that could not test the job, a line each; older
	// events have none.
	Note string `json:"note,omitempty" sealed:"text"`
	// RefundExpired is as in Cancelled.
	RefundExpired domain.Credits `json:"refundExpired,omitempty"`
	SessionID     string         `json:"sessionId,omitempty"`
	LoopID        string         `json:"loopId,omitempty"`
	// CommitStatus is as in Completed.
	CommitStatus bool      `json:"commitStatus,omitempty"`
	At           time.Time `json:"at"`
}

// Heartbeat is a sign of life of the claimant.
type Heartbeat struct {
	Token int       `json:"token"`
	At    time.Time `json:"at"`
}

// SlotStarted starts the SLA's clock of a session's slot.
type SlotStarted struct {
	DueAt time.Time `json:"dueAt"`
	At    time.Time `json:"at"`
}

// AIReport is the analysis of a report (specification, "AI report").
type AIReport struct {
	ID               string    `json:"id"`
	ExecutiveSummary string    `json:"executiveSummary" sealed:"text"`
	HealthScore      int       `json:"healthScore"` // 0 to 100, higher is better
	Bugs             []Bug     `json:"bugs"`        // gravest first
	PassCount        int       `json:"passCount"`
	FailCount        int       `json:"failCount"`
	SkipCount        int       `json:"skipCount"`
	Strengths        []string  `json:"strengths" sealed:"text"`
	Recommendations  []string  `json:"recommendations" sealed:"text"`
	GeneratedBy      string    `json:"generatedBy"` // rules, or a model's name
	At               time.Time `json:"at"`
}

// Bug is a failed item in the analysis.
type Bug struct {
	ItemID            string   `json:"itemId,omitempty"`
	Title             string   `json:"title" sealed:"text"`
	Severity          Severity `json:"severity"`
	Description       string   `json:"description" sealed:"text"`
	ReproductionSteps []string `json:"reproductionSteps" sealed:"text"`
	SuggestedFix      string   `json:"suggestedFix" sealed:"text"`
}

// AIReportReady adds the analysis of the completed job.
type AIReportReady struct {
	AIReport
}

// Rated is the client's rating of the checker's work. A later rating replaces an
// earlier one.
type Rated struct {
	Rating int       `json:"rating"` // 1 to 5
	Note   string    `json:"note,omitempty" sealed:"text"`
	At     time.Time `json:"at"`
}

// Cancelled ends a job without a claim. The refund follows in the ledger; Refund is its
// amount.
type Cancelled struct {
	Reason string         `json:"reason"` // client, operator, session_expired, session_cancelled, superseded
	Refund domain.Credits `json:"refund"`
	// RefundExpired is the part of Refund for lots that had expired when the job
	// ended. The refund itself has the last word.
	RefundExpired domain.Credits `json:"refundExpired,omitempty"`
	SessionID     string         `json:"sessionId,omitempty"`
	LoopID        string         `json:"loopId,omitempty"`
	// CommitStatus is as in Completed.
	CommitStatus bool      `json:"commitStatus,omitempty"`
	At           time.Time `json:"at"`
}

// Voided closes the stream of a job whose creation was lost (see StatusVoided).
type Voided struct {
	AccountID string    `json:"accountId"`
	At        time.Time `json:"at"`
}

func (*Created) EventType() string      { return "job.created" }
func (*Claimed) EventType() string      { return "job.claimed" }
func (*Released) EventType() string     { return "job.released" }
func (*ItemChecked) EventType() string  { return "job.item_checked" }
func (*FindingAdded) EventType() string { return "job.finding_added" }
func (*Completed) EventType() string    { return "job.completed" }
func (*Cancelled) EventType() string    { return "job.cancelled" }
func (*Voided) EventType() string       { return "job.voided" }

func (*ChecklistWritten) EventType() string   { return "job.checklist_written" }
func (*SLAMissed) EventType() string          { return "job.failed_sla" }
func (*UntestableReported) EventType() string { return "job.untestable_reported" }
func (*Failed) EventType() string             { return "job.failed" }
func (*Heartbeat) EventType() string          { return "job.heartbeat" }
func (*SlotStarted) EventType() string        { return "job.slot_started" }
func (*AIReportReady) EventType() string      { return "job.ai_report_ready" }
func (*Rated) EventType() string              { return "job.rated" }
func (*FindingEdited) EventType() string      { return "job.finding_edited" }
func (*FindingWithdrawn) EventType() string   { return "job.finding_withdrawn" }
func (*EvidenceExpired) EventType() string    { return "job.evidence_expired" }
func (*HoldPlaced) EventType() string         { return "job.hold_placed" }
func (*HoldReleased) EventType() string       { return "job.hold_released" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return append(domain.Specs(
		&Claimed{}, &Released{}, &Cancelled{}, &Voided{}, &SLAMissed{}, &Heartbeat{}, &SlotStarted{}, &FindingWithdrawn{},
		&QuestionClosed{}, &CommitStatusSet{}, &CommitStatusAbandoned{}, &EvidenceExpired{}, &HoldPlaced{}, &HoldReleased{}, &Erased{},
	), domain.WithSealedTexts(
		&Created{}, &ItemChecked{}, &FindingAdded{}, &FindingEdited{}, &Completed{}, &ChecklistWritten{}, &UntestableReported{},
		&Failed{}, &AIReportReady{}, &Rated{}, &RecordingAttached{}, &MomentMarked{}, &QuestionAsked{}, &AnswerGiven{},
		&CommitStatusRequested{},
	)...)
}

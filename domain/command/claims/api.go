package claims

import (
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// Credentials are what a checker needs to sign in. They are sealed before they
// reach an event.
type Credentials struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	Notes    string `json:"notes,omitempty"`
}

// Brief is what a claimant is told beside the checklist.
type Brief struct {
	Title              string
	URL                string
	Description        string
	Feature            string
	Credentials        *Credentials
	AccessInstructions string
	// Questions are those of every claim on the job, the oldest first.
	Questions []ToldQuestion
	// Of a session's slot; else empty.
	ScenarioBrief string
	RoleLabel     string
}

// ClaimedJob is a claim: the lease's token fences every later call. Checklist
// and Findings are the draft of the report: what this checker, or one before,
// said so far.
type ClaimedJob struct {
	JobID     string
	AccountID string // whose evidence the draft's links name; never shown
	ProjectID string // whose open failures the claimant may know of; never shown
	Token     int
	DueAt     time.Time
	SessionID string // of a session's slot
	Waiting   bool   // the slot's session has not started
	Brief     Brief
	Checklist []job.ReportItem
	Findings  []job.ReportItem
	Position  domain.Position
}

// Claim names a claim: every call of a claimant carries it.
type Claim struct {
	CheckerID string
	JobID     string
	Token     int
}

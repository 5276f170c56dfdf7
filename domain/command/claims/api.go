package claims

import (
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// Credentials let a checker sign in to the app. They are sealed before they reach an
// event.
type Credentials struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	Notes    string `json:"notes,omitempty"`
}

// Brief is the information for a claimant beside the checklist. Only Reveal opens its
// secrets; HasSecrets says that there are some.
type Brief struct {
	Title              string
	URL                string
	Description        string
	Feature            string
	Credentials        *Credentials
	AccessInstructions string
	HasSecrets         bool
	// Questions are those of every claim on the job, the oldest first.
	Questions []ToldQuestion
	// These are for a session's slot, and empty otherwise.
	ScenarioBrief string
	RoleLabel     string
}

// ClaimedJob is a claim: the lease's token fences every later call. Checklist and
// Findings are the draft of the report, by this checker and by earlier ones.
type ClaimedJob struct {
	JobID     string
	AccountID string // owner of the evidence that the draft links to; never shown
	ProjectID string // the claimant may see its open failures; never shown
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

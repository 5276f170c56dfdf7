package command

import (
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/job"
	"humanqa/domain/project"
)

// Cause says which command this is and who stands behind it. The same
// CommandID always has the same effect: whatever ids a command needs derive
// from it.
type Cause struct {
	CommandID     uuid.UUID
	CorrelationID string // x-request-id
	CausationID   string // id of the event that a policy reacts to
	Actor         string // key:<id>, checker:<id>, operator, policy:<name>
	AccountID     string // whose data the command is about
}

// Credentials are what a checker needs to sign in. They are sealed before they
// reach an event.
type Credentials struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	Notes    string `json:"notes,omitempty"`
}

// NewItem is a checklist item as a client submits it. Key may be empty: it is
// then derived from the description.
type NewItem struct {
	Key             string
	Description     string
	ExpectedOutcome string
	Severity        job.Severity
}

// SubmitJob charges the account and submits a job. The caller has checked
// shapes and lengths.
type SubmitJob struct {
	ProjectID          string // empty: no project
	URL                string
	Title              string
	Description        string
	Feature            string
	Type               job.Type
	TypeEcho           string
	Urgent             bool
	SLAMinutes         int // 0: the project's default, then 60
	Items              []NewItem
	Credentials        *Credentials
	AccessInstructions string
	Target             job.Target
	Source             string // api, hosted, session, retest, bulk, deploy, loop
	ParentID           string
}

// SubmittedJob is the handle of a job that was just submitted.
type SubmittedJob struct {
	JobID              string
	Status             job.Status
	EstimatedMinutes   int
	CreditsDeducted    domain.Credits
	CreditsRemaining   domain.Credits
	ChecklistItemCount int
	Position           domain.Position
}

// CancelledJob is the outcome of a cancellation, the same for a repeat.
type CancelledJob struct {
	JobID            string
	Status           job.Status
	CreditsRefunded  domain.Credits
	CreditsRemaining domain.Credits
	Position         domain.Position
}

// Brief is what a claimant is told beside the checklist.
type Brief struct {
	Title              string
	URL                string
	Description        string
	Feature            string
	Credentials        *Credentials
	AccessInstructions string
}

// ClaimedJob is a claim: the lease's token fences every later call.
type ClaimedJob struct {
	JobID     string
	Token     int
	DueAt     time.Time
	Brief     Brief
	Checklist []job.Item
	Position  domain.Position
}

// Claim names a claim: every call of a claimant carries it.
type Claim struct {
	CheckerID string
	JobID     string
	Token     int
}

// CheckItem is a verdict on an item of the list.
type CheckItem struct {
	ItemID        string
	Status        job.ItemStatus
	Note          string
	Severity      job.Severity // empty: the item's own
	Reason        string
	ScreenshotURL string
}

// AddFinding reports something outside the list.
type AddFinding struct {
	Description string
	Status      job.ItemStatus
	Note        string
	Severity    job.Severity
}

// CompleteJob ends a claim with a report.
type CompleteJob struct {
	Summary      string
	RecordingURL string
}

// CreateProject opens a project. Events nil: the list was omitted.
type CreateProject struct {
	Name              string
	Description       *string
	DefaultURL        *string
	DefaultJobType    *string
	DefaultSLAMinutes *int
	WebhookURL        string
	Events            *[]string
}

// CreatedProject carries the deploy hook's token, which is shown only here.
type CreatedProject struct {
	ProjectID string
	Name      string
	HookToken string
	Position  domain.Position
}

// Field is one field of a PATCH: absent, cleared, or a value.
type Field[T any] = project.Field[T]

// UpdateProject changes the fields that are given. WebhookURL "" clears the
// webhook; Events nil leaves the list untouched.
type UpdateProject struct {
	Name              *string
	Description       Field[string]
	DefaultURL        Field[string]
	DefaultJobType    Field[string]
	DefaultSLAMinutes Field[int]
	WebhookURL        *string
	Events            *[]string
}

// IssueKey describes a new API key.
type IssueKey struct {
	Scope     account.Scope
	ProjectID string
	ExpiresAt *time.Time
}

// IssuedKey carries the token, which is shown only here.
type IssuedKey struct {
	KeyID    string
	Token    string
	Position domain.Position
}

// CreatedChecker carries the checker's key, which is shown only here.
type CreatedChecker struct {
	CheckerID string
	Token     string
	Position  domain.Position
}

package command

import (
	"time"

	"humanqa/domain"
	"humanqa/domain/command/claims"
	"humanqa/domain/command/retention"
	"humanqa/domain/command/settings"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/domain/session"
)

// The requests, answers and needs of this package's parts and of the aggregates. They are
// described there.
type (
	Cause  = domain.Cause
	Sealer = settings.Sealer

	AdvancedClock  = settings.AdvancedClock
	CreateProject  = settings.CreateProject
	CreatedProject = settings.CreatedProject
	RotatedSecret  = settings.RotatedSecret
	Field[T any]   = domain.Field[T]
	UpdateProject  = settings.UpdateProject
	Headers        = project.Headers
	IssueKey       = settings.IssueKey
	IssuedKey      = settings.IssuedKey
	CreatedChecker = settings.CreatedChecker
	OperatorAct    = settings.OperatorAct

	Credentials    = claims.Credentials
	Brief          = claims.Brief
	ClaimedJob     = claims.ClaimedJob
	Claim          = claims.Claim
	AnswerQuestion = claims.AnswerQuestion
	ToldQuestion   = claims.ToldQuestion
	Hidden         = claims.Hidden

	EvidenceSubject = retention.Subject
	ExpiredEvidence = retention.Gone

	CheckItem   = job.Check
	CompleteJob = job.Completion
	AskQuestion = job.Ask
)

// NewItem is a checklist item as a client submits it. Key may be empty: it is
// then derived from the description. The service fills in ID and Origin.
type NewItem = job.Item

// SubmitJob charges the account and submits a job. The caller has checked
// shapes and lengths.
type SubmitJob struct {
	// Submission holds the caller's wishes; the service fills in account, price, sandbox,
	// batch and slot. SLAMinutes 0: the project's default, then 60.
	job.Submission
	Items              []NewItem
	Credentials        *Credentials
	AccessInstructions string
	// Wait makes the answer wait for the checklist, however long the writer takes
	// (generateChecklist: sync).
	Wait bool
	// CommitStatus sets the verdict at a commit; nil: there is none. A batch has one
	// commit status, in its first job. No JSON ever holds its token.
	CommitStatus *CommitStatus `json:"-"`
}

// CommitStatus is a commit status with the token that may write it.
type CommitStatus struct {
	job.CommitStatus
	Token string
}

// SubmittedJob is the handle of a job that was just submitted, as answers show it.
type SubmittedJob struct {
	JobID              string          `json:"jobId"`
	Status             job.Status      `json:"status"`
	EstimatedMinutes   int             `json:"estimatedCompletionMinutes"`
	CreditsDeducted    domain.Credits  `json:"creditsDeducted"`
	CreditsRemaining   domain.Credits  `json:"creditsRemaining"`
	ChecklistItemCount int             `json:"checklistItemCount"`
	Position           domain.Position `json:"-"`
}

// Estimate is the cost of a submission that is not written.
type Estimate struct {
	CreditsRequired  domain.Credits
	CreditsAvailable domain.Credits
	EstimatedMinutes int
	SLAMinutes       int
}

// Webhook changes the webhook of a hosted test's project. An empty URL leaves the URL as
// it is. Events nil leaves the list as it is. With an empty Secret the service makes one
// when the first URL is attached.
type Webhook struct {
	URL    string
	Secret string
	Events *[]string
}

// LoopStep is an agent's report on its own loop (decisions, "Loops").
type LoopStep struct {
	Skill     string
	Iteration int
	// MaxIterations is for a session that starts with this step; 0: the default.
	MaxIterations int
}

// HostedTest is a one-shot test. The service finds its type and project, and items that
// failed before are tested again.
type HostedTest struct {
	// Submission's ProjectID names the project of a project-bound key or a deploy hook;
	// if empty, the service finds the project. If Type and TypeEcho are empty, the
	// service detects the type. The service fills in Title and SLAMinutes.
	job.Submission
	Host               string // of URL (identity.Site)
	Webhook            Webhook
	AccessInstructions string
	Loop               *LoopStep
	// Items are the client's own checklist, after the items that failed before; empty:
	// the service writes one. A review makes its own.
	Items []NewItem
	// CommitStatus is as in SubmitJob.
	CommitStatus *CommitStatus
}

// HostedJob is the handle of a hosted test.
type HostedJob struct {
	SubmittedJob
	ProjectID       string
	Type            job.Type
	TypeEcho        string
	RegressionItems int
	LoopSessionID   string // empty unless an agent's step
	// Deduplicated says that the job was there before (deploy hooks).
	Deduplicated bool
}

// PreparedFixes are the fixes that a call queued, without duplicates.
type PreparedFixes struct {
	Descriptions []string
	Position     domain.Position
}

// Deploy is a call of a project's deploy hook.
type Deploy struct {
	Test HostedTest
	// Keys tell repeated deploys apart: "key:…", "commit:…". Empty: every call
	// is a deploy of its own.
	Keys []string
	// Platform is the one that sent it; empty: our own body.
	Platform string
}

// PreparedFix is a fix to verify with the next test. BugID, Key, Severity and
// ExpectedOutcome are those of the failed item it fixes; all but Description
// are empty for a fix in plain words. The service fills in ID.
type PreparedFix = project.Prepared

// SubmittedBatch is the handle of a bulk submission, as its answer shows it. JobIDs are
// in submitted order.
type SubmittedBatch struct {
	BatchID          string          `json:"batchId"`
	Name             *string         `json:"name"` // nil: it has none
	JobIDs           []string        `json:"jobIds"`
	CreditsDeducted  domain.Credits  `json:"totalCreditsDeducted"`
	CreditsRemaining domain.Credits  `json:"creditsRemaining"`
	EstimatedMinutes int             `json:"estimatedCompletionMinutes"`
	Position         domain.Position `json:"-"`
}

// NewSlot is a slot of a session; an empty label becomes "Checker N".
type NewSlot struct {
	RoleLabel string
	Target    job.Target
}

// NewSession is a synchronized test; every slot does the test in Test.
type NewSession struct {
	Test          HostedTest
	Slots         []NewSlot
	ScenarioBrief string
	VoiceEnabled  bool
}

// CreatedSession is the handle of a session.
type CreatedSession struct {
	SessionID          string
	ProjectID          string
	Status             session.Status
	Slots              []session.Slot
	CreditsDeducted    domain.Credits
	CreditsRemaining   domain.Credits
	ChecklistItemCount int
	Type               job.Type
	TypeEcho           string
	ReadyDeadline      time.Time
	Position           domain.Position
}

// CancelledSession is the outcome of a cancellation, and its answer, the same for a
// repeat. Refunded is the amount that came back, Expired the amount that went into expired lots.
type CancelledSession struct {
	SessionID        string          `json:"sessionId"`
	Status           session.Status  `json:"status"`
	CreditsRefunded  domain.Credits  `json:"creditsRefunded"`
	CreditsExpired   domain.Credits  `json:"creditsExpired"`
	CreditsRemaining domain.Credits  `json:"creditsRemaining"`
	Position         domain.Position `json:"-"`
}

// CheckerSession is a session as its checker sees it.
type CheckerSession struct {
	SessionID     string
	Status        session.Status
	Slot          int
	JobID         string
	ReadyCount    int
	CheckerCount  int
	ReadyDeadline time.Time
	Position      domain.Position
}

// PlayResult is a robot checker's verdict on one item, named by id or key.
type PlayResult struct {
	Item     string
	Status   job.ItemStatus
	Reason   string // of a skip; empty: blocked
	Note     string
	Severity job.Severity // empty: the item's own
}

// EndedJob is the outcome of a cancellation, or of a failure by the operator's order, and its
// answer, the same for a repeat. Refunded is the amount that came back, Expired the amount that
// went into expired lots.
type EndedJob struct {
	JobID            string          `json:"jobId"`
	Status           job.Status      `json:"status"`
	CreditsRefunded  domain.Credits  `json:"creditsRefunded"`
	CreditsExpired   domain.Credits  `json:"creditsExpired"`
	CreditsRemaining domain.Credits  `json:"creditsRemaining"`
	Position         domain.Position `json:"-"`
}

// CancelledJobs is the outcome of the cancellation of several jobs, and its answer.
type CancelledJobs struct {
	Cancelled       int             `json:"cancelled"`
	CreditsRefunded domain.Credits  `json:"creditsRefunded"`
	CreditsExpired  domain.Credits  `json:"creditsExpired"`
	Position        domain.Position `json:"-"`
}

// NewAccountID is the id of the account that CreateAccount opens for that cause.
func NewAccountID(cause Cause) string { return settings.NewAccountID(cause) }

// NewCheckerID is the id of the checker that CreateChecker registers for that cause.
func NewCheckerID(cause Cause) string { return settings.NewCheckerID(cause) }

package httpapi

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/projections"
)

// Commands is what the handlers ask of the domain: *command.Service.
type Commands interface {
	SubmitJob(context.Context, command.Cause, command.SubmitJob) (command.SubmittedJob, error)
	SubmitBulk(context.Context, command.Cause, []command.SubmitJob) (command.SubmittedBatch, error)
	EstimateJob(context.Context, command.Cause, command.SubmitJob) (command.Estimate, error)
	Retest(ctx context.Context, cause command.Cause, jobID string) (command.SubmittedJob, error)
	CancelJob(ctx context.Context, cause command.Cause, jobID, reason string) (command.CancelledJob, error)
	RateJob(ctx context.Context, cause command.Cause, jobID string, rating int, note string) (domain.Position, error)

	TestHosted(context.Context, command.Cause, command.HostedTest) (command.HostedJob, error)
	Deploy(ctx context.Context, cause command.Cause, projectID string, in command.Deploy) (command.HostedJob, error)
	PrepareNext(ctx context.Context, cause command.Cause, projectID string, fixes []command.PreparedFix) (command.PreparedFixes, error)
	CreateSession(context.Context, command.Cause, command.NewSession) (command.CreatedSession, error)
	CancelSession(ctx context.Context, cause command.Cause, sessionID string) (command.CancelledSession, error)
	FinalizeLoop(ctx context.Context, cause command.Cause, loopID, sessionID string, final loop.Status) (domain.Position, error)

	AccountTime(ctx context.Context, cause command.Cause) (time.Time, error)
	AdvanceClock(ctx context.Context, cause command.Cause, by time.Duration) (command.AdvancedClock, error)
	ReadySlots(ctx context.Context, cause command.Cause, sessionID string, slots []int) (command.SessionStanding, error)
	PlayJob(ctx context.Context, cause command.Cause, jobID string, results []command.PlayResult, summary string) (job.CompletedWith, domain.Position, error)

	CreateProject(context.Context, command.Cause, command.CreateProject) (command.CreatedProject, error)
	UpdateProject(ctx context.Context, cause command.Cause, projectID string, in command.UpdateProject) (project.State, domain.Position, error)
	EnableWebhook(ctx context.Context, cause command.Cause, projectID string) (domain.Position, error)

	ClaimJob(ctx context.Context, cause command.Cause, checkerID, jobID string) (command.ClaimedJob, error)
	CheckItem(context.Context, command.Cause, command.Claim, command.CheckItem) (job.ReportItem, domain.Position, error)
	AddFinding(context.Context, command.Cause, command.Claim, command.AddFinding) (job.ReportItem, domain.Position, error)
	CompleteJob(context.Context, command.Cause, command.Claim, command.CompleteJob) (job.CompletedWith, domain.Position, error)
	ReleaseJob(context.Context, command.Cause, command.Claim) (domain.Position, error)
	ReportUntestable(ctx context.Context, cause command.Cause, claim command.Claim, reason, note string) (job.Status, domain.Position, error)
	Heartbeat(context.Context, command.Cause, command.Claim) (dueAt time.Time, at domain.Position, err error)
	CollectEvidence(context.Context, command.Cause, command.Claim) (accountID string, err error)
	SessionReady(ctx context.Context, cause command.Cause, checkerID, sessionID string) (command.SessionStanding, error)
	SessionLeave(ctx context.Context, cause command.Cause, checkerID, sessionID string) (command.SessionStanding, error)
}

// Reads is what the handlers read: the fields of *projections.Reads.
type Reads struct {
	Jobs     JobReads
	Projects ProjectReads
	Credits  CreditReads
	Access   AccessReads
	History  HistoryReads
	Sessions SessionReads
	Loops    LoopReads
	Events   EventReads
}

// JobReads is *projections.Jobs.
type JobReads interface {
	List(ctx context.Context, accountID string, f projections.JobFilter) (jobs []projections.Job, total int, err error)
	Job(ctx context.Context, accountID, id string) (projections.Job, error)
	Report(ctx context.Context, accountID, jobID string) (projections.Report, error)
	AIReport(ctx context.Context, accountID, jobID string) (job.AIReport, error)
	Batch(ctx context.Context, accountID, batchID string) ([]projections.Job, error)
	Queue(ctx context.Context, checkerID string, limit int) ([]projections.QueuedJob, error)
	NextForChecker(ctx context.Context, checkerID string, skip []string) (jobID string, ok bool, err error)
}

// ProjectReads is *projections.Projects.
type ProjectReads interface {
	List(ctx context.Context, accountID string, f projections.ProjectFilter) (projects []projections.Project, total int, err error)
	Get(ctx context.Context, accountID, id string) (projections.Project, error)
	ByHook(ctx context.Context, hash string) (projections.HookTarget, bool, error)
}

// CreditReads is *projections.Credits.
type CreditReads interface {
	Balance(ctx context.Context, accountID string, now time.Time) (projections.Balance, error)
}

// AccessReads is *projections.Access.
type AccessReads interface {
	Key(ctx context.Context, hash string) (projections.Key, bool, error)
	Checker(ctx context.Context, hash string) (projections.Checker, bool, error)
}

// HistoryReads is *projections.History.
type HistoryReads interface {
	Project(ctx context.Context, accountID, projectID string) (projections.ProjectHistory, error)
	OpenFailures(ctx context.Context, accountID, projectID string, limit int) ([]projections.OpenFailure, error)
	LastFailures(ctx context.Context, accountID, projectID string) ([]projections.FailedItem, error)
}

// SessionReads is *projections.Sessions.
type SessionReads interface {
	List(ctx context.Context, accountID string, f projections.SessionFilter) (sessions []projections.Session, total int, err error)
	Session(ctx context.Context, accountID, id string) (projections.Session, error)
}

// LoopReads is *projections.Loops.
type LoopReads interface {
	Session(ctx context.Context, accountID, id string) (projections.LoopSession, error)
}

// EventReads is *projections.Events.
type EventReads interface {
	OfJob(ctx context.Context, accountID, jobID string) ([]projections.AccountEvent, error)
	After(ctx context.Context, accountID string, f projections.EventFilter) ([]projections.AccountEvent, error)
	News(ctx context.Context, after string) (accounts []string, next string, err error)
	Newest(ctx context.Context) (cursor string, err error)
}

package httpapi

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
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
	ReadySlots(ctx context.Context, cause command.Cause, sessionID string, slots []int) (command.CheckerSession, error)
	PlayJob(ctx context.Context, cause command.Cause, jobID string, results []command.PlayResult, summary string) (job.Completed, domain.Position, error)

	CreateProject(context.Context, command.Cause, command.CreateProject) (command.CreatedProject, error)
	UpdateProject(ctx context.Context, cause command.Cause, projectID string, in command.UpdateProject) (project.State, domain.Position, error)
	EnableWebhook(ctx context.Context, cause command.Cause, projectID string) (domain.Position, error)
	RotateSecret(ctx context.Context, cause command.Cause, projectID string, immediate bool) (command.RotatedSecret, error)
	FinishRotation(ctx context.Context, cause command.Cause, projectID string) (command.RotatedSecret, error)

	ClaimJob(ctx context.Context, cause command.Cause, checkerID, jobID string) (command.ClaimedJob, error)
	LiveClaim(ctx context.Context, checkerID string) (claim command.ClaimedJob, held bool, err error)
	CheckItem(context.Context, command.Cause, command.Claim, command.CheckItem) (job.ReportItem, domain.Position, error)
	AddFinding(context.Context, command.Cause, command.Claim, command.AddFinding) (job.ReportItem, domain.Position, error)
	CompleteJob(context.Context, command.Cause, command.Claim, command.CompleteJob) (job.Completed, domain.Position, error)
	ReleaseJob(context.Context, command.Cause, command.Claim) (domain.Position, error)
	ReportUntestable(ctx context.Context, cause command.Cause, claim command.Claim, reason, note string) (job.Status, domain.Position, error)
	Heartbeat(context.Context, command.Cause, command.Claim) (dueAt time.Time, at domain.Position, err error)
	CollectEvidence(context.Context, command.Cause, command.Claim) (accountID string, err error)
	Record(context.Context, command.Cause, command.Claim) (accountID string, err error)
	HoldsClaim(context.Context, command.Claim) (bool, error)
	AttachRecording(ctx context.Context, cause command.Cause, jobID string, r job.Recording) (domain.Position, error)
	ReadySession(ctx context.Context, cause command.Cause, checkerID, sessionID string) (command.CheckerSession, error)
	LeaveSession(ctx context.Context, cause command.Cause, checkerID, sessionID string) (command.CheckerSession, error)
}

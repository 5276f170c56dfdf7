package checkers

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/evidence"
	"humanqa/projections"
)

// Commands is what the handlers of checkers ask of the domain: *command.Service.
type Commands interface {
	ClaimJob(ctx context.Context, cause command.Cause, checkerID, jobID string) (command.ClaimedJob, error)
	LiveClaim(ctx context.Context, checkerID string) (claim command.ClaimedJob, held bool, err error)
	CheckItem(context.Context, command.Cause, command.Claim, command.CheckItem) (job.ReportItem, domain.Position, error)
	AddFinding(context.Context, command.Cause, command.Claim, command.AddFinding) (job.ReportItem, domain.Position, error)
	EditFinding(
		ctx context.Context, cause command.Cause, claim command.Claim, findingID string, in command.AddFinding,
	) (job.ReportItem, domain.Position, error)
	WithdrawFinding(ctx context.Context, cause command.Cause, claim command.Claim, findingID string) (domain.Position, error)
	AskQuestion(context.Context, command.Cause, command.Claim, command.AskQuestion) (job.Question, domain.Position, error)
	CompleteJob(context.Context, command.Cause, command.Claim, command.CompleteJob) (job.Completed, domain.Position, error)
	ReleaseJob(context.Context, command.Cause, command.Claim) (domain.Position, error)
	ReportUntestable(
		ctx context.Context, cause command.Cause, claim command.Claim, reason, note string,
	) (job.Status, domain.Position, error)
	Heartbeat(context.Context, command.Cause, command.Claim) (command.Beat, domain.Position, error)
	ReadySession(ctx context.Context, cause command.Cause, checkerID, sessionID string) (command.CheckerSession, error)
	LeaveSession(ctx context.Context, cause command.Cause, checkerID, sessionID string) (command.CheckerSession, error)
}

// Handlers are those of checkers.
type Handlers struct {
	commands Commands
	reads    *projections.Reads
	evidence *evidence.Service
	writer   *admit.Writer
	now      func() time.Time
	baseURL  string
}

func New(
	commands Commands, reads *projections.Reads, kept *evidence.Service, writer *admit.Writer, now func() time.Time,
	baseURL string,
) *Handlers {
	return &Handlers{commands: commands, reads: reads, evidence: kept, writer: writer, now: now, baseURL: baseURL}
}

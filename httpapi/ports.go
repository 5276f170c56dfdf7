package httpapi

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/projections"
)

// Commands is what the handlers ask of the domain: *command.Service.
type Commands interface {
	SubmitJob(context.Context, command.Cause, command.SubmitJob) (command.SubmittedJob, error)
	CancelJob(ctx context.Context, cause command.Cause, jobID, reason string) (command.CancelledJob, error)

	CreateProject(context.Context, command.Cause, command.CreateProject) (command.CreatedProject, error)
	UpdateProject(ctx context.Context, cause command.Cause, projectID string, in command.UpdateProject) (project.State, domain.Position, error)
	EnableWebhook(ctx context.Context, cause command.Cause, projectID string) (domain.Position, error)

	ClaimJob(ctx context.Context, cause command.Cause, checkerID, jobID string) (command.ClaimedJob, error)
	CheckItem(context.Context, command.Cause, command.Claim, command.CheckItem) (job.ReportItem, domain.Position, error)
	AddFinding(context.Context, command.Cause, command.Claim, command.AddFinding) (job.ReportItem, domain.Position, error)
	CompleteJob(context.Context, command.Cause, command.Claim, command.CompleteJob) (job.CompletedWith, domain.Position, error)
	ReleaseJob(context.Context, command.Cause, command.Claim) (domain.Position, error)
}

// Reads is what the handlers read: the fields of *projections.Reads.
type Reads struct {
	Jobs     JobReads
	Projects ProjectReads
	Credits  CreditReads
	Access   AccessReads
}

// JobReads is *projections.Jobs.
type JobReads interface {
	List(ctx context.Context, accountID string, f projections.JobFilter) (jobs []projections.Job, total int, err error)
	Job(ctx context.Context, accountID, id string) (projections.Job, error)
	Report(ctx context.Context, accountID, jobID string) (projections.Report, error)
	Queue(ctx context.Context, checkerID string, limit int) ([]projections.QueuedJob, error)
	NextForChecker(ctx context.Context, checkerID string, skip []string) (jobID string, ok bool, err error)
}

// ProjectReads is *projections.Projects.
type ProjectReads interface {
	List(ctx context.Context, accountID string) ([]projections.Project, error)
	Get(ctx context.Context, accountID, id string) (projections.Project, error)
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

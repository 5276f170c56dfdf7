package main

import (
	"context"
	"errors"
	"strings"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/oversight"
	"humanqa/domain/project"
)

type jobCancelCmd struct {
	auditTrail `embed:""`
	Job        string `required:"" help:"The job's id."`
}

func (c *jobCancelCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	return a.endJob(ctx, core, c.auditTrail, oversight.CancelJob, c.Job, job.CancelOperator, core.Commands.CancelJob)
}

type jobUntestableCmd struct {
	auditTrail `embed:""`
	Job        string `required:"" help:"The job's id."`
}

func (c *jobUntestableCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	return a.endJob(ctx, core, c.auditTrail, oversight.FailJob, c.Job, job.FailUntestable, core.Commands.FailJob)
}

// endJob ends a job for the operator and prints the refund.
func (a *app) endJob(
	ctx context.Context, core *service.Core, on auditTrail, act oversight.Act, jobID, reason string,
	end func(ctx context.Context, cause command.Cause, jobID, reason string) (command.EndedJob, error),
) error {
	cause, err := operatorOn(ctx, core.Log, domain.JobStream(jobID))
	if err != nil {
		return err
	}
	var ended command.EndedJob
	err = on.recordShown(ctx, core, cause, command.OperatorAct{
		Act: act, Subject: domain.JobStream(jobID), AccountID: cause.AccountID,
	}, func(ctx context.Context, cause command.Cause) (at domain.Position, err error) {
		ended, err = end(ctx, cause, jobID, reason)
		return ended.Position, err
	})
	if err != nil {
		return err
	}
	return a.print(ended, "job %s is %s, %d credits went back and %d had expired",
		ended.JobID, ended.Status, ended.CreditsRefunded, ended.CreditsExpired)
}

// operatorOn is the operator acting on the account of a job or a project. It asks
// the log, because the read models of a stopped service may be behind.
func operatorOn(ctx context.Context, log domain.Log, stream string) (command.Cause, error) {
	cause := service.OperatorCause("")
	err := log.Load(ctx, stream, 0, func(r domain.Recorded) error {
		switch created := r.Event.(type) {
		case *job.Created:
			cause.AccountID, cause.Sandbox = created.AccountID, created.Sandbox
		case *project.Created:
			cause.AccountID = created.AccountID
		}
		return errEnough // the first event decides
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return command.Cause{}, err
	case cause.AccountID == "":
		kind, _, _ := strings.Cut(stream, "-")
		return command.Cause{}, domain.NotFound(kind)
	}
	return cause, nil
}

// projectSecretCmd shows the secret that signs a project's deliveries. The API never
// shows it. The dashboard shows it to the owner, and the account's people see that an
// operator has looked.
type projectSecretCmd struct {
	auditTrail `embed:""`
	Project    string `required:"" help:"The project's id."`
}

func (c *projectSecretCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	stream := domain.ProjectStream(c.Project)
	cause, err := operatorOn(ctx, core.Log, stream)
	if err != nil {
		return err
	}
	var secret string
	_, err = c.record(ctx, core, cause, command.OperatorAct{
		Act: oversight.Look, Subject: stream, AccountID: cause.AccountID, Detail: "webhook secret",
	}, func(ctx context.Context, _ command.Cause) (at domain.Position, err error) {
		secret, err = core.Commands.WebhookSecret(ctx, c.Project)
		return at, err
	})
	if err != nil {
		return err
	}
	return a.print(map[string]any{"projectId": c.Project, "webhookSecret": secret}, "%s", secret)
}

package main

import (
	"context"
	"errors"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

type jobCancelCmd struct {
	Job string `required:"" help:"The job's id."`
}

func (c *jobCancelCmd) Run(ctx context.Context, a *app) error {
	return a.endJob(ctx, c.Job, func(commands *command.Service, cause command.Cause) (command.CancelledJob, error) {
		return commands.CancelJob(ctx, cause, c.Job, job.CancelOperator)
	})
}

type jobUntestableCmd struct {
	Job string `required:"" help:"The job's id."`
}

func (c *jobUntestableCmd) Run(ctx context.Context, a *app) error {
	return a.endJob(ctx, c.Job, func(commands *command.Service, cause command.Cause) (command.CancelledJob, error) {
		failed, err := commands.FailJob(ctx, cause, c.Job, job.FailUntestable)
		return command.CancelledJob(failed), err
	})
}

// endJob ends a job at the operator's word and says what went back.
func (a *app) endJob(
	ctx context.Context, jobID string, end func(*command.Service, command.Cause) (command.CancelledJob, error),
) error {
	return a.withCore(ctx, func(ctx context.Context, core *core) error {
		cause, err := operatorOn(ctx, core.log, jobID)
		if err != nil {
			return err
		}
		ended, err := end(core.commands, cause)
		if err != nil {
			return err
		}
		core.waitVisible(ctx, ended.Position)
		return a.print(struct {
			JobID            string         `json:"jobId"`
			Status           job.Status     `json:"status"`
			CreditsRefunded  domain.Credits `json:"creditsRefunded"`
			CreditsExpired   domain.Credits `json:"creditsExpired"`
			CreditsRemaining domain.Credits `json:"creditsRemaining"`
		}{ended.JobID, ended.Status, ended.CreditsRefunded, ended.CreditsExpired, ended.CreditsRemaining},
			"job %s is %s, %d credits went back and %d had expired", ended.JobID, ended.Status, ended.CreditsRefunded, ended.CreditsExpired)
	})
}

// operatorOn is the operator acting on a job's account. It asks the log,
// because the read models of a stopped service may be behind.
func operatorOn(ctx context.Context, log domain.Log, jobID string) (command.Cause, error) {
	enough := errors.New("enough")
	cause := operator("")
	err := log.Load(ctx, domain.JobStream(jobID), 0, func(r domain.Recorded) error {
		if created, ok := r.Event.(*job.Created); ok {
			cause.AccountID, cause.Sandbox = created.AccountID, created.Sandbox
		}
		return enough // the first event decides
	})
	switch {
	case err != nil && !errors.Is(err, enough):
		return command.Cause{}, err
	case cause.AccountID == "":
		return command.Cause{}, domain.NotFound("job " + jobID)
	}
	return cause, nil
}

// projectSecretCmd shows what signs a project's deliveries. The API never does;
// this is the operator's way to what the dashboard shows its owner.
type projectSecretCmd struct {
	Project string `required:"" help:"The project's id."`
}

func (c *projectSecretCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, core *core) error {
		secret, err := core.commands.WebhookSecret(ctx, c.Project)
		if err != nil {
			return err
		}
		return a.print(struct {
			ProjectID     string `json:"projectId"`
			WebhookSecret string `json:"webhookSecret"`
		}{c.Project, secret}, "%s", secret)
	})
}

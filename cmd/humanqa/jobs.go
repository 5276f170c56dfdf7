package main

import (
	"context"
	"errors"

	"humanqa/domain"
	"humanqa/domain/job"
)

type jobCancelCmd struct {
	Job string `required:"" help:"The job's id."`
}

func (c *jobCancelCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, core *core) error {
		accountID, err := accountOfJob(ctx, core.log, c.Job)
		if err != nil {
			return err
		}
		cancelled, err := core.commands.CancelJob(ctx, operator(accountID), c.Job, "operator")
		if err != nil {
			return err
		}
		core.waitVisible(ctx, cancelled.Position)
		return a.print(struct {
			JobID            string         `json:"jobId"`
			Status           job.Status     `json:"status"`
			CreditsRefunded  domain.Credits `json:"creditsRefunded"`
			CreditsRemaining domain.Credits `json:"creditsRemaining"`
		}{cancelled.JobID, cancelled.Status, cancelled.CreditsRefunded, cancelled.CreditsRemaining},
			"job %s is %s, %d credits went back", cancelled.JobID, cancelled.Status, cancelled.CreditsRefunded)
	})
}

// accountOfJob asks the log, because the read models of a stopped service may
// be behind.
func accountOfJob(ctx context.Context, log domain.Log, jobID string) (string, error) {
	enough := errors.New("enough")
	accountID := ""
	err := log.Load(ctx, domain.JobStream(jobID), 0, func(r domain.Recorded) error {
		if created, ok := r.Event.(*job.Created); ok {
			accountID = created.AccountID
		}
		return enough // the first event decides
	})
	if err != nil && !errors.Is(err, enough) {
		return "", err
	}
	if accountID == "" {
		return "", domain.NotFound("job " + jobID)
	}
	return accountID, nil
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

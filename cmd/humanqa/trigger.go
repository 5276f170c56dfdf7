package main

import (
	"context"
	"errors"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/project"
	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/buildinfo"
	"humanqa/internal/hqa/trigger"
)

// triggerCmd is hqa trigger for an operator, who has no key of the account.
type triggerCmd struct {
	Event   string `arg:"" help:"The event, such as job.completed; webhook.test needs no sandbox."`
	Project string `required:"" help:"The project's id. Its account must be a sandbox: robots play the steps that lead to the event."`
}

// triggerTime bounds the story, and the key that it is played with.
const triggerTime = 5 * time.Minute

// Run plays the story with a key of its own, which ends with it.
func (c *triggerCmd) Run(ctx context.Context, a *app) error {
	ctx, cancel := context.WithTimeout(ctx, triggerTime)
	defer cancel()
	return a.withCore(ctx, func(ctx context.Context, core *service.Core) (err error) {
		if !core.Served {
			return errors.New("no service is running here: start it, then trigger the event")
		}
		accountID, err := accountOf(ctx, core.Log, c.Project)
		if err != nil {
			return err
		}
		key, err := core.Commands.IssueKey(ctx, service.OperatorCause(accountID), accountID, command.IssueKey{
			Name: "humanqa trigger", Scope: account.ScopeFull, ExpiresAt: after(new(triggerTime)),
		})
		if err != nil {
			return err
		}
		defer func() {
			_, revoked := core.Commands.RevokeKey(context.WithoutCancel(ctx), service.OperatorCause(accountID), accountID, key.KeyID)
			err = errors.Join(err, revoked)
		}()
		core.WaitVisible(ctx, key.Position)
		client, err := humanqa.New(core.Config.PagesURL(), key.Token, "humanqa/"+buildinfo.This().Version)
		if err != nil {
			return err
		}
		told, err := trigger.Play(ctx, client, c.Event, c.Project)
		if err != nil {
			return err
		}
		return a.print(told, "%s: %s", told.Event, told.About())
	})
}

// accountOf is the account of a project.
func accountOf(ctx context.Context, log domain.Log, projectID string) (string, error) {
	var st project.State
	err := log.Load(ctx, domain.ProjectStream(projectID), 0, func(r domain.Recorded) error {
		st = project.Evolve(st, r.Event)
		return nil
	})
	if err == nil && !st.Exists {
		err = domain.NotFound("project " + projectID)
	}
	return st.AccountID, err
}

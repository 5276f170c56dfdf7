package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
)

type keyCreateCmd struct {
	auditTrail `embed:""`
	Account    string        `required:"" help:"The account's id."`
	Name       string        `help:"The name of the key, such as the program that uses it."`
	Scope      account.Scope `enum:"full,read" default:"full" help:"The rights of the key: full or read."`
	Project    string        `help:"Bind the key to one project."`
	Expires    *lasting      `help:"How long the key works, such as 24h; without it for ever."`
}

func (c *keyCreateCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	var key command.IssuedKey
	var expires *time.Time
	if c.Expires != nil {
		expires = new(time.Now().Add(time.Duration(*c.Expires)).UTC())
	}
	err := c.recordShown(ctx, core, service.OperatorCause(c.Account), command.OperatorAct{
		Act: oversight.IssueKey, Subject: domain.AccountStream(c.Account), AccountID: c.Account, Detail: string(c.Scope),
	}, func(ctx context.Context, cause command.Cause) (at domain.Position, err error) {
		key, err = core.Commands.IssueKey(ctx, cause, c.Account, command.IssueKey{
			Name: c.Name, Scope: c.Scope, ProjectID: c.Project, ExpiresAt: expires,
		})
		return key.Position, err
	})
	if err != nil {
		return err
	}
	return a.print(map[string]any{"keyId": key.KeyID, "apiKey": key.Token}, "key id  %s\nkey     %s   (shown once)", key.KeyID, key.Token)
}

type keyRevokeCmd struct {
	auditTrail `embed:""`
	Key        string `required:"" help:"The key's id (not the key itself)."`
}

// Validate is called by kong. A key's id names its account.
func (c *keyRevokeCmd) Validate() error {
	if _, _, ok := strings.Cut(c.Key, "."); !ok {
		return errors.New("--key wants the key's id, as key create printed it")
	}
	return nil
}

func (c *keyRevokeCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	accountID, _, _ := strings.Cut(c.Key, ".")
	err := c.recordShown(ctx, core, service.OperatorCause(accountID), command.OperatorAct{
		Act: oversight.RevokeKey, Subject: domain.AccountStream(accountID), AccountID: accountID, Detail: c.Key,
	}, func(ctx context.Context, cause command.Cause) (domain.Position, error) {
		return core.Commands.RevokeKey(ctx, cause, accountID, c.Key)
	})
	if err != nil {
		return err
	}
	return a.print(map[string]any{"keyId": c.Key, "status": "revoked"}, "key %s is revoked", c.Key)
}

type checkerCreateCmd struct {
	auditTrail `embed:""`
	Name       filled   `required:"" help:"The checker's name."`
	Account    []string `help:"An account the checker belongs to: its jobs are never shown to them. May be repeated."`
}

func (c *checkerCreateCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	var checker command.CreatedChecker
	cause := service.OperatorCause("")
	err := c.recordShown(ctx, core, cause, command.OperatorAct{
		Act: oversight.CreateChecker, Subject: domain.CheckerStream(command.NewCheckerID(cause)),
	}, func(ctx context.Context, cause command.Cause) (at domain.Position, err error) {
		checker, err = core.Commands.CreateChecker(ctx, cause, string(c.Name), c.Account)
		return checker.Position, err
	})
	if err != nil {
		return err
	}
	return a.print(map[string]any{"checkerId": checker.CheckerID, "checkerKey": checker.Token},
		"checker %s\nkey     %s   (shown once)", checker.CheckerID, checker.Token)
}

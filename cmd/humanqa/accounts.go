package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
)

// operator is who stands behind every command of this binary.
func operator(accountID string) command.Cause {
	return command.Cause{CommandID: command.NewCommandID(), Actor: "operator", AccountID: accountID}
}

// after turns a duration flag into the instant it ends; 0 is never.
func after(d time.Duration) *time.Time {
	if d == 0 {
		return nil
	}
	at := time.Now().Add(d).UTC()
	return &at
}

// lasting is after in the account's own time, which lots expire by. Only a
// sandbox is ever ahead.
func lasting(ctx context.Context, commands *command.Service, accountID string, d time.Duration) (*time.Time, error) {
	if d == 0 {
		return nil, nil
	}
	cause := operator(accountID)
	cause.Sandbox = true
	now, err := commands.AccountTime(ctx, cause)
	if err != nil {
		return nil, err
	}
	at := now.Add(d)
	return &at, nil
}

type accountCreateCmd struct {
	record        `embed:""`
	Name          string         `required:"" help:"What the account is called."`
	Credits       domain.Credits `help:"Credits to grant."`
	CreditsExpire time.Duration  `help:"How long the granted credits last, such as 720h; without it for ever."`
	Sandbox       bool           `help:"Jobs of the account never reach the human queue."`
}

// Validate is called by kong: what it refuses is a usage error.
func (c *accountCreateCmd) Validate() error {
	switch {
	case strings.TrimSpace(c.Name) == "":
		return errors.New("--name must not be blank")
	case c.Credits < 0:
		return errors.New("--credits must not be negative")
	case c.CreditsExpire < 0:
		return errors.New("--credits-expire must not be negative")
	case c.CreditsExpire > 0 && c.Credits == 0:
		return errors.New("--credits-expire needs --credits")
	}
	return c.record.Validate()
}

func (c *accountCreateCmd) Run(ctx context.Context, a *app) error {
	var opened openedAccount
	cause := operator("")
	id := command.NewAccountID(cause)
	return c.run(ctx, a, cause, command.OperatorAct{
		Act: oversight.OpenAccount, Subject: domain.AccountStream(id), AccountID: id, Detail: fmt.Sprintf("%d credits", c.Credits),
	}, func(ctx context.Context, commands *command.Service, cause command.Cause) (at domain.Position, err error) {
		opened, err = openAccount(ctx, commands, cause, *c)
		return opened.position, err
	}, func() error {
		return a.print(struct {
			AccountID string `json:"accountId"`
			APIKey    string `json:"apiKey"`
		}{opened.accountID, opened.apiKey},
			"account %s\nkey     %s   (shown once)", opened.accountID, opened.apiKey)
	})
}

type openedAccount struct {
	accountID, apiKey string
	position          domain.Position
}

// openAccount makes an account ready to use. The key comes last: who has it
// finds the credits granted.
func openAccount(ctx context.Context, commands *command.Service, cause command.Cause, c accountCreateCmd) (openedAccount, error) {
	accountID, _, err := commands.CreateAccount(ctx, cause, strings.TrimSpace(c.Name), c.Sandbox)
	if err != nil {
		return openedAccount{}, err
	}
	if c.Credits > 0 {
		expires, err := lasting(ctx, commands, accountID, c.CreditsExpire)
		if err != nil {
			return openedAccount{}, err
		}
		if _, _, err := commands.GrantCredits(ctx, operator(accountID), accountID, c.Credits, expires, "account opened"); err != nil {
			return openedAccount{}, err
		}
	}
	key, err := commands.IssueKey(ctx, operator(accountID), accountID, command.IssueKey{Scope: account.ScopeFull})
	if err != nil {
		return openedAccount{}, err
	}
	return openedAccount{accountID: accountID, apiKey: key.Token, position: key.Position}, nil
}

type accountSuspendCmd struct {
	record  `embed:""`
	Account string `required:"" help:"The account's id."`
}

func (c *accountSuspendCmd) Run(ctx context.Context, a *app) error {
	return c.setStatus(ctx, a, oversight.Suspend, c.Account, "suspended", (*command.Service).SuspendAccount)
}

type accountReinstateCmd struct {
	record  `embed:""`
	Account string `required:"" help:"The account's id."`
}

func (c *accountReinstateCmd) Run(ctx context.Context, a *app) error {
	return c.setStatus(ctx, a, oversight.Reinstate, c.Account, "active", (*command.Service).ReinstateAccount)
}

// setStatus does what an account is suspended or active by.
func (r record) setStatus(
	ctx context.Context, a *app, act oversight.Act, accountID, status string,
	do func(*command.Service, context.Context, command.Cause, string) (domain.Position, error),
) error {
	return r.run(ctx, a, operator(accountID), command.OperatorAct{
		Act: act, Subject: domain.AccountStream(accountID), AccountID: accountID,
	}, func(ctx context.Context, commands *command.Service, cause command.Cause) (domain.Position, error) {
		return do(commands, ctx, cause, accountID)
	}, func() error {
		return a.print(struct {
			AccountID string `json:"accountId"`
			Status    string `json:"status"`
		}{accountID, status}, "account %s is %s", accountID, status)
	})
}

type creditsGrantCmd struct {
	record  `embed:""`
	Account string         `required:"" help:"The account's id."`
	Amount  domain.Credits `required:"" help:"How many."`
	Expires time.Duration  `help:"How long they last, such as 720h; without it for ever."`
}

// Validate is called by kong.
func (c *creditsGrantCmd) Validate() error {
	switch {
	case c.Amount <= 0:
		return errors.New("--amount must be positive")
	case c.Expires < 0:
		return errors.New("--expires must not be negative")
	}
	return c.record.Validate()
}

func (c *creditsGrantCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, core *core) error {
		expires, err := lasting(ctx, core.commands, c.Account, c.Expires)
		if err != nil {
			return err
		}
		var available domain.Credits
		position, err := c.act(ctx, core, operator(c.Account), command.OperatorAct{
			Act: oversight.GrantCredits, Subject: domain.CreditsStream(c.Account), AccountID: c.Account, Detail: fmt.Sprintf("%d credits", c.Amount),
		}, func(ctx context.Context, cause command.Cause) (at domain.Position, err error) {
			available, at, err = core.commands.GrantCredits(ctx, cause, c.Account, c.Amount, expires, "granted by the operator")
			return at, err
		})
		if err != nil {
			return err
		}
		core.waitVisible(ctx, position)
		return a.print(struct {
			AccountID string         `json:"accountId"`
			Available domain.Credits `json:"available"`
		}{c.Account, available}, "account %s has %d credits", c.Account, available)
	})
}

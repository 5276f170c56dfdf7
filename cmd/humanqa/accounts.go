package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
)

// lasting is the time until an end, in a flag without which there is none.
type lasting time.Duration

// UnmarshalText is called by kong.
func (l *lasting) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err == nil && d <= 0 {
		err = errors.New("it must be more than 0; without it there is no end")
	}
	*l = lasting(d)
	return err
}

type accountCreateCmd struct {
	auditTrail    `embed:""`
	Name          filled         `required:"" help:"The account's name."`
	Credits       domain.Credits `help:"Credits to grant."`
	CreditsExpire *lasting       `help:"How long the granted credits last, such as 720h; without it for ever."`
	Sandbox       bool           `help:"Jobs of the account never reach the human queue."`
}

// Validate is called by kong: its refusal is a usage error.
func (c *accountCreateCmd) Validate() error {
	switch {
	case c.Credits < 0:
		return errors.New("--credits must not be negative")
	case c.CreditsExpire != nil && c.Credits == 0:
		return errors.New("--credits-expire needs --credits")
	}
	return nil
}

func (c *accountCreateCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	var key command.IssuedKey
	cause := service.OperatorCause("")
	id := command.NewAccountID(cause)
	err := c.recordShown(ctx, core, cause, command.OperatorAct{
		Act: oversight.OpenAccount, Subject: domain.AccountStream(id), AccountID: id, Detail: fmt.Sprintf("%d credits", c.Credits),
	}, func(ctx context.Context, cause command.Cause) (at domain.Position, err error) {
		_, key, err = service.OpenAccount(ctx, core.Commands, cause, service.NewAccount{
			Name: string(c.Name), Credits: c.Credits, CreditsExpire: (*time.Duration)(c.CreditsExpire), Sandbox: c.Sandbox,
		})
		return key.Position, err
	})
	if err != nil {
		return err
	}
	return a.print(map[string]any{"accountId": id, "apiKey": key.Token}, "account %s\nkey     %s   (shown once)", id, key.Token)
}

type accountSuspendCmd struct {
	auditTrail `embed:""`
	Account    string `required:"" help:"The account's id."`
}

func (c *accountSuspendCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	return c.setStatus(ctx, a, core, oversight.Suspend, c.Account, "suspended", core.Commands.SuspendAccount)
}

type accountReinstateCmd struct {
	auditTrail `embed:""`
	Account    string `required:"" help:"The account's id."`
}

func (c *accountReinstateCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	return c.setStatus(ctx, a, core, oversight.Reinstate, c.Account, "active", core.Commands.ReinstateAccount)
}

// setStatus runs do, which suspends or activates the account, and prints the status.
func (t auditTrail) setStatus(
	ctx context.Context, a *app, core *service.Core, act oversight.Act, accountID, status string,
	do func(context.Context, command.Cause, string) (domain.Position, error),
) error {
	err := t.recordShown(ctx, core, service.OperatorCause(accountID), command.OperatorAct{
		Act: act, Subject: domain.AccountStream(accountID), AccountID: accountID,
	}, func(ctx context.Context, cause command.Cause) (domain.Position, error) {
		return do(ctx, cause, accountID)
	})
	if err != nil {
		return err
	}
	return a.print(map[string]any{"accountId": accountID, "status": status}, "account %s is %s", accountID, status)
}

type creditsGrantCmd struct {
	auditTrail `embed:""`
	Account    string         `required:"" help:"The account's id."`
	Amount     domain.Credits `required:"" help:"How many."`
	Expires    *lasting       `help:"How long they last, such as 720h; without it for ever."`
}

// Validate is called by kong.
func (c *creditsGrantCmd) Validate() error {
	if c.Amount <= 0 {
		return errors.New("--amount must be positive")
	}
	return nil
}

func (c *creditsGrantCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	expires, err := service.ExpiryAfter(ctx, core.Commands, c.Account, (*time.Duration)(c.Expires))
	if err != nil {
		return err
	}
	var available domain.Credits
	err = c.recordShown(ctx, core, service.OperatorCause(c.Account), command.OperatorAct{
		Act: oversight.GrantCredits, Subject: domain.CreditsStream(c.Account), AccountID: c.Account,
		Detail: fmt.Sprintf("%d credits", c.Amount),
	}, func(ctx context.Context, cause command.Cause) (at domain.Position, err error) {
		available, at, err = core.Commands.GrantCredits(ctx, cause, c.Account, c.Amount, expires, "granted by the operator")
		return at, err
	})
	if err != nil {
		return err
	}
	return a.print(map[string]any{"accountId": c.Account, "available": available}, "account %s has %d credits", c.Account, available)
}

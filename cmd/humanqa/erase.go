package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
	"humanqa/internal/service"
	"humanqa/internal/service/erase"
)

type accountEraseCmd struct {
	Account string `required:"" help:"The account's id."`
	By      string `required:"" help:"The operator's name, for the record."`
	Reason  string `required:"" help:"The reason, for the record."`
}

// Validate is called by kong.
func (c *accountEraseCmd) Validate() error {
	if strings.TrimSpace(c.By) == "" || strings.TrimSpace(c.Reason) == "" {
		return errors.New("--by and --reason must not be blank")
	}
	return nil
}

// Run may be repeated, after a crash too, until it says that nothing is left.
func (c *accountEraseCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, core *service.Core) error {
		e, err := erase.New(ctx, core, c.Account, c.By, c.Reason)
		if err != nil {
			return err
		}
		defer e.Close()
		_, err = auditTrail{By: c.By, Reason: c.Reason}.record(ctx, core, service.OperatorCause(c.Account), command.OperatorAct{
			Act: oversight.EraseAccount, Subject: domain.AccountStream(c.Account), AccountID: c.Account,
		}, func(ctx context.Context, _ command.Cause) (domain.Position, error) {
			return domain.Position{}, e.Run(ctx)
		})
		if err != nil {
			return fmt.Errorf("%w: run the same command again to erase the rest", err)
		}
		return a.print(struct {
			AccountID string `json:"accountId"`
			Status    string `json:"status"`
			Erased    int    `json:"erased"`
		}{c.Account, "erased", e.Erased},
			"account %s is erased: %d remaining things of it are gone, its history stays in the log", c.Account, e.Erased)
	})
}

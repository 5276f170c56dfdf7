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

type eraseCmd struct {
	Job    string `required:"" help:"The job's id."`
	By     string `help:"The operator's name, for the record."`
	Reason string `help:"The reason, for the record."`
	DryRun bool   `help:"Show what would be erased, and erase nothing."`
}

// Validate is called by kong.
func (c *eraseCmd) Validate() error {
	if !c.DryRun && (strings.TrimSpace(c.By) == "" || strings.TrimSpace(c.Reason) == "") {
		return errors.New("--by and --reason must not be blank")
	}
	return nil
}

// Run may be repeated, after a crash too.
func (c *eraseCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, core *service.Core) error {
		j, err := erase.NewJob(ctx, core, a.log, c.Job, c.By, c.Reason)
		if err != nil {
			return err
		}
		defer j.Close()
		if c.DryRun {
			found, err := j.Search(ctx)
			if err != nil {
				return err
			}
			return a.printErasure("would be erased", j.Plan, found)
		}
		cause := service.OperatorCause(j.Plan.AccountID)
		var left erase.Searched
		_, err = auditTrail{By: c.By, Reason: c.Reason}.record(ctx, core, cause, command.OperatorAct{
			Act: oversight.EraseJob, Subject: domain.JobStream(c.Job), AccountID: j.Plan.AccountID,
		}, func(ctx context.Context, _ command.Cause) (domain.Position, error) {
			left, err = j.Run(ctx)
			return domain.Position{}, err
		})
		if err != nil {
			return fmt.Errorf("%w: run the same command again to erase the rest", err)
		}
		if err := a.printErasure("erased", j.Plan, left); err != nil {
			return err
		}
		switch {
		case len(left.Left) > 0:
			return errors.New("texts of the job are still there, and so is their key: update every process of the service, drop read models that no binary runs (humanqa projections list), and run the same command again")
		case len(left.InClear) > 0:
			return errors.New("the log holds texts of the job that were written before texts were sealed: they stay")
		}
		return nil
	})
}

// printErasure tells what there was, and where the texts were found.
func (a *app) printErasure(status string, plan erase.Plan, found erase.Searched) error {
	if a.json {
		return a.print(struct {
			Status string         `json:"status"`
			Plan   erase.Plan     `json:"plan"`
			Search erase.Searched `json:"search"`
		}{status, plan, found}, "")
	}
	if plan.KeyGone {
		status += " before: its texts opened no more, so this run could not search for them"
	}
	lines := []string{
		fmt.Sprintf("job %s, %s:", plan.JobID, status),
		fmt.Sprintf("  %d texts in %d events, %d of these events in the clear", plan.Texts, plan.Events, plan.InClear),
		fmt.Sprintf("  %d files of evidence, %d bytes", plan.Files, plan.FileBytes),
		fmt.Sprintf("  the stored bodies of %d deliveries", plan.Deliveries),
		fmt.Sprintf("searched for %d texts: %d tables, about %d rows; %d events of the log", found.Texts, found.Tables, found.Rows, found.Events),
	}
	for _, places := range []struct {
		title string
		list  []erase.Place
	}{
		{"left", found.Left}, {"in the clear in the log", found.InClear}, {"the same texts in what belongs to others, untouched", found.Elsewhere},
	} {
		if len(places.list) == 0 {
			lines = append(lines, "  "+places.title+": none")
		}
		for _, p := range places.list {
			lines = append(lines, "  "+places.title+": "+p.String())
		}
	}
	return a.print(nil, "%s", strings.Join(lines, "\n"))
}

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

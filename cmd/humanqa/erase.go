package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"text/template"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/erase"
	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
)

type eraseCmd struct {
	Job      string `xor:"subject" required:"" help:"A job, by its id: its texts, pictures, recordings and stored deliveries."`
	Checker  string `xor:"subject" required:"" help:"A checker, by their id: their name, profile and key."`
	Person   string `xor:"subject" required:"" help:"A person, by their id: their name, ways to sign in, mails and drafts, and the checker that they work as."`
	Pictures bool   `help:"Of a checker also the pictures and recordings that they made."`
	Tests    bool   `help:"Of a checker also every test that they had, as --job does: notes, summaries and the texts of the client."`
	By       filled `help:"The operator's name, for the record."`
	Reason   filled `help:"The reason, for the record."`
	DryRun   bool   `help:"Show what would be erased, and erase nothing."`
}

// Validate is called by kong.
func (c *eraseCmd) Validate() error {
	switch {
	case !c.DryRun && (c.By == "" || c.Reason == ""):
		return errors.New("--by and --reason must not be blank")
	case c.Job != "" && (c.Pictures || c.Tests):
		return errors.New("--pictures and --tests are of a checker or a person: a job goes whole")
	}
	return nil
}

// erasing is the erasure of one subject with its record, its steps and its report.
type erasing struct {
	act         command.OperatorAct
	search, run func(context.Context) (erase.Searched, error)
	kind        string // of the subject
	plan        any
}

func (c *eraseCmd) open(ctx context.Context, by *erase.Operator) (erasing, error) {
	asked := erase.Asked{Pictures: c.Pictures, Tests: c.Tests}
	switch {
	case c.Job != "":
		j, err := erase.NewJob(ctx, by, c.Job)
		if err != nil {
			return erasing{}, err
		}
		act := command.OperatorAct{Act: oversight.EraseJob, Subject: domain.JobStream(c.Job), AccountID: j.Plan.AccountID}
		return erasing{act, j.Search, j.Run, "job", &j.Plan}, nil
	case c.Checker != "":
		e, err := erase.NewChecker(ctx, by, c.Checker)
		if err != nil {
			return erasing{}, err
		}
		act := command.OperatorAct{Act: oversight.EraseChecker, Subject: domain.CheckerStream(c.Checker)}
		run := func(ctx context.Context) (erase.Searched, error) { return e.Run(ctx, asked) }
		return erasing{act, e.Search, run, "checker", &e.Plan}, nil
	}
	p, err := erase.NewPerson(ctx, by, c.Person)
	if err != nil {
		return erasing{}, err
	}
	act := command.OperatorAct{Act: oversight.ErasePerson, Subject: domain.PersonStream(c.Person)}
	run := func(ctx context.Context) (erase.Searched, error) { return p.Run(ctx, asked) }
	return erasing{act, p.Search, run, "person", &p.Plan}, nil
}

// Run may be repeated, after a crash too.
func (c *eraseCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	by, err := erase.Open(ctx, core, a.log, string(c.By), string(c.Reason))
	if err != nil {
		return err
	}
	defer by.Close()
	e, err := c.open(ctx, by)
	if err != nil {
		return err
	}
	if c.DryRun {
		found, err := e.search(ctx)
		if err != nil {
			return err
		}
		return a.printErasure("would be erased", e, found)
	}
	var left erase.Searched
	_, err = auditTrail{By: c.By, Reason: c.Reason}.record(ctx, core, service.OperatorCause(e.act.AccountID), e.act,
		func(ctx context.Context, _ command.Cause) (domain.Position, error) {
			left, err = e.run(ctx)
			return domain.Position{}, err
		})
	var refused *domain.Error
	switch {
	case errors.Is(err, erase.ErrHeld), errors.As(err, &refused):
		return err
	case err != nil:
		return fmt.Errorf("%w: run the same command again to erase the rest", err)
	}
	if err := a.printErasure("erased", e, left); err != nil {
		return err
	}
	switch {
	case len(left.Left) > 0:
		return errors.New("texts are still there, and so is their key: update every process of the service, drop read models that no binary runs (humanqa projections list), and run the same command again")
	case len(left.InClear) > 0:
		return errors.New("the log holds texts that were written before texts were sealed: they stay")
	}
	return nil
}

//go:embed texts/erased.txt
var erasedText string

var erased = template.Must(template.New("").Funcs(template.FuncMap{"sized": sized, "lines": erase.Lines}).Parse(erasedText))

// printErasure prints the plan, and the places where the texts were found.
func (a *app) printErasure(status string, e erasing, found erase.Searched) error {
	var text strings.Builder
	err := errors.Join(erased.ExecuteTemplate(&text, e.kind, e.plan), erased.ExecuteTemplate(&text, "found", found))
	if err != nil {
		return err
	}
	return a.print(map[string]any{"status": status, "plan": e.plan, "search": found}, "%s, %s:\n%s",
		e.act.Subject, status, strings.TrimRight(text.String(), "\n"))
}

type accountEraseCmd struct {
	Account string `required:"" help:"The account's id."`
	By      filled `required:"" help:"The operator's name, for the record."`
	Reason  filled `required:"" help:"The reason, for the record."`
}

// Run may be repeated, after a crash too, until it says that nothing is left.
func (c *accountEraseCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	by, err := erase.Open(ctx, core, a.log, string(c.By), string(c.Reason))
	if err != nil {
		return err
	}
	defer by.Close()
	e, err := erase.New(by, c.Account)
	if err != nil {
		return err
	}
	_, err = auditTrail{By: c.By, Reason: c.Reason}.record(ctx, core, service.OperatorCause(c.Account), command.OperatorAct{
		Act: oversight.EraseAccount, Subject: domain.AccountStream(c.Account), AccountID: c.Account,
	}, func(ctx context.Context, _ command.Cause) (domain.Position, error) {
		return domain.Position{}, e.Run(ctx)
	})
	if err != nil {
		return fmt.Errorf("%w: run the same command again to erase the rest", err)
	}
	return a.print(map[string]any{"accountId": c.Account, "status": "erased", "erased": e.Erased},
		"account %s is erased: %d remaining things of it are gone, its history stays in the log", c.Account, e.Erased)
}

package main

import (
	"cmp"
	"context"
	"errors"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
	"humanqa/domain/person"
	"humanqa/internal/credential"
	"humanqa/projections"
)

type personInviteCmd struct {
	auditTrail `embed:""`

	Operator bool        `help:"As an operator of this service." xor:"as" required:""`
	Account  string      `help:"Into the account with this id, with --role." xor:"as" required:""`
	Checker  bool        `help:"As a checker; a new one unless --checker-id says which." xor:"as" required:""`
	Role     person.Role `enum:"owner,developer,viewer," default:"" help:"Of --account: owner, developer or viewer."`

	CheckerID string `name:"checker-id" help:"The checker they work as."`
	Name      string `help:"The person's name. The person may change it."`
}

// Validate is called by kong.
func (c *personInviteCmd) Validate() error {
	switch {
	case c.Account != "" && c.Role == "":
		return errors.New("--account needs --role")
	case c.Account == "" && c.Role != "":
		return errors.New("--role needs --account")
	case !c.Checker && c.CheckerID != "":
		return errors.New("--checker-id needs --checker")
	}
	return nil
}

func (c *personInviteCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	cause := service.OperatorCause(c.Account)
	invited := command.OperatorAct{
		Act: oversight.Invite, Subject: domain.PersonStream(domain.DeriveID(cause.CommandID, "person").String()), AccountID: c.Account,
		Detail: string(c.role()),
	}
	var id string
	var grant person.Grant
	at, err := c.record(ctx, core, cause, invited, func(ctx context.Context, cause command.Cause) (at domain.Position, err error) {
		if grant, err = c.grant(ctx, core, cause); err == nil {
			id, at, err = core.Commands.InvitePerson(ctx, cause, grant)
		}
		return at, err
	})
	if err != nil {
		return err
	}
	store, err := core.Credentials(a.cfg.PagesURL())
	if err != nil {
		return err
	}
	link, err := service.InviteLink(ctx, store, a.cfg.PagesURL(), id, c.Name, []person.Grant{grant}, credential.LinkFor)
	if err != nil {
		return err
	}
	core.WaitVisible(ctx, at)
	return a.print(personLink{id, link}, "person %s\nlink   %s   (works once, for 72 hours)", id, link)
}

func (c *personInviteCmd) role() person.Role {
	switch {
	case c.Operator:
		return person.Operator
	case c.Checker:
		return person.Checker
	}
	return c.Role
}

// grant is the person's right; it makes a checker where none is named.
func (c *personInviteCmd) grant(ctx context.Context, core *service.Core, cause command.Cause) (person.Grant, error) {
	g := person.Grant{Role: c.role(), AccountID: c.Account, CheckerID: c.CheckerID}
	if !c.Checker || c.CheckerID != "" {
		return g, nil
	}
	made, err := core.Commands.CreateChecker(ctx, cause, cmp.Or(c.Name, "Checker"), nil)
	g.CheckerID = made.CheckerID
	return g, err
}

type personLinkCmd struct {
	auditTrail `embed:""`
	Person     string `required:"" help:"The person's id, as person invite said it."`
}

// Run makes a link. Its use replaces every other way to sign in that the person has.
func (c *personLinkCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	who, err := projections.NewReads(core.DB).People.Person(ctx, c.Person)
	if err != nil {
		return err
	}
	if who.Disabled {
		return domain.Conflict("the person is disabled").WithHint("invite them anew: humanqa person invite")
	}
	store, err := core.Credentials(a.cfg.PagesURL())
	if err != nil {
		return err
	}
	names, err := store.Names(ctx, who.ID)
	if err != nil {
		return err
	}
	var link string
	_, err = c.record(ctx, core, service.OperatorCause(""), command.OperatorAct{Act: oversight.NewLink,
		Subject: domain.PersonStream(who.ID)},
		func(ctx context.Context, _ command.Cause) (at domain.Position, err error) {
			link, err = service.InviteLink(ctx, store, a.cfg.PagesURL(), who.ID, names[who.ID].Name, who.Grants(), credential.LinkFor)
			return at, err
		})
	if err != nil {
		return err
	}
	return a.print(personLink{who.ID, link}, "link   %s   (works once, for 72 hours; then nothing else lets them in)", link)
}

// personLink is the JSON form of a new link.
type personLink struct {
	PersonID string `json:"personId"`
	Link     string `json:"link"`
}

package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
	"humanqa/domain/person"
	"humanqa/eventstore/consumer"
	"humanqa/httpapi"
	"humanqa/httpapi/console"
	"humanqa/httpapi/dashboard"
	"humanqa/httpapi/room"
	"humanqa/httpapi/signin"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/workbench"
	"humanqa/internal/backoff"
	"humanqa/internal/credential"
	"humanqa/internal/desk"
	"humanqa/projections"
	"humanqa/projections/changes"
	"humanqa/webhooks"
)

type personInviteCmd struct {
	record `embed:""`

	Operator bool        `help:"As an operator of this service." xor:"as" required:""`
	Account  string      `help:"Into the account with this id, with --role." xor:"as" required:""`
	Checker  bool        `help:"As a checker; a new one unless --checker-id says which." xor:"as" required:""`
	Role     person.Role `enum:"owner,developer,viewer," default:"" help:"Of --account: owner, developer or viewer."`

	CheckerID string `name:"checker-id" help:"The checker they work as."`
	Name      string `help:"What they are called; they may change it."`
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
	return c.record.Validate()
}

func (c *personInviteCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, core *core) error {
		cause := operator(c.Account)
		invited := command.OperatorAct{
			Act: oversight.Invite, Subject: domain.PersonStream(domain.DeriveID(cause.CommandID, "person").String()), AccountID: c.Account,
			Detail: string(c.role()),
		}
		var id string
		var grant person.Grant
		at, err := c.act(ctx, core, cause, invited, func(ctx context.Context, cause command.Cause) (at domain.Position, err error) {
			if grant, err = c.grant(ctx, core, cause); err == nil {
				id, at, err = core.commands.InvitePerson(ctx, cause, grant)
			}
			return at, err
		})
		if err != nil {
			return err
		}
		links, err := core.links(a.cfg.pagesURL())
		if err != nil {
			return err
		}
		link, err := links.invite(ctx, id, c.Name, []person.Grant{grant}, credential.LinkFor)
		if err != nil {
			return err
		}
		core.waitVisible(ctx, at)
		return a.print(personLink{id, link}, "person %s\nlink   %s   (works once, for 72 hours)", id, link)
	})
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

// grant is what the person may; a checker who is not there yet is made.
func (c *personInviteCmd) grant(ctx context.Context, core *core, cause command.Cause) (person.Grant, error) {
	g := person.Grant{Role: c.role(), AccountID: c.Account, CheckerID: c.CheckerID}
	if !c.Checker || c.CheckerID != "" {
		return g, nil
	}
	made, err := core.commands.CreateChecker(ctx, cause, cmp.Or(c.Name, "Checker"), nil)
	g.CheckerID = made.CheckerID
	return g, err
}

type personLinkCmd struct {
	record `embed:""`
	Person string `required:"" help:"The person's id, as person invite said it."`
}

// Run makes a link that replaces every way in the person has, once it is used.
func (c *personLinkCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, core *core) error {
		who, err := projections.NewReads(core.db).People.Person(ctx, c.Person)
		if err != nil {
			return err
		}
		if who.Disabled {
			return domain.Conflict("the person is disabled").WithHint("invite them anew: humanqa person invite")
		}
		links, err := core.links(a.cfg.pagesURL())
		if err != nil {
			return err
		}
		names, err := links.Names(ctx, who.ID)
		if err != nil {
			return err
		}
		var link string
		_, err = c.act(ctx, core, operator(""), command.OperatorAct{Act: oversight.NewLink, Subject: domain.PersonStream(who.ID)},
			func(ctx context.Context, _ command.Cause) (at domain.Position, err error) {
				link, err = links.invite(ctx, who.ID, names[who.ID].Name, who.Grants(), credential.LinkFor)
				return at, err
			})
		if err != nil {
			return err
		}
		return a.print(personLink{who.ID, link}, "link   %s   (works once, for 72 hours; then nothing else lets them in)", link)
	})
}

// personLink is what a command that makes a link prints with --json.
type personLink struct {
	PersonID string `json:"personId"`
	Link     string `json:"link"`
}

// pagesURL is where people reach the pages, as far as a command can know it.
func (c Config) pagesURL() string {
	if c.BaseURL != "" {
		return c.BaseURL
	}
	return c.scheme() + c.Addr
}

// links makes one-time links.
type links struct {
	*credential.Store
	base string
}

func (c *core) links(base string) (links, error) {
	store, err := credential.Open(credential.Config{DB: c.db, Now: time.Now, BaseURL: base, Grants: c.commands.Grants})
	return links{Store: store, base: ui.Origin(base)}, err
}

func (l links) invite(ctx context.Context, personID, name string, grants []person.Grant, works time.Duration) (string, error) {
	token, err := l.Invite(ctx, personID, name, grants, works)
	return l.base + "/join/" + token, err
}

// welcomeLink is a way in that a start prints.
type welcomeLink struct{ who, url string }

// welcomeLinks are the ways in that nobody has taken yet: of the demo's three
// people, or of the first operator while there is none. They are derived from
// what they are for, so that every start means the same people; an older link
// ends with the new one.
func (s *service) welcomeLinks(ctx context.Context) ([]welcomeLink, error) {
	l, err := s.core.links(s.cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	reads := projections.NewReads(s.core.db)
	type guest struct {
		who, name string
		command   uuid.UUID
		grant     person.Grant
		works     time.Duration
	}
	first := guest{"operator", "Operator", domain.CommandIDFor("first operator"), person.Grant{Role: person.Operator}, credential.FirstLinkFor}
	var guests []guest
	if s.cfg.Demo {
		checker, found, err := reads.Access.Checker(ctx, domain.HashToken(s.demo.CheckerKey))
		if err != nil {
			return nil, err
		}
		guests = append(guests, guest{"owner", "Demo owner", domain.CommandIDFor("demo owner", s.demo.AccountID),
			person.Grant{Role: person.Owner, AccountID: s.demo.AccountID}, credential.LinkFor})
		if found {
			guests = append(guests, guest{"checker", "Demo checker", domain.CommandIDFor("demo checker", checker.ID),
				person.Grant{Role: person.Checker, CheckerID: checker.ID}, credential.LinkFor})
		}
	}
	if there, err := reads.People.AnyOperator(ctx, true); err != nil {
		return nil, err
	} else if !there {
		guests = append(guests, first)
	}
	var out []welcomeLink
	for _, g := range guests {
		cause := operator(g.grant.AccountID)
		cause.CommandID = g.command
		id, at, err := s.core.commands.InvitePerson(ctx, cause, g.grant)
		if domain.IsKind(err, domain.KindConflict) {
			continue // they have another role by now: they know the way
		}
		if err != nil {
			return nil, err
		}
		if err := s.consumers.WaitFor(ctx, at); err != nil {
			return nil, err
		}
		who, err := reads.People.Person(ctx, id)
		if err != nil {
			return nil, err
		}
		if who.JoinedAt != nil || who.Disabled {
			continue
		}
		link, err := l.invite(ctx, id, g.name, []person.Grant{g.grant}, g.works)
		if err != nil {
			return nil, err
		}
		out = append(out, welcomeLink{g.who, link})
	}
	return out, nil
}

// readySite is the pages, and what keeps them current.
type readySite struct {
	*ui.Site
	changes     *changes.Changes
	credentials *credential.Store
	from        domain.Position
}

// openSite sets the pages up over the API.
func (s *service) openSite(ctx context.Context, api *httpapi.API, feed consumer.Source, log *logrus.Logger) (readySite, error) {
	store, err := credential.Open(credential.Config{DB: s.core.db, Now: time.Now, BaseURL: s.cfg.BaseURL, Grants: s.core.commands.Grants})
	if err != nil {
		return readySite{}, err
	}
	from, err := s.core.log.Head(ctx)
	if err != nil {
		return readySite{}, err
	}
	reads := projections.NewReads(s.core.db)
	out := readySite{changes: changes.New(feed, s.core.db, s.consumers.WaitFor, log), credentials: store, from: from}
	out.Site, err = ui.New(ui.Config{
		Credentials: store, People: reads.People, Changes: out.changes,
		Admit: api.Admit, Address: httpapi.Address, WaitFor: s.consumers.WaitFor,
		Log: log.WithField("part", "pages"), Now: time.Now, BaseURL: s.cfg.BaseURL,
		Templates: []fs.FS{signin.Templates, dashboard.Templates, workbench.Templates, room.Templates, console.Templates},
		Pages: slices.Concat(
			signin.Pages(signin.Deps{Credentials: store, People: reads.People, Join: s.core.commands.JoinPerson, BaseURL: s.cfg.BaseURL}),
			dashboard.Pages(dashboard.Deps{
				Commands: s.core.commands, Reads: reads, API: api, Credentials: store, Desk: desk.New(s.core.db, time.Now), Deliveries: webhooks.NewLog(s.core.db), Now: time.Now, BaseURL: s.cfg.BaseURL,
			}),
			console.Pages(s.consoleDeps(ctx, reads, store, log)),
			workbench.Pages(workbench.Deps{Commands: s.core.commands, Reads: reads, API: api, Now: time.Now}),
			room.Pages(room.Deps{Commands: s.core.commands, Reads: reads, API: api, Changes: out.changes, Voice: s.voice, Now: time.Now}),
		),
	})
	return out, err
}

// run keeps open pages current and forgets what sign-ins left, until ctx ends.
func (s readySite) run(log *logrus.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		var sweeping sync.WaitGroup
		defer sweeping.Wait()
		sweeping.Go(func() {
			for again := true; again; again = backoff.Wait(ctx, sweepSignins) == nil {
				if err := s.credentials.Sweep(ctx); err != nil && ctx.Err() == nil {
					log.WithError(err).Warn("what sign-ins left stays until the next sweep")
				}
			}
		})
		return s.changes.Run(ctx, s.from)
	}
}

// sweepSignins is how often ended sessions and links are removed.
const sweepSignins = 10 * time.Minute

package service

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/httpapi/ui"
	"humanqa/internal/credential"
	"humanqa/projections"
)

// PagesURL is where people reach the pages, as far as a command can know it. It is the
// setting, or the address of the running service of this data directory, or the default.
func (c Config) PagesURL() string {
	if c.BaseURL != "" {
		return c.BaseURL
	}
	if said, err := os.ReadFile(c.pagesFile()); err == nil && len(said) > 0 && CheckURL("", string(said), "http", "https") == nil {
		return string(said)
	}
	return c.scheme() + c.Addr
}

// pagesFile has the running service's own address. One that a crash left behind is of the
// latest service that ran here.
func (c Config) pagesFile() string { return filepath.Join(c.DataDir, "pages-url") }

// tellPagesURL tells commands where the pages are, until the service stops.
func (s *Service) tellPagesURL(cfg Config) error {
	at := cfg.pagesFile()
	if err := os.WriteFile(at, []byte(cfg.BaseURL), 0o600); err != nil {
		return fmt.Errorf("tell where the pages are: %w", err)
	}
	s.core.shutdown.add("the pages' address", closeBudget, func(context.Context) error { return os.Remove(at) })
	return nil
}

// Credentials opens the store of sign-ins, for pages that begin with base.
func (c *Core) Credentials(base string) (*credential.Store, error) {
	return credential.Open(credential.Config{DB: c.DB, Now: time.Now, BaseURL: base, Grants: c.Commands.Grants, Sealer: c.Vault})
}

// InviteLink makes a one-time link that begins with base. Its use replaces every other way in
// that the person has.
func InviteLink(
	ctx context.Context, store *credential.Store, base, personID, name string, grants []person.Grant, works time.Duration,
) (string, error) {
	token, err := store.Invite(ctx, personID, name, grants, works)
	return ui.Origin(base) + "/join/" + token, err
}

// welcomeLink is a way in that a start prints.
type welcomeLink struct{ Who, URL string }

// welcomeLinks are the links that are still unused: of the demo's three people, or of the
// first operator while there is none. Each is derived from its purpose, so that every
// start means the same people; an older link ends with the new one.
func (s *Service) welcomeLinks(ctx context.Context) ([]welcomeLink, error) {
	store, err := s.core.Credentials(s.cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	reads := projections.NewReads(s.core.DB)
	type guest struct {
		who, name string
		command   uuid.UUID
		grant     person.Grant
		works     time.Duration
	}
	first := guest{"operator", "Operator", domain.CommandIDFor("first operator"), person.Grant{Role: person.Operator},
		credential.FirstLinkFor}
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
		cause := OperatorCause(g.grant.AccountID)
		cause.CommandID = g.command
		id, at, err := s.core.Commands.InvitePerson(ctx, cause, g.grant)
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
		link, err := InviteLink(ctx, store, s.cfg.BaseURL, id, g.name, []person.Grant{g.grant}, g.works)
		if err != nil {
			return nil, err
		}
		out = append(out, welcomeLink{g.who, link})
	}
	return out, nil
}

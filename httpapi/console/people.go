package console

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
	"humanqa/domain/person"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/internal/credential"
	"humanqa/projections/overall"
	acts "humanqa/projections/oversight"
	"humanqa/projections/people"
)

type peopleView struct {
	Choices choices
	Role    string
	Roles   []person.Role
	Lines   []overall.Person
	Names   map[string]credential.Person
	Pager   ui.Pager
	linkView
}

// linkView is a sign-in link, shown once, right after it was made.
type linkView struct{ Link, For string }

func (d Deps) peoplePage(r *ui.Request) (ui.Answer, error) { return d.people(r, linkView{}) }

func (d Deps) people(r *ui.Request, link linkView) (ui.Answer, error) {
	v := peopleView{linkView: link, Role: r.FormValue("show"), Roles: append(person.AccountRoles(), person.Checker, person.Operator)}
	if !slices.Contains(v.Roles, person.Role(v.Role)) {
		v.Role = ""
	}
	list, total, err := d.Reads.Overall.People(r.Context(), v.Role, pageOf(r))
	if err != nil {
		return ui.Answer{}, err
	}
	v.Lines = list
	ids := wire.List(list, func(p overall.Person) string { return p.ID })
	if v.Names, err = d.Credentials.Names(r.Context(), ids...); err != nil {
		return ui.Answer{}, err
	}
	if v.Choices, err = d.choices(r.Context()); err != nil {
		return ui.Answer{}, err
	}
	v.Pager = ui.NewPager(r, ui.PageOf(r), len(list), total)
	return ui.Answer{Template: "console-people", Title: "People", View: v, Secret: link.Link != ""}, nil
}

// nameless is the name for a person who has given none.
func nameless(id string) string { return "Person " + id }

// grantOf reads which role a form gives. A checker that no field names is a new one.
func (d Deps) grantOf(r *ui.Request) (g person.Grant, err error) {
	g.Role = person.Role(r.PostFormValue("role"))
	switch {
	case g.Role.OfAccount():
		g.AccountID, err = d.named(r, overall.Accounts)
	case g.Role == person.Checker:
		if strings.TrimSpace(r.PostFormValue("checker")) != "" {
			g.CheckerID, err = d.named(r, overall.Checkers)
		}
	case g.Role != person.Operator:
		err = domain.Invalid(domain.Detail{Path: "role", Message: "must be owner, developer, viewer, checker or operator"})
	}
	return g, err
}

// grantWords puts a grant into words.
func grantWords(g person.Grant) string {
	if g.AccountID != "" {
		return string(g.Role) + " of account " + g.AccountID
	}
	return string(g.Role)
}

// withChecker makes the checker of a grant that names none.
func (d Deps) withChecker(ctx context.Context, cause command.Cause, g *person.Grant, name string) error {
	if g.Role != person.Checker || g.CheckerID != "" {
		return nil
	}
	made, err := d.Commands.CreateChecker(ctx, cause, name, nil)
	g.CheckerID = made.CheckerID
	if domain.IsKind(err, domain.KindConflict) {
		return nil // this command has created it before: the id derives from the command
	}
	return err
}

// invite answers with the page itself: the link is on it, and nowhere else. The
// same form again makes another link for the same person.
func (d Deps) invite(r *ui.Request) (ui.Answer, error) {
	g, err := d.grantOf(r)
	name, wrong := r.Text("name", credential.MaxName)
	if err == nil && (name == "" || wrong != nil) {
		err = domain.Invalid(domain.Detail{Path: "name", Message: "must have 1 to 120 characters"})
	}
	if err != nil {
		return ui.Answer{}, err
	}
	var id string
	cause := r.Cause()
	subject := domain.PersonStream(domain.DeriveID(cause.CommandID, "person").String())
	err = d.act(r, cause, command.OperatorAct{Act: oversight.Invite, Subject: subject, AccountID: g.AccountID, Detail: grantWords(g)},
		func(ctx context.Context, cause command.Cause) (at domain.Position, err error) {
			if err = d.withChecker(ctx, cause, &g, name); err == nil {
				id, at, err = d.Commands.InvitePerson(ctx, cause, g)
			}
			return at, err
		})
	if err != nil {
		return ui.Answer{}, err
	}
	link, err := d.link(r, id, name, []person.Grant{g})
	if err != nil {
		return ui.Answer{}, err
	}
	return d.people(r, link)
}

func (d Deps) link(r *ui.Request, personID, name string, grants []person.Grant) (linkView, error) {
	token, err := d.Credentials.Invite(r.Context(), personID, name, grants, credential.LinkFor)
	return linkView{Link: r.Origin() + "/join/" + token, For: name}, err
}

type personView struct {
	Choices choices
	people.Person
	linkView
	Name, Login string
	You         bool
	Checkers    map[string]string // the names of those that the person works as, by id
	Acts        []actLine         // as an operator
}

func (d Deps) personPage(r *ui.Request, who people.Person) (ui.Answer, error) {
	return d.person(r, who, linkView{})
}

func (d Deps) person(r *ui.Request, who people.Person, link linkView) (ui.Answer, error) {
	ctx, id := r.Context(), who.ID
	v := personView{Person: who, linkView: link, You: id == r.Person.ID}
	names, err := d.Credentials.Names(ctx, id)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Name, v.Login = cmp.Or(names[id].Name, nameless(id)), wire.OrZero(names[id].Login)
	if v.Choices, err = d.choices(ctx); err != nil {
		return ui.Answer{}, err
	}
	checkers := wire.List(who.Roles, func(r people.PersonRole) string { return r.CheckerID })
	if v.Checkers, err = d.Reads.Overall.Names(ctx, overall.Checkers, checkers); err != nil {
		return ui.Answer{}, err
	}
	v.Acts, err = d.latestActs(ctx, acts.Filter{PersonID: id})
	return ui.Answer{Template: "console-person", Title: v.Name, View: v, Secret: link.Link != ""}, err
}

// onPerson carries out a form on a person's page. Operators cannot change their own roles,
// so that the last operator stays one.
func (d Deps) onPerson(
	r *ui.Request, who people.Person, act oversight.Act, accountID, detail string,
	do func(context.Context, command.Cause) (domain.Position, error),
) error {
	switch {
	case who.ID == r.Person.ID:
		return domain.Conflict("you cannot change your own roles").WithHint("ask another operator")
	case who.Disabled:
		return domain.Conflict("this person is disabled for good").WithHint("invite the person again")
	}
	intended := command.OperatorAct{Act: act, Subject: domain.PersonStream(who.ID), AccountID: accountID, Detail: detail}
	return d.act(r, r.Cause(), intended, do)
}

// newLink makes a sign-in link for a person who never used theirs, or lost it. Once it is
// used, no other way to sign in works for them (decisions, "Way in").
func (d Deps) newLink(r *ui.Request, who people.Person) (ui.Answer, error) {
	err := d.onPerson(r, who, oversight.NewLink, "", "", func(context.Context, command.Cause) (domain.Position, error) {
		return domain.Position{}, nil
	})
	if err != nil {
		return ui.Answer{}, err
	}
	names, err := d.Credentials.Names(r.Context(), who.ID)
	if err != nil {
		return ui.Answer{}, err
	}
	link, err := d.link(r, who.ID, names[who.ID].Name, who.Grants())
	if err != nil {
		return ui.Answer{}, err
	}
	return d.person(r, who, link)
}

func (d Deps) grantRole(r *ui.Request, who people.Person) (ui.Answer, error) {
	g, err := d.grantOf(r)
	if err == nil {
		err = d.onPerson(r, who, oversight.GrantRole, g.AccountID, grantWords(g),
			func(ctx context.Context, cause command.Cause) (domain.Position, error) {
				names, err := d.names(ctx, who.ID)
				if err != nil {
					return domain.Position{}, err
				}
				if err := d.withChecker(ctx, cause, &g, names(who.ID)); err != nil {
					return domain.Position{}, err
				}
				at, err := d.Commands.GrantRole(ctx, cause, who.ID, g)
				if err == nil {
					err = d.Credentials.EndLinks(ctx, who.ID)
				}
				return at, err
			})
	}
	return ui.Go("/console/people/" + who.ID), err
}

func (d Deps) revokeRole(r *ui.Request, who people.Person) (ui.Answer, error) {
	g := person.Grant{Role: person.Role(r.PostFormValue("role")), AccountID: r.PostFormValue("account"),
		CheckerID: r.PostFormValue("checker")}
	err := d.onPerson(r, who, oversight.RevokeRole, g.AccountID, grantWords(g),
		func(ctx context.Context, cause command.Cause) (domain.Position, error) {
			at, err := d.Commands.RevokeRole(ctx, cause, who.ID, g)
			if err == nil {
				err = d.Credentials.EndLinks(ctx, who.ID)
			}
			return at, err
		})
	return ui.Go("/console/people/" + who.ID), err
}

// disable ends all rights of the person. Their sessions end with them, because a request
// of theirs finds no person.
func (d Deps) disable(r *ui.Request, who people.Person) (ui.Answer, error) {
	err := d.onPerson(r, who, oversight.Disable, "", "",
		func(ctx context.Context, cause command.Cause) (domain.Position, error) {
			return d.Commands.DisablePerson(ctx, cause, who.ID, strings.TrimSpace(r.PostFormValue("reason")))
		})
	return ui.Go("/console/people/" + who.ID), err
}

package settings

import (
	"slices"
	"strings"

	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/ui"
	"humanqa/internal/credential"
	"humanqa/projections/people"
)

type membersView struct {
	Members []people.Person
	Names   map[string]credential.Person
	Roles   []person.Role
	Link    string // shown once, right after it was made
	For     string
}

func (d Deps) membersView(r *ui.Request) (v membersView, err error) {
	v.Roles = person.AccountRoles()
	v.Members, v.Names, err = words.MembersOf(r.Context(), d.Credentials, d.Reads, r.Account.ID)
	return v, err
}

func (d Deps) members(r *ui.Request) (ui.Answer, error) {
	v, err := d.membersView(r)
	return ui.Show("members", "Members", v), err
}

// invite answers with the page itself: the link is on it, and nowhere else.
func (d Deps) invite(r *ui.Request) (ui.Answer, error) {
	role := person.Role(r.PostFormValue("role"))
	if !role.OfAccount() {
		return ui.Answer{}, domain.Invalid(domain.Detail{Path: "role", Message: "must be owner, developer or viewer"})
	}
	name, err := r.Text("name", credential.MaxName)
	if err != nil {
		return ui.Answer{}, err
	}
	grant := person.Grant{Role: role, AccountID: r.Account.ID}
	id, at, err := d.Commands.InvitePerson(r.Context(), r.Cause(), grant)
	if err != nil {
		return ui.Answer{}, err
	}
	r.Visible(at)
	return d.withLink(r, id, name, []person.Grant{grant})
}

func (d Deps) withLink(r *ui.Request, personID, name string, grants []person.Grant) (ui.Answer, error) {
	token, err := d.Credentials.Invite(r.Context(), personID, name, grants, credential.LinkFor)
	if err != nil {
		return ui.Answer{}, err
	}
	v, err := d.membersView(r)
	v.Link, v.For = r.Origin()+"/join/"+token, strings.TrimSpace(name)
	return ui.Answer{Template: "members", Title: "Members", View: v, Secret: true}, err
}

// member finds the member that a form is about. An owner cannot change their own role, so
// that an account never loses its last owner.
func (d Deps) member(r *ui.Request) (people.Person, error) {
	list, err := d.Reads.People.Members(r.Context(), r.Account.ID)
	if err != nil {
		return people.Person{}, err
	}
	at := slices.IndexFunc(list, func(p people.Person) bool { return p.ID == r.PathValue("person") })
	switch {
	case at < 0:
		return people.Person{}, domain.NotFound("member")
	case list[at].ID == r.Person.ID:
		return people.Person{}, domain.Conflict("you cannot change your own role").WithHint("ask another owner")
	}
	return list[at], nil
}

// changeMember gives another role, or takes the role away.
func (d Deps) changeMember(r *ui.Request, member people.Person) (ui.Answer, error) {
	var position domain.Position
	var err error
	switch action := r.PostFormValue("action"); action {
	case "remove":
		position, err = d.Commands.RevokeRole(r.Context(), r.Cause(), member.ID, member.Roles[0].Grant)
	default:
		role := person.Role(action)
		if !role.OfAccount() {
			return ui.Answer{}, domain.Invalid(domain.Detail{Path: "action", Message: "must be one of the offered actions"})
		}
		position, err = d.Commands.GrantRole(r.Context(), r.Cause(), member.ID, person.Grant{Role: role, AccountID: r.Account.ID})
	}
	if err == nil {
		err = d.Credentials.EndLinks(r.Context(), member.ID)
	}
	return r.Done(position, err, "/dashboard/members")
}

// newLink makes a sign-in link for a member who never used theirs, or lost it. A holder of
// the link can sign in as that person. So a person with a role elsewhere gets none: an owner
// decides only for their own account (decisions, "Way in").
func (d Deps) newLink(r *ui.Request, member people.Person) (ui.Answer, error) {
	whole, err := d.Reads.People.Person(r.Context(), member.ID)
	if err != nil {
		return ui.Answer{}, err
	}
	if len(whole.Roles) != 1 {
		return ui.Answer{}, domain.Conflict("the person also has a role outside this account").
			WithHint("an operator can create the link: humanqa person link")
	}
	names, err := d.Credentials.Names(r.Context(), member.ID)
	if err != nil {
		return ui.Answer{}, err
	}
	r.Log.WithField("person", member.ID).WithField("by", r.Person.ID).Info("a new sign-in link was created")
	return d.withLink(r, member.ID, names[member.ID].Name, whole.Grants())
}

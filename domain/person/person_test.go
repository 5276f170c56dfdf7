package person_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/internal/testing/scenario"
)

type decide = scenario.Decide[person.State]

func given(t *testing.T, events ...domain.Event) *scenario.Given[person.State] {
	return scenario.New(t, person.Evolve, events...)
}

func of(role person.Role, accountID string) person.Grant {
	return person.Grant{Role: role, AccountID: accountID}
}

func tests(checkerID string) person.Grant {
	return person.Grant{Role: person.Checker, CheckerID: checkerID}
}

func invited(g person.Grant) domain.Event { return &person.Invited{Grant: g} }
func granted(g person.Grant) domain.Event { return &person.RoleGranted{Grant: g} }
func revoked(g person.Grant) domain.Event { return &person.RoleRevoked{Grant: g} }
func joined() domain.Event                { return &person.Joined{} }
func disabled() domain.Event              { return &person.Disabled{Reason: "left"} }

func invite(g person.Grant) decide {
	return func(s person.State) ([]domain.Event, error) { return person.DecideInvite(s, g) }
}

func grant(g person.Grant) decide {
	return func(s person.State) ([]domain.Event, error) { return person.DecideGrant(s, g) }
}

func revoke(g person.Grant) decide {
	return func(s person.State) ([]domain.Event, error) { return person.DecideRevoke(s, g) }
}

func disable(s person.State) ([]domain.Event, error) { return person.DecideDisable(s, "left") }

func TestAnInvitationMakesOnePerson(t *testing.T) {
	t.Parallel()
	owner := of(person.Owner, "acme")
	t.Run("with a role of an account", func(t *testing.T) { given(t).When(invite(owner)).Events(invited(owner)) })
	t.Run("as a checker", func(t *testing.T) { given(t).When(invite(tests("c1"))).Events(invited(tests("c1"))) })
	t.Run("as an operator", func(t *testing.T) {
		operator := person.Grant{Role: person.Operator}
		given(t).When(invite(operator)).Events(invited(operator))
	})
	t.Run("and not another one", func(t *testing.T) {
		given(t, invited(owner)).When(invite(of(person.Owner, "other"))).Conflict("the person exists already")
	})
}

func TestAGrantSaysWhereItHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		grant person.Grant
		path  string
	}{
		"a role nobody knows":              {person.Grant{Role: "king"}, "role"},
		"an owner of nothing":              {person.Grant{Role: person.Owner}, "accountId"},
		"an operator of an account":        {of(person.Operator, "acme"), "accountId"},
		"a checker without an id":          {person.Grant{Role: person.Checker}, "checkerId"},
		"a viewer who is also a checker":   {person.Grant{Role: person.Viewer, AccountID: "acme", CheckerID: "c1"}, "checkerId"},
		"a checker in an account":          {person.Grant{Role: person.Checker, AccountID: "acme", CheckerID: "c1"}, "accountId"},
		"an operator who is also a tester": {person.Grant{Role: person.Operator, CheckerID: "c1"}, "checkerId"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given(t).When(invite(c.grant)).Invalid(c.path)
			given(t, invited(of(person.Viewer, "zeta"))).When(grant(c.grant)).Invalid(c.path)
		})
	}
}

func TestAnInvitationIsTakenUpOnce(t *testing.T) {
	t.Parallel()
	given(t, invited(of(person.Owner, "acme"))).When(person.DecideJoin).Events(joined())
	given(t).When(person.DecideJoin).NotFound("person")
	given(t, invited(of(person.Owner, "acme")), disabled()).When(person.DecideJoin).Conflict("the person is disabled")
}

func TestRoles(t *testing.T) {
	t.Parallel()
	viewer, owner, elsewhere := of(person.Viewer, "acme"), of(person.Owner, "acme"), of(person.Developer, "zeta")
	t.Run("one of an account takes the other's place", func(t *testing.T) {
		g := given(t, invited(viewer), joined()).When(grant(owner)).Events(granted(owner))
		if s := g.State(); len(s.Grants) != 1 || !s.Has(owner) || s.Has(viewer) {
			t.Errorf("the person holds %v", s.Grants)
		}
	})
	t.Run("of two accounts stand side by side", func(t *testing.T) {
		g := given(t, invited(viewer)).When(grant(elsewhere)).Events(granted(elsewhere))
		if s := g.State(); !s.Has(viewer) || !s.BelongsTo("zeta") || s.BelongsTo("other") {
			t.Errorf("the person holds %v", s.Grants)
		}
	})
	t.Run("are taken back one by one", func(t *testing.T) {
		g := given(t, invited(viewer), granted(elsewhere)).When(revoke(viewer)).Events(revoked(viewer))
		if s := g.State(); s.BelongsTo("acme") || !s.BelongsTo("zeta") {
			t.Errorf("the person holds %v", s.Grants)
		}
	})
	t.Run("that nobody has cannot be missed", func(t *testing.T) {
		given(t, invited(viewer)).When(revoke(owner)).Nothing()
	})
	t.Run("need a person", func(t *testing.T) {
		given(t).When(grant(owner)).NotFound("person")
		given(t).When(revoke(owner)).NotFound("person")
		given(t).When(disable).NotFound("person")
	})
	t.Run("are not given to who was disabled", func(t *testing.T) {
		given(t, invited(viewer)).When(disable).Events(disabled()).When(grant(owner)).Conflict("the person is disabled")
	})
	t.Run("make nobody two checkers", func(t *testing.T) {
		g := given(t, invited(viewer)).When(grant(tests("c1"))).Events(granted(tests("c1")))
		if id := g.State().CheckerID(); id != "c1" {
			t.Errorf("the person tests as %q", id)
		}
		g.When(grant(tests("c2"))).Conflict("the person is a checker already")
	})
}

func TestWhatARoleIncludes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		have, want person.Role
		includes   bool
	}{
		{person.Owner, person.Viewer, true}, {person.Owner, person.Developer, true}, {person.Developer, person.Viewer, true},
		{person.Viewer, person.Developer, false}, {person.Developer, person.Owner, false}, {person.Viewer, person.Viewer, true},
		{person.Operator, person.Viewer, false}, {person.Operator, person.Operator, true}, {person.Owner, person.Operator, false},
		{person.Checker, person.Viewer, false}, {"", person.Viewer, false},
	} {
		if got := c.have.Includes(c.want); got != c.includes {
			t.Errorf("%q includes %q: %v", c.have, c.want, got)
		}
	}
}

// A state that a caller keeps is not changed by what happens later.
func TestAStateMayBeKept(t *testing.T) {
	t.Parallel()
	before := given(t, invited(of(person.Viewer, "acme")), granted(of(person.Viewer, "zeta"))).State()
	person.Evolve(before, revoked(of(person.Viewer, "acme")))
	person.Evolve(before, granted(of(person.Owner, "zeta")))
	if !before.Has(of(person.Viewer, "acme")) || !before.Has(of(person.Viewer, "zeta")) || len(before.Grants) != 2 {
		t.Errorf("the state became %v", before.Grants)
	}
}

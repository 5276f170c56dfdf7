package person

import (
	"slices"

	"humanqa/domain"
)

// Every decision returns the events to write, none for a harmless repeat, or the refusal.
// The caller checks the right to ask.

// DecideInvite makes the person. The same invitation again is a repeat.
func DecideInvite(s State, g Grant) ([]domain.Event, error) {
	switch {
	case s.Exists && s.Has(g):
		return nil, nil
	case s.Exists:
		return nil, domain.Conflict("the person exists already")
	}
	if err := g.checkFields(); err != nil {
		return nil, err
	}
	return []domain.Event{&Invited{g}}, nil
}

// DecideJoin accepts the invitation.
func DecideJoin(s State) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("person")
	case s.Disabled:
		return nil, errDisabled
	case s.Joined:
		return nil, nil
	}
	return []domain.Event{&Joined{}}, nil
}

// DecideGrant gives the person a role. One person tests as one checker.
func DecideGrant(s State, g Grant) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("person")
	case s.Disabled:
		return nil, errDisabled
	case s.Has(g):
		return nil, nil
	}
	if err := g.checkFields(); err != nil {
		return nil, err
	}
	if id := s.CheckerID(); g.Role == Checker && id != "" {
		return nil, domain.Conflict("the person is a checker already").With("checkerId", id)
	}
	return []domain.Event{&RoleGranted{g}}, nil
}

// DecideRevoke takes a role back. To revoke a role that the person does not hold is a
// repeat.
func DecideRevoke(s State, g Grant) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("person")
	case !s.Has(g):
		return nil, nil
	}
	return []domain.Event{&RoleRevoked{g}}, nil
}

// DecideDisable ends all rights of the person.
func DecideDisable(s State, reason string) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("person")
	case s.Disabled:
		return nil, nil
	}
	return []domain.Event{&Disabled{Reason: reason}}, nil
}

var errDisabled = domain.Conflict("the person is disabled").WithHint("invite them anew")

// checkFields refuses a grant with a missing or a superfluous field.
func (g Grant) checkFields() error {
	known := append(AccountRoles(), Checker, Operator)
	var wrong domain.Wrong
	wrong.AddIf(!slices.Contains(known, g.Role), "role", "must be owner, developer, viewer, checker or operator")
	wrong.AddIf(g.Role.OfAccount() != (g.AccountID != ""), "accountId", "goes with a role of an account, and with no other")
	wrong.AddIf((g.Role == Checker) != (g.CheckerID != ""), "checkerId", "goes with the role of a checker, and with no other")
	return wrong.Refusal()
}

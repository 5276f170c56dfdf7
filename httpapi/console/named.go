package console

import (
	"context"
	"fmt"
	"strings"

	"humanqa/domain"
	"humanqa/domain/identity"
	"humanqa/projections/overall"
)

// suggested bounds the accounts, and the checkers, that a form suggests. A field also takes
// the name or the id of any other one.
const suggested = 200

// choices are the accounts and checkers that a form suggests.
type choices struct {
	Accounts []suggestion
	Checkers []suggestion
}

// suggestion puts its value into the field: the name, or the id where several have it.
type suggestion struct{ Value, Label string }

func (d Deps) choices(ctx context.Context) (choices, error) {
	accounts, err := d.Reads.Overall.FirstAccounts(ctx, suggested)
	if err != nil {
		return choices{}, err
	}
	checkers, err := d.Reads.Overall.FirstCheckers(ctx, suggested)
	return choices{suggestions(accounts), suggestions(checkers)}, err
}

func suggestions(list []overall.Named) (out []suggestion) {
	times := map[string]int{}
	for _, one := range list {
		times[identity.Fold(one.Name)]++
	}
	for _, one := range list {
		if times[identity.Fold(one.Name)] == 1 {
			out = append(out, suggestion{one.Name, one.ID})
		} else {
			out = append(out, suggestion{one.ID, one.Name})
		}
	}
	return out
}

// accountOf gives the id of the account that a field names by its name or its id.
func (d Deps) accountOf(ctx context.Context, typed string) (string, error) {
	return oneOf(ctx, d.Reads.Overall.AccountsNamed, "account", typed)
}

// checkerOf gives the id of the checker that a field names.
func (d Deps) checkerOf(ctx context.Context, typed string) (string, error) {
	return oneOf(ctx, d.Reads.Overall.CheckersNamed, "checker", typed)
}

// oneOf refuses an unknown name, and a name that several have: a role in the wrong account
// would open that account.
func oneOf(
	ctx context.Context, find func(context.Context, string) ([]overall.Named, error), what, typed string,
) (string, error) {
	typed = strings.TrimSpace(typed)
	if typed == "" {
		return "", domain.Invalid(domain.Detail{Path: what, Message: "must not be empty: enter the name or the id"})
	}
	found, err := find(ctx, typed)
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", domain.Invalid(domain.Detail{Path: what, Message: fmt.Sprintf("is not known: no %s has this name or id", what)})
	case len(found) == 1:
		return found[0].ID, nil
	}
	ids := make([]string, len(found))
	for i, one := range found {
		if one.ID == typed {
			return one.ID, nil
		}
		ids[i] = one.ID
	}
	return "", domain.Invalid(domain.Detail{Path: what,
		Message: fmt.Sprintf("is the name of several %ss: enter the id of one (%s)", what, strings.Join(ids, ", "))})
}

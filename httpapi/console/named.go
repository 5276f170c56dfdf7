package console

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"humanqa/domain"
	"humanqa/domain/identity"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
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
	accounts, err := d.Reads.Overall.First(ctx, overall.Accounts, suggested)
	if err != nil {
		return choices{}, err
	}
	checkers, err := d.Reads.Overall.First(ctx, overall.Checkers, suggested)
	return choices{suggestions(accounts), suggestions(checkers)}, err
}

func suggestions(list []overall.Named) (out []suggestion) {
	times := map[string]int{}
	for _, one := range list {
		times[identity.Fold(one.Name)]++
	}
	for _, one := range list {
		s := suggestion{one.ID, one.Name}
		if times[identity.Fold(one.Name)] == 1 {
			s = suggestion{one.Name, one.ID}
		}
		out = append(out, s)
	}
	return out
}

// named gives the id of the account, or of the checker, that a form names by its name or its
// id. It refuses an unknown name, and a name that several have: a role in the wrong account
// would open that account.
func (d Deps) named(r *ui.Request, of overall.Kind) (string, error) {
	typed := strings.TrimSpace(r.PostFormValue(of.Word))
	if typed == "" {
		return "", domain.Invalid(domain.Detail{Path: of.Word, Message: "must not be empty: enter the name or the id"})
	}
	found, err := d.Reads.Overall.Named(r.Context(), of, typed)
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", domain.Invalid(domain.Detail{Path: of.Word, Message: fmt.Sprintf("is not known: no %s has this name or id", of.Word)})
	case len(found) == 1:
		return found[0].ID, nil
	}
	ids := wire.List(found, func(one overall.Named) string { return one.ID })
	if slices.Contains(ids, typed) {
		return typed, nil
	}
	return "", domain.Invalid(domain.Detail{Path: of.Word,
		Message: fmt.Sprintf("is the name of several %ss: enter the id of one (%s)", of.Word, strings.Join(ids, ", "))})
}

package words

import (
	"cmp"
	"context"
	"strings"

	"humanqa/httpapi/wire"
	"humanqa/internal/credential"
	"humanqa/projections"
	"humanqa/projections/people"
)

// MembersOf lists the people of the account, and their names by their ids.
func MembersOf(
	ctx context.Context, store *credential.Store, reads *projections.Reads, accountID string,
) (members []people.Person, names map[string]credential.Person, err error) {
	if members, err = reads.People.Members(ctx, accountID); err != nil {
		return nil, nil, err
	}
	names, err = store.Names(ctx, wire.List(members, func(p people.Person) string { return p.ID })...)
	return members, names, err
}

// AuthorsOf looks up actors, which the log has as "key:<id>", "person:<id>" and so on. The
// names are those that the people of the account may know.
func AuthorsOf(
	ctx context.Context, store *credential.Store, reads *projections.Reads, accountID string, actors ...string,
) (name func(actor string) string, err error) {
	var ids []string
	for _, actor := range actors {
		if id, is := strings.CutPrefix(actor, "key:"); is {
			ids = append(ids, id)
		}
	}
	keys, err := reads.Access.NamedKeys(ctx, accountID, ids...)
	if err != nil {
		return nil, err
	}
	named, err := store.Names(ctx, actors...)
	return func(actor string) string {
		kind, id, _ := strings.Cut(actor, ":")
		switch kind {
		case "key":
			key := keys[id]
			text := strings.TrimSpace("API key " + cmp.Or(key.Name, key.Hint))
			if key.Revoked {
				text += " (revoked)"
			}
			return text
		case "person":
			return cmp.Or(named[id].Name, "A person who was erased")
		case "checker": // with a pseudonym
			return "Checker " + id
		case "hook":
			return "Deploy hook"
		case "operator":
			return "Operator"
		}
		return "Service"
	}, err
}

package overall

import (
	"context"
	"strings"

	"github.com/lib/pq"

	"humanqa/domain/identity"
	"humanqa/internal/pgpool"
)

// Kind is a kind of things with names: its word, and the column of the id.
type Kind struct{ Word, id string }

// The kinds.
var (
	Accounts = Kind{"account", "account_id"}
	Checkers = Kind{"checker", "checker_id"}
	Projects = Kind{"project", "id"} // not by name: only an account's people look for them
)

// Named is a thing that an operator knows by its name.
type Named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// namedLimit is how many rows of one name are looked at: two are enough to say that a
// name is not unique, the others help to choose.
const namedLimit = 5

const namedSQL = `
SELECT {id} AS id, name
FROM readmodel.{of}s
WHERE {id} = $1
   OR folded = $2
ORDER BY {id}
LIMIT $3`

const firstSQL = `
SELECT {id} AS id, name
FROM readmodel.{of}s
ORDER BY name, {id}
LIMIT $1`

const namesSQL = `
SELECT {id} AS id, name
FROM readmodel.{of}s
WHERE {id} = ANY($1)`

// Named gives the account or the checker of the id, or those of the name; five at most.
func (q *Reads) Named(ctx context.Context, of Kind, text string) ([]Named, error) {
	return q.named(ctx, of, namedSQL, text, identity.Fold(text), namedLimit)
}

// First are so many of the kind, by name.
func (q *Reads) First(ctx context.Context, of Kind, limit int) ([]Named, error) {
	return q.named(ctx, of, firstSQL, limit)
}

// Names gives the names of those that exist, by id.
func (q *Reads) Names(ctx context.Context, of Kind, ids []string) (map[string]string, error) {
	rows, err := q.named(ctx, of, namesSQL, pq.StringArray(ids))
	names := map[string]string{}
	for _, row := range rows {
		names[row.ID] = row.Name
	}
	return names, err
}

// Name gives the name of one of them; empty: it does not exist.
func (q *Reads) Name(ctx context.Context, of Kind, id string) (string, error) {
	names, err := q.Names(ctx, of, []string{id})
	return names[id], err
}

func (q *Reads) named(ctx context.Context, of Kind, query string, args ...any) ([]Named, error) {
	query = strings.NewReplacer("{of}", of.Word, "{id}", of.id).Replace(query)
	return pgpool.List[Named](ctx, q.db, "names", query, args...)
}

package overall

import (
	"context"
	"strings"

	"github.com/lib/pq"

	"humanqa/domain/identity"
	"humanqa/internal/pgpool"
)

// Named is an account or a checker that an operator picks by its name.
type Named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// namedLimit is how many rows of one name are looked at: two are enough to say that a
// name is not unique, the others help to choose.
const namedLimit = 5

// {of} is account or checker in these.
const namedSQL = `
SELECT {of}_id AS id, name
FROM readmodel.{of}s
WHERE {of}_id = $1
   OR folded = $2
ORDER BY {of}_id
LIMIT $3`

const firstSQL = `
SELECT {of}_id AS id, name
FROM readmodel.{of}s
ORDER BY name, {of}_id
LIMIT $1`

const accountNamesSQL = `
SELECT {of}_id AS id, name
FROM readmodel.{of}s
WHERE {of}_id = ANY($1)`

// AccountsNamed gives the account of the id, or those of the name; five at most.
func (q *Reads) AccountsNamed(ctx context.Context, text string) ([]Named, error) {
	return q.named(ctx, "account", namedSQL, text, identity.Fold(text), namedLimit)
}

// CheckersNamed gives the checker of the id, or those of the name; five at most.
func (q *Reads) CheckersNamed(ctx context.Context, text string) ([]Named, error) {
	return q.named(ctx, "checker", namedSQL, text, identity.Fold(text), namedLimit)
}

// FirstAccounts are so many accounts, by name.
func (q *Reads) FirstAccounts(ctx context.Context, limit int) ([]Named, error) {
	return q.named(ctx, "account", firstSQL, limit)
}

// FirstCheckers are so many checkers, by name.
func (q *Reads) FirstCheckers(ctx context.Context, limit int) ([]Named, error) {
	return q.named(ctx, "checker", firstSQL, limit)
}

// AccountNames gives the names of the accounts that exist, by id.
func (q *Reads) AccountNames(ctx context.Context, ids []string) (map[string]string, error) {
	rows, err := q.named(ctx, "account", accountNamesSQL, pq.StringArray(ids))
	names := map[string]string{}
	for _, row := range rows {
		names[row.ID] = row.Name
	}
	return names, err
}

func (q *Reads) named(ctx context.Context, of, query string, args ...any) ([]Named, error) {
	return pgpool.List[Named](ctx, q.db, "names", strings.ReplaceAll(query, "{of}", of), args...)
}

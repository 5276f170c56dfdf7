package overall

import (
	"context"

	"github.com/lib/pq"

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

const accountsNamedSQL = `
SELECT account_id AS id, name
FROM readmodel.accounts
WHERE account_id = $1
   OR lower(name) = lower($1)
ORDER BY account_id
LIMIT $2`

const checkersNamedSQL = `
SELECT checker_id AS id, name
FROM readmodel.checkers
WHERE checker_id = $1
   OR lower(name) = lower($1)
ORDER BY checker_id
LIMIT $2`

const firstAccountsSQL = `
SELECT account_id AS id, name
FROM readmodel.accounts
ORDER BY name, account_id
LIMIT $1`

const firstCheckersSQL = `
SELECT checker_id AS id, name
FROM readmodel.checkers
ORDER BY name, checker_id
LIMIT $1`

const accountNamesSQL = `
SELECT account_id AS id, name
FROM readmodel.accounts
WHERE account_id = ANY($1)`

// AccountsNamed gives the account of the id, or those of the name; five at most.
func (q *Reads) AccountsNamed(ctx context.Context, text string) ([]Named, error) {
	return q.named(ctx, accountsNamedSQL, text, namedLimit)
}

// CheckersNamed gives the checker of the id, or those of the name; five at most.
func (q *Reads) CheckersNamed(ctx context.Context, text string) ([]Named, error) {
	return q.named(ctx, checkersNamedSQL, text, namedLimit)
}

// FirstAccounts are so many accounts, by name.
func (q *Reads) FirstAccounts(ctx context.Context, limit int) ([]Named, error) {
	return q.named(ctx, firstAccountsSQL, limit)
}

// FirstCheckers are so many checkers, by name.
func (q *Reads) FirstCheckers(ctx context.Context, limit int) ([]Named, error) {
	return q.named(ctx, firstCheckersSQL, limit)
}

// AccountNames gives the names of the accounts that exist, by id.
func (q *Reads) AccountNames(ctx context.Context, ids []string) (map[string]string, error) {
	rows, err := q.named(ctx, accountNamesSQL, pq.StringArray(ids))
	names := map[string]string{}
	for _, row := range rows {
		names[row.ID] = row.Name
	}
	return names, err
}

func (q *Reads) named(ctx context.Context, query string, args ...any) ([]Named, error) {
	return pgpool.List[Named](ctx, q.db, "names", query, args...)
}

package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/projections/readmodel"
)

// Account is an account as operators see it.
type Account struct {
	ID        string
	Name      string
	Sandbox   bool
	Suspended bool // also once it is erased
	// Erased is when it was; nil: it was not. Finished: nothing is left of it that
	// can be erased.
	Erased   *time.Time
	Finished bool
}

// IssuedKey is an API key without its token.
type IssuedKey struct {
	ID        string
	Hint      string // how the token begins
	Scope     account.Scope
	ProjectID string     // bound to this project; empty: to none
	ExpiresAt *time.Time // nil: never
	Revoked   bool
	Name      string // empty: none was given
	IssuedBy  string // an actor, such as person:<id>
	IssuedAt  time.Time
	UsedAt    *time.Time // the last use, to the minute; nil: none is known
}

// Page is a part of a list.
type Page struct{ Limit, Offset int }

const listAccountsSQL = `
SELECT a.account_id, a.name, a.sandbox, a.suspended, e.erased_at, e.finished_at IS NOT NULL
FROM readmodel.accounts a
LEFT JOIN readmodel.erasures e ON e.account_id = a.account_id
ORDER BY a.name, a.account_id
LIMIT $1
OFFSET $2`

const countAccountsSQL = `
SELECT count(*)
FROM readmodel.accounts`

const getAccountSQL = `
SELECT a.account_id, a.name, a.sandbox, a.suspended, e.erased_at, e.finished_at IS NOT NULL
FROM readmodel.accounts a
LEFT JOIN readmodel.erasures e ON e.account_id = a.account_id
WHERE a.account_id = $1`

const listKeysSQL = `
SELECT k.key_id, k.prefix, k.scope, k.project_id, k.expires_at, k.revoked, k.name, k.issued_by, k.issued_at, u.used_at
FROM readmodel.api_keys k
LEFT JOIN http_key_uses u ON u.key_id = k.key_id
WHERE k.account_id = $1
ORDER BY k.revoked, k.issued_at DESC, k.key_id
LIMIT $2
OFFSET $3`

const countKeysSQL = `
SELECT count(*)
FROM readmodel.api_keys
WHERE account_id = $1`

const listCheckersSQL = `
SELECT checker_id, name, accounts
FROM readmodel.checkers
ORDER BY name, checker_id
LIMIT $1
OFFSET $2`

const countCheckersSQL = `
SELECT count(*)
FROM readmodel.checkers`

// Accounts lists every account, by name, and how many there are.
func (q *Reads) Accounts(ctx context.Context, page Page) ([]Account, int, error) {
	return list(ctx, q, "accounts", countAccountsSQL, listAccountsSQL, page, scanAccount)
}

// Account finds one by its id.
func (q *Reads) Account(ctx context.Context, id string) (Account, error) {
	a, err := scanAccount(q.db.QueryRowxContext(ctx, getAccountSQL, id))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Account{}, domain.NotFound("account")
	case err != nil:
		return Account{}, fmt.Errorf("read account %s: %w", id, err)
	}
	return a, nil
}

const keyHintsSQL = `
SELECT key_id, prefix
FROM readmodel.api_keys
WHERE account_id = $1
  AND key_id = ANY($2)`

// KeyHints says how the tokens of those of the account's keys begin, by the keys' ids.
func (q *Reads) KeyHints(ctx context.Context, accountID string, ids ...string) (map[string]string, error) {
	hints := map[string]string{}
	if len(ids) == 0 {
		return hints, nil
	}
	var rows []struct {
		KeyID  string `json:"key_id"`
		Prefix string `json:"prefix"`
	}
	if err := q.db.SelectContext(ctx, &rows, keyHintsSQL, accountID, pq.Array(ids)); err != nil {
		return nil, fmt.Errorf("look up how keys begin: %w", err)
	}
	for _, r := range rows {
		hints[r.KeyID] = r.Prefix
	}
	return hints, nil
}

// Keys lists an account's keys, those that work first, and how many there are.
func (q *Reads) Keys(ctx context.Context, accountID string, page Page) ([]IssuedKey, int, error) {
	return list(ctx, q, "keys", countKeysSQL, listKeysSQL, page, func(row scanner) (k IssuedKey, err error) {
		err = row.Scan(&k.ID, &k.Hint, &k.Scope, &k.ProjectID, &k.ExpiresAt, &k.Revoked, &k.Name, &k.IssuedBy, &k.IssuedAt, &k.UsedAt)
		k.IssuedAt = k.IssuedAt.UTC()
		readmodel.UTC(k.ExpiresAt)
		readmodel.UTC(k.UsedAt)
		return k, err
	}, accountID)
}

// Checkers lists every checker, by name, and how many there are.
func (q *Reads) Checkers(ctx context.Context, page Page) ([]Checker, int, error) {
	return list(ctx, q, "checkers", countCheckersSQL, listCheckersSQL, page, func(row scanner) (c Checker, err error) {
		err = row.Scan(&c.ID, &c.Name, pq.Array(&c.Accounts))
		return c, err
	})
}

type scanner interface{ Scan(into ...any) error }

func scanAccount(row scanner) (a Account, err error) {
	err = row.Scan(&a.ID, &a.Name, &a.Sandbox, &a.Suspended, &a.Erased, &a.Finished)
	readmodel.UTC(a.Erased)
	return a, err
}

// list gives a page and the total; of are the parameters of both queries, and
// the page's come after them.
func list[T any](
	ctx context.Context, q *Reads, what, countSQL, listSQL string, page Page, scan func(scanner) (T, error), of ...any,
) ([]T, int, error) {
	var total int
	if err := q.db.QueryRowxContext(ctx, countSQL, of...).Scan(&total); err != nil {
		return nil, 0, fmt.Errorf("count %s: %w", what, err)
	}
	rows, err := q.db.QueryxContext(ctx, listSQL, append(of, page.Limit, page.Offset)...)
	if err != nil {
		return nil, 0, fmt.Errorf("list %s: %w", what, err)
	}
	defer func() { _ = rows.Close() }() // its error is the rows' own
	found := []T{}
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, 0, fmt.Errorf("list %s: %w", what, err)
		}
		found = append(found, one)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, fmt.Errorf("list %s: %w", what, err)
	}
	return found, total, nil
}

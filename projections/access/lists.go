package access

import (
	"context"
	"time"

	"github.com/lib/pq"

	"humanqa/domain/account"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Account is an account as operators see it.
type Account struct {
	ID        string `json:"account_id"`
	Name      string `json:"name"`
	Sandbox   bool   `json:"sandbox"`
	Suspended bool   `json:"suspended"` // also once it is erased
	// Erased is when the account was erased; nil: it was not. Finished says that no
	// erasable data of it are left.
	Erased   *time.Time `json:"erased_at"`
	Finished bool       `json:"finished"`
}

// IssuedKey is an API key without its token.
type IssuedKey struct {
	ID        string        `json:"key_id"`
	Hint      string        `json:"prefix"` // how the token begins
	Scope     account.Scope `json:"scope"`
	ProjectID string        `json:"project_id"` // bound to this project; empty: to none
	ExpiresAt *time.Time    `json:"expires_at"` // nil: never
	Revoked   bool          `json:"revoked"`
	Name      string        `json:"name"`      // empty: none was given
	IssuedBy  string        `json:"issued_by"` // an actor, such as person:<id>
	IssuedAt  time.Time     `json:"issued_at"`
	UsedAt    *time.Time    `json:"used_at"` // the last use, to the minute; nil: none is known
}

// Page is a part of a list.
type Page struct{ Limit, Offset int }

const getAccountSQL = `
SELECT a.account_id, a.name, a.sandbox, a.suspended, e.erased_at, e.finished_at IS NOT NULL AS finished
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

// Account finds one by its id.
func (q *Reads) Account(ctx context.Context, id string) (Account, error) {
	return readmodel.Get[Account](ctx, q.db, "account", getAccountSQL, id)
}

const namedKeysSQL = `
SELECT key_id, prefix, name, revoked
FROM readmodel.api_keys
WHERE account_id = $1
  AND key_id = ANY($2)`

// NamedKeys gives those of the account's keys by their ids: only how a key is called, how
// its token begins, and whether it is revoked.
func (q *Reads) NamedKeys(ctx context.Context, accountID string, ids ...string) (map[string]IssuedKey, error) {
	return pgpool.By(ctx, q.db, "the names of keys", func(k IssuedKey) string { return k.ID }, namedKeysSQL, accountID, pq.Array(ids))
}

// Keys lists an account's keys, those that work first, and how many there are.
func (q *Reads) Keys(ctx context.Context, accountID string, page Page) ([]IssuedKey, int, error) {
	return readmodel.Page[IssuedKey](ctx, q.db, "keys", countKeysSQL, listKeysSQL, []any{accountID}, page.Limit, page.Offset)
}

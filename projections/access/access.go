// Package access is the read model of callers: keys, accounts, checkers.
package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/identity"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Projector keeps the callers: API keys by the hash of their token, the
// accounts behind them, and checkers.
var Projector = readmodel.New(readmodel.Spec{
	Name: "access", Version: 5,
	Tables: []consumer.Table{
		{Name: "accounts", DDL: accountsDDL},
		{Name: "api_keys", DDL: apiKeysDDL},
		{Name: "checkers", DDL: checkersDDL},
	},
	Handles: domain.TypesOf(
		(*account.Created)(nil),
		(*account.Suspended)(nil),
		(*account.Reinstated)(nil),
		(*account.Erased)(nil),
		(*account.KeyIssued)(nil),
		(*account.KeyRevoked)(nil),
		(*checker.Created)(nil),
		(*checker.Erased)(nil),
	),
	Apply: readmodel.Each(accessChange),
})

const accountsDDL = `
CREATE TABLE {schema}.accounts (
    account_id text PRIMARY KEY,
    name       text NOT NULL,
    sandbox    boolean NOT NULL,
    suspended  boolean NOT NULL, -- also once it is erased
    folded     text NOT NULL DEFAULT '' -- the name as it is searched (identity.Fold)
);
CREATE INDEX accounts_suspended ON {schema}.accounts (account_id) WHERE suspended;
`

const apiKeysDDL = `
CREATE TABLE {schema}.api_keys (
    hash       text PRIMARY KEY,
    account_id text NOT NULL,
    key_id     text NOT NULL,
    prefix     text NOT NULL,
    scope      text NOT NULL,
    project_id text NOT NULL,
    expires_at timestamptz,
    revoked    boolean NOT NULL,
    name       text NOT NULL, -- empty: none was given
    issued_by  text NOT NULL, -- an actor
    issued_at  timestamptz NOT NULL,
    UNIQUE (account_id, key_id)
);
`

const checkersDDL = `
CREATE TABLE {schema}.checkers (
    checker_id text PRIMARY KEY,
    hash       text NOT NULL UNIQUE,
    name       text NOT NULL,
    prefix     text NOT NULL,
    accounts   text[] NOT NULL,
    folded     text NOT NULL DEFAULT '' -- the name as it is searched
);
`

const insertAccountSQL = `
INSERT INTO {schema}.accounts (account_id, name, folded, sandbox, suspended)
VALUES ($1, $2, $3, $4, FALSE)`

const suspendAccountSQL = `
UPDATE {schema}.accounts
SET suspended = $2
WHERE account_id = $1`

const eraseAccountSQL = `
WITH keys AS (
    UPDATE {schema}.api_keys
    SET name = $2
    WHERE account_id = $1
      AND name <> ''
)
UPDATE {schema}.accounts
SET name = $2,
    folded = $2,
    suspended = TRUE
WHERE account_id = $1`

const insertKeySQL = `
INSERT INTO {schema}.api_keys
    (hash, account_id, key_id, prefix, scope, project_id, expires_at, revoked, name, issued_by, issued_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, FALSE, $8, $9, $10)`

const revokeKeySQL = `
UPDATE {schema}.api_keys
SET revoked = TRUE
WHERE account_id = $1
  AND key_id = $2`

const insertCheckerSQL = `
INSERT INTO {schema}.checkers (checker_id, hash, name, folded, prefix, accounts)
VALUES ($1, $2, $3, $4, $5, $6)`

// No token has this hash.
const eraseCheckerSQL = `
UPDATE {schema}.checkers
SET name = $2,
    folded = $2,
    hash = 'erased ' || checker_id,
    prefix = ''
WHERE checker_id = $1`

// accessChange writes event by event: accounts and keys change rarely.
func accessChange(r domain.Recorded) (query string, args []any) {
	accountID := r.StreamID()
	switch e := r.Event.(type) {
	case *account.Created:
		return insertAccountSQL, []any{accountID, e.Name, identity.Fold(e.Name), e.Sandbox}
	case *account.Suspended:
		return suspendAccountSQL, []any{accountID, true}
	case *account.Reinstated:
		return suspendAccountSQL, []any{accountID, false}
	case *account.Erased:
		return eraseAccountSQL, []any{accountID, ErasedName}
	case *account.KeyIssued:
		return insertKeySQL, []any{e.Hash, accountID, e.KeyID, e.Prefix, e.Scope, e.ProjectID, e.ExpiresAt, e.Name, r.Meta.Actor,
			readmodel.Moment(r.Meta.Time)}
	case *account.KeyRevoked:
		return revokeKeySQL, []any{accountID, e.KeyID}
	case *checker.Created:
		id := r.StreamID()
		return insertCheckerSQL, []any{id, e.Hash, e.Name, identity.Fold(e.Name), e.Prefix, pq.Array(append([]string{}, e.Accounts...))}
	case *checker.Erased:
		return eraseCheckerSQL, []any{r.StreamID(), domain.ErasedText}
	}
	return "", nil
}

// Reads looks callers up by the hash of the token they sent.
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Key is an API key, with the facts about its account that decide a request.
type Key struct {
	KeyID     string
	AccountID string
	Scope     account.Scope
	ProjectID string // bound to this project; empty: to no project
	ExpiresAt *time.Time
	Revoked   bool
	Suspended bool // the account is
	Sandbox   bool // the account is
}

// Checker is a human checker.
type Checker struct {
	ID       string         `json:"checker_id"`
	Name     string         `json:"name"`
	Accounts pq.StringArray `json:"accounts"` // the checker's own; the checker never sees their jobs
}

// KeySQL finds an API key by its hash, $1. ScanKey reads its columns.
const KeySQL = `
SELECT k.key_id, k.account_id, k.scope, k.project_id, k.expires_at, k.revoked, a.suspended, a.sandbox
FROM readmodel.api_keys k
JOIN readmodel.accounts a ON a.account_id = k.account_id
WHERE k.hash = $1`

const getCheckerSQL = `
SELECT checker_id, name, accounts
FROM readmodel.checkers
WHERE hash = $1`

const validKeysSQL = `
SELECT k.hash
FROM readmodel.api_keys k
JOIN readmodel.accounts a ON a.account_id = k.account_id
WHERE k.hash = ANY($1)
  AND NOT k.revoked
  AND NOT a.suspended
  AND (k.expires_at IS NULL OR k.expires_at > $2)`

// Valid gives those of the keys that may still be used.
func (q *Reads) Valid(ctx context.Context, hashes []string, now time.Time) ([]string, error) {
	return pgpool.List[string](ctx, q.db, "the keys in use", validKeysSQL, pq.Array(hashes), now)
}

// Key finds an API key, a revoked or expired one too. hash is the lower-case
// hex SHA-256 of the token.
func (q *Reads) Key(ctx context.Context, hash string) (Key, bool, error) {
	return ScanKey(q.db.QueryRowxContext(ctx, KeySQL, hash))
}

// ScanKey reads the columns of KeySQL, and into more the columns that a surrounding
// statement adds after them.
func ScanKey(row interface{ Scan(into ...any) error }, more ...any) (k Key, found bool, err error) {
	err = row.Scan(append([]any{
		&k.KeyID, &k.AccountID, &k.Scope, &k.ProjectID, &k.ExpiresAt, &k.Revoked, &k.Suspended, &k.Sandbox,
	}, more...)...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Key{}, false, nil
	case err != nil:
		return Key{}, false, fmt.Errorf("look an API key up: %w", err)
	}
	return k, true, nil
}

// Checker finds a checker by the hash of their key.
func (q *Reads) Checker(ctx context.Context, hash string) (Checker, bool, error) {
	return pgpool.Find[Checker](ctx, q.db, "a checker", getCheckerSQL, hash)
}

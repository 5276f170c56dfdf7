// Package pools is the read model of pools: their checkers, the accounts that are kept
// to one, and the checkers' profiles.
package pools

import (
	"context"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/pool"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Projector keeps pools and profiles. The checkers' queue reads them, too.
var Projector = readmodel.New(readmodel.Spec{
	Name: "pools", Version: 2,
	Tables: []consumer.Table{
		{Name: "pools", DDL: poolsDDL},
		{Name: "pool_checkers", DDL: poolCheckersDDL},
		{Name: "account_pools", DDL: accountPoolsDDL},
		{Name: "checker_profiles", DDL: checkerProfilesDDL},
	},
	Handles: domain.TypesOf(
		(*pool.Created)(nil), (*pool.CheckerAdded)(nil), (*pool.CheckerRemoved)(nil),
		(*account.PoolChosen)(nil), (*checker.Profiled)(nil), (*checker.Erased)(nil),
	),
	Apply: readmodel.Each(change),
})

const poolsDDL = `
CREATE TABLE {schema}.pools (
    pool_id    text PRIMARY KEY,
    name       text NOT NULL,
    account_id text NOT NULL
);
`

const poolCheckersDDL = `
CREATE TABLE {schema}.pool_checkers (
    pool_id    text NOT NULL,
    checker_id text NOT NULL,
    PRIMARY KEY (pool_id, checker_id)
);
`

// An account whose choice was taken back keeps its row, without a pool.
const accountPoolsDDL = `
CREATE TABLE {schema}.account_pools (
    account_id text PRIMARY KEY,
    pool_id    text NOT NULL
);
`

const checkerProfilesDDL = `
CREATE TABLE {schema}.checker_profiles (
    checker_id text PRIMARY KEY,
    languages  text[] NOT NULL,
    devices    text[] NOT NULL
);
`

const insertPoolSQL = `
INSERT INTO {schema}.pools (pool_id, name, account_id)
VALUES ($1, $2, $3)`

const addCheckerSQL = `
INSERT INTO {schema}.pool_checkers (pool_id, checker_id)
VALUES ($1, $2)
ON CONFLICT DO NOTHING`

const removeCheckerSQL = `
DELETE FROM {schema}.pool_checkers
WHERE pool_id = $1
  AND checker_id = $2`

const choosePoolSQL = `
INSERT INTO {schema}.account_pools (account_id, pool_id)
VALUES ($1, $2)
ON CONFLICT (account_id) DO UPDATE
SET pool_id = EXCLUDED.pool_id`

const profileSQL = `
INSERT INTO {schema}.checker_profiles (checker_id, languages, devices)
VALUES ($1, $2, $3)
ON CONFLICT (checker_id) DO UPDATE
SET languages = EXCLUDED.languages,
    devices = EXCLUDED.devices`

const eraseProfileSQL = `
DELETE FROM {schema}.checker_profiles
WHERE checker_id = $1`

// change writes event by event: pools change rarely.
func change(r domain.Recorded) (query string, args []any) {
	id := r.StreamID()
	switch e := r.Event.(type) {
	case *pool.Created:
		return insertPoolSQL, []any{id, e.Name, e.AccountID}
	case *pool.CheckerAdded:
		return addCheckerSQL, []any{id, e.CheckerID}
	case *pool.CheckerRemoved:
		return removeCheckerSQL, []any{id, e.CheckerID}
	case *account.PoolChosen:
		return choosePoolSQL, []any{id, e.PoolID}
	case *checker.Profiled:
		return profileSQL, []any{id, pq.Array(append([]string{}, e.Languages...)), pq.Array(append([]string{}, e.Devices...))}
	case *checker.Erased:
		return eraseProfileSQL, []any{id}
	}
	return "", nil
}

// Reads reads pools, their accounts and their checkers' profiles.
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Pool is a pool of checkers.
type Pool struct {
	ID        string `json:"pool_id"`
	Name      string `json:"name"`
	AccountID string `json:"account_id"` // empty: any account may ask for it
	Checkers  int    `json:"checkers"`
	Accounts  int    `json:"accounts"` // that are kept to it
}

// Profile is a checker's own profile.
type Profile struct {
	Languages pq.StringArray `json:"languages"`
	Devices   pq.StringArray `json:"devices"`
}

const poolColumnsSQL = `
SELECT p.pool_id, p.name, p.account_id,
       (SELECT COUNT(*) FROM readmodel.pool_checkers c WHERE c.pool_id = p.pool_id) AS checkers,
       (SELECT COUNT(*) FROM readmodel.account_pools a WHERE a.pool_id = p.pool_id) AS accounts
FROM readmodel.pools p`

const listPoolsSQL = poolColumnsSQL + `
ORDER BY p.name, p.pool_id
LIMIT 500`

const getPoolSQL = poolColumnsSQL + `
WHERE p.pool_id = $1`

const poolOfAccountSQL = poolColumnsSQL + `
JOIN readmodel.account_pools m ON m.pool_id = p.pool_id
WHERE m.account_id = $1`

const profileOfSQL = `
SELECT languages, devices
FROM readmodel.checker_profiles
WHERE checker_id = $1`

// Pools lists every pool, by name; 500 at most.
func (q *Reads) Pools(ctx context.Context) ([]Pool, error) {
	return pgpool.List[Pool](ctx, q.db, "pools", listPoolsSQL)
}

// Pool gives one pool.
func (q *Reads) Pool(ctx context.Context, id string) (Pool, error) {
	return readmodel.Get[Pool](ctx, q.db, "pool", getPoolSQL, id)
}

// OfAccount is the pool that the account is kept to; found is false where any
// checker may take its tests.
func (q *Reads) OfAccount(ctx context.Context, accountID string) (p Pool, found bool, err error) {
	return pgpool.Find[Pool](ctx, q.db, "the account's pool", poolOfAccountSQL, accountID)
}

// Profile is the checker's own profile; empty if there is none.
func (q *Reads) Profile(ctx context.Context, checkerID string) (Profile, error) {
	p, _, err := pgpool.Find[Profile](ctx, q.db, "the checker's profile", profileOfSQL, checkerID)
	return p, err
}

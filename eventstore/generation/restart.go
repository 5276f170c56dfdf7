package generation

import (
	"context"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
)

const releaseAllSQL = `
UPDATE projection_checkpoints
SET owner = NULL,
    lease_until = NULL
WHERE owner IS NOT NULL`

// ReleaseAll takes every lease away. It is for the process that has just started
// the Postgres server. No other process has a connection yet, so all owners are dead
// or cut off, and a wait for the end of their leases would only delay readers. An
// owner that is alive after all is fenced: its next write finds that it owns nothing,
// rolls back, and the owner stands by.
func ReleaseAll(ctx context.Context, db *sqlx.DB) error {
	return pgpool.Exec(ctx, db, "release the leases of a server that was started anew", releaseAllSQL)
}

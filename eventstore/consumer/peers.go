package consumer

import (
	"context"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/eventstore/generation"
	"humanqa/internal/pgpool"
)

// A process that has died is noticed before its leases end (pgpool.Sessions). Where it is not,
// or its version is older, the leases have to end first. The fencing token makes a mistake
// harmless: a live owner whose lease was ended takes it again, or loses a batch.
const (
	// sessionPrefix begins the name of the connection. lookSQL has it and its length.
	sessionPrefix = "consumers "
	// sessionChannel never gets a notification: its connection only has to exist.
	sessionChannel = "humanqa_consumers"
)

// Present keeps the connection that shows other processes that this one lives, until ctx ends.
func (s *Supervisor) Present(ctx context.Context, dsn string) error {
	pgpool.Listen(ctx, pgpool.Named(dsn, sessionPrefix+s.session), sessionChannel, nil)
	<-ctx.Done()
	return nil
}

// sessionOf is the session in an owner's name; empty for an owner of an older version.
func sessionOf(owner string) string {
	_, ids, _ := strings.Cut(owner, "/")
	session, _, found := strings.Cut(ids, ".")
	if !found {
		return ""
	}
	return session
}

const endLeasesSQL = `
UPDATE projection_checkpoints
SET lease_until = clock_timestamp()
WHERE owner = ANY($1)
  AND lease_until > clock_timestamp()`

// endLeases ends the leases of the dead sessions.
func endLeases(ctx context.Context, db *sqlx.DB, dead []string, all []generation.Generation) error {
	var owners []string
	for _, g := range all {
		if slices.Contains(dead, sessionOf(g.Owner)) {
			owners = append(owners, g.Owner)
		}
	}
	if len(owners) == 0 {
		return nil
	}
	return pgpool.Exec(ctx, db, "end the leases of a process that has died", endLeasesSQL, pq.Array(owners))
}

package consumer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/eventstore/generation"
	"humanqa/internal/pgpool"
)

// A process that has died is noticed before its leases end: its connection with the name of
// its session is gone, since a kernel closes the connections of the dead. Where no such
// connection was ever seen (a pooler that hides names, an older version), or a frozen process
// keeps it, the leases have to end first. The fencing token makes a mistake harmless: a live
// owner whose lease was ended takes it again, or loses a batch.
const (
	// sessionPrefix begins the name of the connection. lookSQL has it and its length.
	sessionPrefix = "consumers "
	// sessionChannel never gets a notification: its connection only has to exist.
	sessionChannel = "humanqa_consumers"
)

// Present keeps the connection that shows other processes that this one lives, until ctx ends.
func (s *Supervisor) Present(ctx context.Context, dsn string) error {
	woken := pgpool.Listen(ctx, pgpool.Named(dsn, sessionPrefix+s.session), sessionChannel, nil)
	for {
		select {
		case <-woken:
		case <-ctx.Done():
			return nil
		}
	}
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

// peers holds the sessions that were seen. The goroutine that looks for work owns it.
type peers struct {
	started time.Time      // the start of the database, after which all connections are new
	missed  map[string]int // looks since a session was seen last
}

// note takes the sessions that a look saw, and gives those that were missing in two looks
// one after the other. A connection that broke is opened anew in between.
func (p *peers) note(started time.Time, present []string) (dead []string) {
	if !started.Equal(p.started) {
		p.started, p.missed = started, map[string]int{}
	}
	for session := range p.missed {
		p.missed[session]++
	}
	for _, session := range present {
		p.missed[session] = 0
	}
	for session, looks := range p.missed {
		if looks >= 2 {
			dead = append(dead, session)
			delete(p.missed, session)
		}
	}
	return dead
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
	if _, err := db.ExecContext(ctx, endLeasesSQL, pq.Array(owners)); err != nil {
		return fmt.Errorf("end the leases of a process that has died: %w", err)
	}
	return nil
}

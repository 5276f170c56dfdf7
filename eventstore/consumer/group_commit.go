package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/eventstore"
	"humanqa/internal/pgpool"
)

// commit moves the checkpoints of members to a place, with the rows of those that
// write. If that fails nothing is written, and all of them go on by themselves,
// who is to blame for a while.
func (g *group) commit(ctx context.Context, to eventstore.Checkpoint, members []*member) {
	if len(members) == 0 {
		return
	}
	blamed, err := g.write(ctx, to, members)
	for _, r := range members {
		if c, ok := r.consumer.(Committer); ok && r.part.write != nil {
			c.Committed(err)
		}
	}
	if err != nil {
		for _, r := range members {
			*r.lease = r.part.before
		}
		if blamed != nil {
			blamed.apart = time.Now().Add(apartTime)
		}
		if ctx.Err() == nil {
			g.tell(blamed, err)
			g.release(members)
		}
		return
	}
	now := time.Now()
	for _, r := range members {
		r.applied += r.handled + int64(r.part.events)
		r.advanced(to)
		r.kept = now
		if r.part.write != nil {
			r.at = now
		}
		g.arrivals.advance(r.Name, to)
	}
}

// tell says why they part: what follows from it each of them says itself.
func (g *group) tell(blamed *member, err error) {
	log := g.log.WithError(err)
	if blamed != nil {
		log = log.WithField("consumer", blamed.Name)
	}
	log.Debug("a shared transaction failed, each of its consumers goes on by itself")
}

// errMissing says that a checkpoint is not where, or not whose, its member
// believes, or that somebody has it locked.
var errMissing = errors.New("a checkpoint of the shared transaction cannot be moved")

// write is the transaction. Who is to blame for its failure may be unknown: nil. It is
// known for some time after a failure, when statements are not run later (pgpool.Later).
func (g *group) write(ctx context.Context, to eventstore.Checkpoint, members []*member) (blamed *member, err error) {
	ctx, cancel := context.WithTimeout(ctx, sharedTime)
	defer cancel()
	var writing []*member
	for _, r := range members {
		if r.part.write != nil {
			writing = append(writing, r)
		}
	}
	if len(writing) == 0 {
		return g.advance(ctx, g.db, to, members) // one statement is a transaction
	}
	all := func(ctx context.Context, tx *sqlx.Tx) (err error) {
		if blamed, err = g.advance(ctx, tx, to, members); err != nil {
			return err
		}
		for _, r := range writing {
			began := time.Now()
			err := r.part.write(ctx, tx)
			r.part.took = time.Since(began)
			if err != nil {
				blamed = r
				return err
			}
		}
		return nil
	}
	if now := time.Now(); now.After(g.slow) {
		if err = pgpool.InTxPipelined(ctx, g.db, all); err == nil || errors.Is(err, errMissing) {
			return blamed, err
		}
		g.slow = now.Add(apartTime)
		return nil, err
	}
	err = pgpool.InTx(ctx, g.db, func(tx *sqlx.Tx) error { return all(ctx, tx) })
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		blamed = slices.MaxFunc(members, func(a, b *member) int { return int(a.part.took - b.part.took) })
	}
	return blamed, err
}

// Each moves under the conditions of advanceSQL. Nobody is waited for: a row that is
// locked, as those of a generation that is being replaced are, would hold up all.
const advanceAllSQL = `
WITH mine AS MATERIALIZED (
    SELECT c.name, c.generation, m.applied, m.unknown, m.skipped
    FROM unnest($1::text[], $2::integer[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[])
        AS m (name, generation, owner, epoch, commit_position, prepare_position, applied, unknown, skipped)
    JOIN projection_checkpoints c USING (name, generation, owner, epoch, commit_position, prepare_position)
    FOR NO KEY UPDATE OF c SKIP LOCKED
)
UPDATE projection_checkpoints c
SET commit_position = $10,
    prepare_position = $11,
    applied = c.applied + mine.applied,
    unknown = c.unknown + mine.unknown,
    skipped = c.skipped + mine.skipped,
    lease_until = clock_timestamp() + make_interval(secs => $12),
    updated_at = clock_timestamp()
FROM mine
WHERE c.name = mine.name
  AND c.generation = mine.generation
  AND set_config('synchronous_commit', 'off', true) = 'off'
  AND ` + planOnce + `
  AND CASE WHEN $13 <> '' THEN pg_notify('` + checkpointsChannel + `', $13) IS NOT NULL ELSE true END
RETURNING c.name`

// advance moves the members' checkpoints, all of them or an error.
func (g *group) advance(ctx context.Context, q sqlx.QueryerContext, to eventstore.Checkpoint, members []*member) (missing *member, err error) {
	var (
		names, owners                                                 []string
		numbers, epochs, commits, prepares, applied, unknown, skipped []int64
	)
	for _, r := range members {
		commit, prepare := columns(r.stored)
		names, owners = append(names, r.Name), append(owners, r.lease.owner)
		numbers, epochs = append(numbers, int64(r.Number)), append(epochs, r.FencingToken)
		commits, prepares = append(commits, commit), append(prepares, prepare)
		applied = append(applied, r.handled+int64(r.part.events))
		unknown, skipped = append(unknown, r.unknown), append(skipped, r.skipped)
	}
	commit, prepare := columns(to)
	news := ""
	if g.notifies.Load() {
		news = newsOf(owners[0], to, names...)
	}
	var moved []string
	err = sqlx.SelectContext(ctx, q, &moved, advanceAllSQL, pq.Array(names), pq.Array(numbers), pq.Array(owners), pq.Array(epochs),
		pq.Array(commits), pq.Array(prepares), pq.Array(applied), pq.Array(unknown), pq.Array(skipped),
		commit, prepare, g.limits.Lease.Seconds(), news)
	if err != nil {
		return nil, fmt.Errorf("move the checkpoints: %w", err)
	}
	for _, r := range members {
		if !slices.Contains(moved, r.Name) {
			return r, errMissing
		}
	}
	return nil, nil
}

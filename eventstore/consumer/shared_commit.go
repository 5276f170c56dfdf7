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
	"humanqa/eventstore/generation"
	"humanqa/internal/pgpool"
)

// commitContributions moves the checkpoints of participants to a place, with the rows of those that
// write. If that fails nothing is written, and all of them go on by themselves, the
// participant to blame for Limits.CoolDown.
func (b *sharedBatch) commitContributions(ctx context.Context, to eventstore.Checkpoint, participants []*participant) {
	if len(participants) == 0 {
		return
	}
	blamed, err := b.runTransaction(ctx, to, participants)
	for _, r := range participants {
		if c, ok := r.tenure.runner.consumer.(Committer); ok && r.contribution.write != nil {
			c.Committed(err)
		}
	}
	if err != nil {
		for _, r := range participants {
			*r.tenure.lease = r.contribution.before
		}
		if blamed != nil {
			blamed.tenure.coolsUntil = time.Now().Add(b.limits.CoolDown)
		}
		if ctx.Err() == nil {
			log := b.log.WithError(err) // each participant logs the consequences itself
			if blamed != nil {
				log = log.WithField("consumer", blamed.tenure.lease.Gen.Name)
			}
			log.Debug("a shared transaction failed, each of its consumers goes on by itself")
			b.releaseParticipants(participants)
		}
		return
	}
	for _, r := range participants {
		r.tenure.noteCommitted(to, r.contribution.events, r.contribution.write != nil)
	}
}

// errMissing says that a checkpoint has another place or owner than its participant
// knows, or that its row is locked.
var errMissing = errors.New("a checkpoint of the shared transaction cannot be moved")

// runTransaction is the transaction. blamed is nil where the culprit is not known.
func (b *sharedBatch) runTransaction(
	ctx context.Context, to eventstore.Checkpoint, participants []*participant,
) (blamed *participant, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.limits.Shared)
	defer cancel()
	var writing []*participant
	for _, r := range participants {
		if r.contribution.write != nil {
			writing = append(writing, r)
		}
	}
	if len(writing) == 0 {
		return b.advanceCheckpoints(ctx, b.db, to, participants) // one statement is a transaction
	}
	err = pgpool.InTx(ctx, b.db, func(tx *sqlx.Tx) (err error) {
		if blamed, err = b.advanceCheckpoints(ctx, tx, to, participants); err != nil {
			return err
		}
		for _, r := range writing {
			began := time.Now()
			err := r.contribution.write(ctx, tx)
			r.contribution.took = time.Since(began)
			if err != nil {
				blamed = r
				return err
			}
		}
		return nil
	})
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		blamed = slices.MaxFunc(participants, func(a, b *participant) int { return int(a.contribution.took - b.contribution.took) })
	}
	return blamed, err
}

// Each checkpoint moves under the conditions of Lease.Advance. The statement waits for no
// lock: a locked row, such as one of a generation that is being replaced, would delay all.
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
  AND ` + generation.PlanOnce + `
  AND CASE WHEN $13 THEN pg_notify('` + generation.Channel + `', '') IS NOT NULL ELSE true END
RETURNING c.schema_name`

// advanceCheckpoints moves the participants' checkpoints, all of them or an error.
func (b *sharedBatch) advanceCheckpoints(
	ctx context.Context, q sqlx.QueryerContext, to eventstore.Checkpoint, participants []*participant,
) (missing *participant, err error) {
	var (
		names, owners                                                 []string
		numbers, epochs, commits, prepares, applied, unknown, skipped []int64
	)
	for _, r := range participants {
		commit, prepare := generation.PositionColumns(r.tenure.lease.Stored)
		names, owners = append(names, r.tenure.lease.Gen.Name), append(owners, r.tenure.lease.Owner)
		numbers, epochs = append(numbers, int64(r.tenure.lease.Gen.Number)), append(epochs, r.tenure.lease.Gen.FencingToken)
		commits, prepares = append(commits, commit), append(prepares, prepare)
		applied = append(applied, r.tenure.lease.Handled+int64(r.contribution.events))
		unknown, skipped = append(unknown, r.tenure.lease.Unknown), append(skipped, r.tenure.lease.Skipped)
	}
	commit, prepare := generation.PositionColumns(to)
	var moved []string
	err = sqlx.SelectContext(ctx, q, &moved, advanceAllSQL, pq.Array(names), pq.Array(numbers), pq.Array(owners), pq.Array(epochs),
		pq.Array(commits), pq.Array(prepares), pq.Array(applied), pq.Array(unknown), pq.Array(skipped),
		commit, prepare, b.limits.Lease.Seconds(), b.notifies.Load())
	if err != nil {
		return nil, fmt.Errorf("move the checkpoints: %w", err)
	}
	for _, r := range participants {
		if !slices.Contains(moved, r.tenure.lease.Gen.Schema) { // the name may be that of another generation, too
			return r, errMissing
		}
	}
	return nil, nil
}

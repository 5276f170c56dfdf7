package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/eventstore/generation"
)

// markLive notes that the generation is live, and leaves the shared scan.
func (t *tenure) markLive() {
	t.lease.Gen.State = generation.Live
	t.leaveScan()
}

// leaveScan leaves the shared scan, so that its readers do not wait for this one any more.
func (t *tenure) leaveScan() {
	if t.scanReader != nil {
		t.scanReader.Leave()
		t.scanReader = nil
	}
}

// promoteWhenReady lets a generation that is building go live, or take over, as soon as
// it is far enough.
func (t *tenure) promoteWhenReady(ctx context.Context) error {
	switch {
	case t.lease.Gen.State != generation.Building:
		return nil
	case t.lease.Gen.Serving:
		if !generation.AtLeast(t.lease.Seen, headOf(t.runner.source)) {
			return nil
		}
		t.markLive()
		return t.storeCheckpoint(ctx)
	}
	serving, err := generation.Serving(ctx, t.runner.db, t.lease.Gen.Name)
	if err != nil || !generation.AtLeast(t.lease.Seen, serving.Checkpoint()) {
		return err
	}
	if err := t.storeCheckpoint(ctx); err != nil {
		return err
	}
	if !t.indexed {
		return t.createReaderIndexes(ctx)
	}
	if time.Since(t.flipRefused) < t.runner.limits.MaxBackoff {
		return nil
	}
	flipped, err := generation.Flip(ctx, t.runner.db, t.runner.consumer.(Projector), t.lease, generation.FlipWait(t.runner.limits.Lease))
	if err != nil {
		return t.noteObstacle(ctx, err)
	}
	if !flipped {
		return nil
	}
	t.lease.Gen.Obstacle = ""
	t.markLive()
	t.lease.Gen.Serving = true
	t.beginReporting()
	t.runner.log.WithField("position", t.lease.Seen.Position.String()).Info("the new generation serves")
	return nil
}

// createReaderIndexes makes a build ready for readers, and tries to promote it again: the
// serving rows may have gone on meanwhile. It may outlast the lease; the process that takes
// over then finds the indexes there.
func (t *tenure) createReaderIndexes(ctx context.Context) error {
	err := t.commitBatch(ctx, func(ctx context.Context, tx *sqlx.Tx) error {
		return generation.CreateIndexes(ctx, tx, t.runner.consumer.(Projector), t.lease.Gen.Schema)
	}, 0, t.lease.Seen)
	if err != nil {
		return fmt.Errorf("index %s: %w", t.lease.Gen.Schema, err)
	}
	t.indexed = true
	return t.promoteWhenReady(ctx)
}

// noteObstacle notes the obstacle of a flip, and goes on following the log: the obstacle
// may go away.
func (t *tenure) noteObstacle(ctx context.Context, err error) error {
	what := generation.ObstacleOf(ctx, t.runner.db, generation.FlipWait(t.runner.limits.Lease), err)
	if what == "" {
		return err
	}
	t.flipRefused = time.Now()
	if what == t.lease.Gen.Obstacle {
		return nil
	}
	t.runner.log.WithField("obstacle", what).Warn("the new generation cannot serve yet")
	return t.lease.StoreObstacle(ctx, t.runner.db, what)
}

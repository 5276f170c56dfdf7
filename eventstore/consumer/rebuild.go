package consumer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
	"humanqa/internal/pgpool"
)

// Progress is the state of a rebuild.
type Progress struct {
	Name            string
	Generation      int
	Applied         int64 // events handed to the projector
	Position        domain.Position
	Head            domain.Position // where the log ends by now
	EventsPerSecond float64
	ETA             time.Duration // 0 while it is unknown
	Done            bool
}

// progressEvery is how often a rebuild reports.
const progressEvery = 200 * time.Millisecond

// RebuildAll builds the projections' next generations beside the serving ones, with one scan
// of the log. It ends when they serve, or when the first one stops. A build that was begun
// before goes on where it was. Builds run here, unless the running service takes them; if
// ctx ends they can be resumed. progress may be nil.
func (s *Supervisor) RebuildAll(ctx context.Context, names []string, progress func(Progress)) error {
	if err := s.Prepare(ctx); err != nil {
		return err
	}
	begun := make([]generation.Generation, len(names))
	for i, name := range names {
		p := s.projectorNamed(name)
		if p == nil {
			return fmt.Errorf("there is no projection %s", name)
		}
		err := pgpool.InTx(ctx, s.db, func(tx *sqlx.Tx) (err error) {
			begun[i], err = generation.StartBuild(ctx, tx, p)
			return err
		})
		if err != nil {
			return err
		}
	}
	runners := newRunnerSet(s, s.consumers)
	defer runners.running.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	came := s.scan.Await() // all of them
	for _, g := range begun {
		runners.startRunner(ctx, g)
	}
	came()
	var (
		watching sync.WaitGroup
		telling  sync.Mutex
	)
	for _, g := range begun {
		watching.Go(func() {
			err := s.watchBuild(ctx, g, func(p Progress) {
				telling.Lock()
				defer telling.Unlock()
				if progress != nil {
					progress(p)
				}
			})
			if err != nil {
				cancel(err)
			}
		})
	}
	watching.Wait()
	return context.Cause(ctx)
}

// watchBuild reports until the generation serves.
func (s *Supervisor) watchBuild(ctx context.Context, begun generation.Generation, progress func(Progress)) error {
	meter := newMeter(begun)
	tick := time.NewTicker(min(progressEvery, s.limits.StandBy))
	defer tick.Stop()
	for {
		now, exists, err := generation.Get(ctx, s.db, begun.Name, begun.Number)
		switch {
		case err != nil:
			return err
		case !exists:
			return fmt.Errorf("the rebuild of %s was dropped", begun.Name)
		}
		p := meter.progress(now.Applied-begun.Applied, now.Checkpoint(), s.source.Head())
		p.Applied, p.Done = now.Applied, now.Serving
		progress(p)
		if f := now.Failure(); f != nil {
			return &StoppedError{Name: now.Name, Failure: *f}
		}
		if now.Serving || now.State == generation.Retired {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// meter measures a build from its state at the beginning of the watch.
type meter struct {
	begun generation.Generation
	at    time.Time
}

func newMeter(begun generation.Generation) meter { return meter{begun: begun, at: time.Now()} }

// progress extrapolates the log's positions, which need not be dense, at the
// speed so far.
func (m meter) progress(applied int64, at eventstore.Checkpoint, head domain.Position) Progress {
	elapsed := time.Since(m.at)
	commit, _ := generation.PositionColumns(at)
	p := Progress{
		Name: m.begun.Name, Generation: m.begun.Number, Applied: m.begun.Applied + applied,
		Position: at.Position, Head: head,
	}
	if elapsed <= 0 {
		return p
	}
	p.EventsPerSecond = float64(applied) / elapsed.Seconds()
	moved, left := float64(commit-m.begun.Commit), float64(int64(head.Commit)-commit)
	if moved > 0 && left > 0 {
		p.ETA = time.Duration(left / moved * float64(elapsed)).Round(time.Millisecond)
	}
	return p
}

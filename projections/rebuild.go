package projections

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
)

// Progress is how far a rebuild is.
type Progress struct {
	Name            string
	Generation      int
	Applied         int64 // events handed to the projector
	Position        domain.Position
	Head            domain.Position // where the log ends by now
	EventsPerSecond float64
	ETA             time.Duration // 0 while it cannot be told
	Done            bool
}

// progressEvery is how often a rebuild reports.
const progressEvery = 200 * time.Millisecond

// Rebuild builds the projection's next generation beside the serving one and
// ends when that serves. One that was begun before goes on where it was. It
// runs here, unless the running service takes it; if ctx ends it can be
// resumed. progress may be nil.
func (s *Supervisor) Rebuild(ctx context.Context, name string, progress func(Progress)) error {
	p := s.projector(name)
	if p == nil {
		return fmt.Errorf("there is no projection %s", name)
	}
	if err := s.Prepare(ctx); err != nil {
		return err
	}
	var g generation
	err := inTx(ctx, s.db, func(tx *sqlx.Tx) (err error) {
		g, err = startBuild(ctx, tx, p)
		return err
	})
	if err != nil {
		return err
	}
	if progress == nil {
		progress = func(Progress) {}
	}
	crew := newCrew(s)
	defer crew.wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	crew.staff(ctx, g)
	return s.watch(ctx, g, progress)
}

// watch reports until the generation serves.
func (s *Supervisor) watch(ctx context.Context, begun generation, progress func(Progress)) error {
	start := time.Now()
	tick := time.NewTicker(min(progressEvery, s.limits.standBy))
	defer tick.Stop()
	for {
		now, exists, err := getGeneration(ctx, s.db, begun.Name, begun.Number)
		switch {
		case err != nil:
			return err
		case !exists:
			return fmt.Errorf("the rebuild of %s was dropped", begun.Name)
		}
		progress(s.progress(begun, now, time.Since(start)))
		if f := now.failure(); f != nil {
			return &StoppedError{Name: now.Name, Failure: *f}
		}
		if now.Serving || now.State == Retired {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// progress extrapolates the log's positions, which need not be dense, at the
// speed since this watch began.
func (s *Supervisor) progress(begun, now generation, elapsed time.Duration) Progress {
	p := Progress{
		Name: now.Name, Generation: now.Number, Applied: now.Applied,
		Position: now.checkpoint().Position, Head: s.source.Head(), Done: now.Serving,
	}
	if elapsed <= 0 {
		return p
	}
	p.EventsPerSecond = float64(now.Applied-begun.Applied) / elapsed.Seconds()
	moved, left := float64(now.Commit-begun.Commit), float64(int64(p.Head.Commit)-now.Commit)
	if moved > 0 && left > 0 && !p.Done {
		p.ETA = time.Duration(left / moved * float64(elapsed)).Round(time.Millisecond)
	}
	return p
}

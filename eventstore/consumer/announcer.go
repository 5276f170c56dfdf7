package consumer

import (
	"context"
	"errors"

	"humanqa/domain"
)

// AwaitReads blocks until every read model that WaitFor waits for shows the position, so that
// a client can read what it is told next (decisions, "Told and readable"). It goes on without
// one that stopped, or that is still behind after Limits.Reads. It logs this, and does not
// wait for that one again until it shows the position. An error is that of ctx, or of reading
// the checkpoints.
func (s *Supervisor) AwaitReads(ctx context.Context, position domain.Position) error {
	short, cancel := context.WithTimeout(ctx, s.limits.Reads)
	defer cancel()
	for {
		err := s.tracker.await(short, position, s.tracker.isAwaited)
		var stopped *StoppedError
		var late *lateError
		var behind []string
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &stopped):
			behind = []string{stopped.Name}
		case errors.As(err, &late):
			behind = late.names
		default:
			return err
		}
		if s.tracker.passOver(position, behind) {
			s.log.WithError(err).Warn("clients are told of events that read models do not show yet")
		}
	}
}

// isAwaited says that announcements wait for the projection. The caller holds the lock.
func (t *progressTracker) isAwaited(name string, one *progress) bool {
	return isPrompt(name, one) && !t.isPassedOver(one)
}

// isPassedOver says that announcements were made that the projection does not show yet. The
// caller holds the lock.
func (t *progressTracker) isPassedOver(one *progress) bool {
	return one.missed != domain.Position{} && !t.shows(one, one.missed)
}

// passOver notes projections that announcements up to the position do not wait for. It says
// whether any of them is passed over for the first time since it was behind.
func (t *progressTracker) passOver(position domain.Position, names []string) (anew bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		one := t.each[name]
		anew = anew || !t.isPassedOver(one)
		one.missed = one.missed.Max(position)
	}
	return anew
}

// awaitReads makes an Announcer wait before it writes a batch. A rebuild beside the serving
// rows announces nothing.
func (t *tenure) awaitReads(ctx context.Context, write Write, batch []domain.Recorded) error {
	_, announces := t.runner.consumer.(Announcer)
	if !announces || !t.reporting || write == nil || len(batch) == 0 {
		return nil
	}
	return t.runner.AwaitReads(ctx, batch[len(batch)-1].Position)
}

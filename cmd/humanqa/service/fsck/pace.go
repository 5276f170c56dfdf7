package fsck

import (
	"context"
	"time"

	"humanqa/eventstore"
	"humanqa/internal/backoff"
)

// pace makes long work rest three times as long as it takes.
type pace struct{ since time.Time }

const (
	turn        = 50 * time.Millisecond // of work between two rests
	longestTurn = time.Second           // that is rested for: the machine may have slept meanwhile
)

func (p *pace) rest(ctx context.Context, gently bool) error {
	took := time.Since(p.since)
	if !gently || took < turn {
		return nil
	}
	err := backoff.Wait(ctx, 3*min(took, longestTurn))
	p.since = time.Now()
	return err
}

// slowLog rests before each page. One reader of a scan reads at a time.
type slowLog struct {
	*eventstore.Feed

	gently bool
	pace   pace
}

func (s *slowLog) Next(
	ctx context.Context, after eventstore.Checkpoint, maxEvents int, types map[string]bool,
) (eventstore.Page, error) {
	if err := s.pace.rest(ctx, s.gently); err != nil {
		return eventstore.Page{}, err
	}
	return s.Feed.Next(ctx, after, maxEvents, types)
}

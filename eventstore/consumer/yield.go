package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore/generation"
)

// errYield says that the lease is given back because the next event needs a newer binary.
var errYield = errors.New("the next event is left to a newer version of the service")

// yields holds the events, by schema, at which this binary leaves a line to a newer one.
type yields struct {
	mu sync.Mutex
	at map[string]domain.Position
}

// note notes the event, and says whether it is a new one.
func (y *yields) note(schema string, at domain.Position) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.at[schema] == at {
		return false
	}
	if y.at == nil {
		y.at = map[string]domain.Position{}
	}
	y.at[schema] = at
	return true
}

// of is the event that the line waits at; zero once it is passed.
func (y *yields) of(status Status) domain.Position {
	y.mu.Lock()
	defer y.mu.Unlock()
	at := y.at[status.Schema]
	if status.Started && status.Position.Compare(at) >= 0 {
		delete(y.at, status.Schema)
		return domain.Position{}
	}
	return at
}

// leaveToNewer gives the lease back where the line would stop at an event that a newer
// binary has written. The newer binary takes the lease meanwhile, and goes on without a
// loss. No failure is recorded, so an operator has nothing to resume.
func (t *tenure) leaveToNewer(ctx context.Context, failure generation.Failure) error {
	if t.lease.Seen != t.lease.Stored {
		if err := t.storeCheckpoint(ctx); err != nil {
			return err
		}
	}
	if t.runner.yields.note(t.lease.Gen.Schema, failure.Position) {
		t.runner.log.WithFields(logrus.Fields{"position": failure.Position.String(), "detail": failure.Detail}).
			Warn("the line is left to a newer version of the service")
	}
	return errYield
}

// newerNotes gives the notes about work that a newer binary does in place of this one.
func (s Status) newerNotes() (notes []string) {
	if s.Serving && s.Code > 0 && s.Version > s.Code {
		notes = append(notes, fmt.Sprintf("projection %s shows rows of version %d, which a newer version of the service keeps: this one knows version %d",
			s.Name, s.Version, s.Code))
	}
	if s.Newer != (domain.Position{}) {
		notes = append(notes, fmt.Sprintf("projection %s is left to a newer version of the service, since the event at %s", s.Name, s.Newer))
	}
	return notes
}

package consumer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
)

// The package's tests fold real read models, which import it: they stand
// outside, and reach in through this file.

// What the tests compare with and run by themselves.
var (
	Transient = transient
	OfEvent   = ofEvent
)

// ListenerName is what a connection is called whose process waits for others'.
const ListenerName = listenerName

// StallAfter is when a standstill becomes a problem.
const StallAfter = stallAfter

// DefaultLimits are those of a service.
var DefaultLimits = defaultLimits

// LogTo is called before Run.
func (s *Supervisor) LogTo(log logrus.FieldLogger) { s.log = log }

// ChangeLimits changes some of the limits.
func (s *Supervisor) ChangeLimits(change func(*Limits)) {
	limits := s.limits
	change(&limits)
	s.SetLimits(limits)
}

// VerifyGeneration verifies any generation up to its own checkpoint.
func (s *Supervisor) VerifyGeneration(ctx context.Context, name string, number int) ([]Difference, error) {
	names := []string{name}
	differences, err := s.verifyGenerations(ctx, names, s.joinScan(names),
		func(ctx context.Context, q sqlx.QueryerContext, name string) (generation.Generation, error) {
			g, _, err := generation.Get(ctx, q, name, number)
			return g, err
		})
	return slices.Concat(differences...), err
}

// Tenure is one owner's time with a generation's lease.
type Tenure struct{ f *tenure }

// Acquire takes the lease of the projector's first generation; nil when
// somebody else has it.
func (s *Supervisor) Acquire(ctx context.Context, c Consumer, owner string, length time.Duration) (*Tenure, error) {
	return s.AcquireGeneration(ctx, c, 1, owner, length)
}

// AcquireGeneration is Acquire for any generation.
func (s *Supervisor) AcquireGeneration(ctx context.Context, c Consumer, number int, owner string, length time.Duration) (*Tenure, error) {
	g, exists, err := generation.Get(ctx, s.db, c.Name(), number)
	if err != nil || !exists {
		return nil, fmt.Errorf("read generation %d: %v, %w", number, exists, err)
	}
	r := s.newRunner(c, g)
	r.owner = owner
	l, err := generation.Acquire(ctx, s.db, g, owner, length)
	if l == nil || err != nil {
		return nil, err
	}
	return &Tenure{&tenure{runner: r, lease: l}}, nil
}

// Choose keeps the events that the projector handles.
func (t *Tenure) Choose(events []domain.Recorded) []domain.Recorded { return t.f.selectEvents(events) }

// Commit applies a batch and moves the checkpoint to its end.
func (t *Tenure) Commit(ctx context.Context, batch []domain.Recorded) error {
	write, _, err := t.f.prepareBatch(ctx, batch)
	if err != nil {
		return err
	}
	return t.f.commitBatch(ctx, write, len(batch), eventstore.At(batch[len(batch)-1].Position))
}

// CommitTogether applies a batch in one transaction for several owners.
func (s *Supervisor) CommitTogether(ctx context.Context, batch []domain.Recorded, owners ...*Tenure) error {
	var participants []*participant
	for _, t := range owners {
		write, _, err := t.f.prepareBatch(ctx, batch)
		if err != nil {
			return err
		}
		participants = append(participants, &participant{tenure: t.f, contribution: contribution{write: write, events: len(batch)}})
	}
	_, err := (&sharedBatch{Supervisor: s}).runTransaction(ctx, eventstore.At(batch[len(batch)-1].Position), participants)
	return err
}

// SetAside goes on without an event.
func (t *Tenure) SetAside(ctx context.Context, e domain.Recorded, cause error) error {
	t.f.aside = map[string]domain.Position{}
	return t.f.setEventAside(ctx, e, cause)
}

// Stored is the checkpoint as the owner knows it.
func (t *Tenure) Stored() eventstore.Checkpoint { return t.f.lease.Stored }

// Believe makes the owner think that the checkpoint is elsewhere.
func (t *Tenure) Believe(at eventstore.Checkpoint) { t.f.lease.Stored = at }

// Decoded are the types whose events the consumer wants decoded.
func Decoded(c Consumer) map[string]bool { return handledBy(c) }

// OwnerOfSession is one of the process, the same each time.
func (s *Supervisor) OwnerOfSession() string { return "host:1/" + s.session + ".runner" }

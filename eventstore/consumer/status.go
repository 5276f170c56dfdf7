package consumer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
)

// stallAfter is how long a projection may stand still behind the log's end
// before it counts as stalled.
const stallAfter = 10 * time.Second

// Status is the state of one generation of a projection.
type Status struct {
	generation.Generation

	// Code is the version of this binary's code; 0 where that is not known.
	Code     int
	Started  bool            // it has seen an event
	Position domain.Position // of the last event seen
	// Lag is how far the log's end lies ahead, in positions: in events on the
	// embedded node, in bytes on an original server, so it is no
	// measure of lateness. 0 when the log's end is not known.
	Lag uint64
	// Ahead says that the log ends before the checkpoint. For a moment that can be
	// because the two are read one after the other; if it stays, the log has lost its tail.
	Ahead   bool
	Failure *generation.Failure // nil while the line runs
	// SetAside lists the streams that the generation goes on without.
	SetAside []SetAside
	// Newer is the event at which this process leaves the line to a newer version of the
	// service; zero: it does not.
	Newer domain.Position
	// Foreign says that this binary has no code of that name: another binary has written the
	// rows, and this one does not need them.
	Foreign bool
	// Stalled is how long the generation has been at one place that is not the log's end.
	Stalled time.Duration
}

// older says that older code than this binary's has written the serving rows.
func (s Status) older() bool { return s.Serving && s.Version < s.Code }

// Problem describes in one line a generation's problem; empty when it has none. A generation
// that is only being built has a problem when it cannot go on. A declared projection never has
// one: the service does without it.
func (s Status) Problem() string {
	switch {
	case s.Foreign, generation.IsDeclared(s.Name):
		return ""
	case !s.Serving && s.Failure != nil:
		return fmt.Sprintf("the rebuild of projection %s stopped at %s (%s)", s.Name, s.Failure.Position, s.Failure.Category)
	case !s.Serving && s.Obstacle != "":
		return fmt.Sprintf("the rebuilt projection %s cannot be shown: %s", s.Name, s.Obstacle)
	case !s.Serving:
		return ""
	case s.older():
		return fmt.Sprintf("projection %s shows rows of version %d, until those of version %d are built", s.Name, s.Version, s.Code)
	case s.Failure != nil:
		return fmt.Sprintf("projection %s stopped at %s (%s)", s.Name, s.Failure.Position, s.Failure.Category)
	case s.Stalled >= stallAfter && s.Newer != (domain.Position{}):
		return fmt.Sprintf("projection %s waits at %s for a newer version of the service, which has written the event: start that one", s.Name,
			s.Newer)
	case s.Stalled >= stallAfter && s.Ahead:
		return fmt.Sprintf("projection %s stands at %s, beyond the log's end: was the log restored from a backup? rebuild it", s.Name,
			s.Position)
	case s.Stalled >= stallAfter:
		return fmt.Sprintf("projection %s stands at %s for %s, short of the log's end", s.Name, s.Position, s.Stalled.Round(time.Second))
	}
	return ""
}

// Notes gives, a line each, facts for an operator about a generation that do not keep the
// service from serving. They name no stream, since /readyz shows them without a key.
func (s Status) Notes() (notes []string) {
	if s.Foreign {
		return []string{fmt.Sprintf(
			"this version has no projection %s, and nothing keeps it up to date: `humanqa projections drop %s` removes it",
			s.Name, s.Name)}
	}
	notes = s.newerNotes()
	if s.Failure != nil && generation.IsDeclared(s.Name) {
		notes = append(notes, fmt.Sprintf("the declared projection %s stopped at %s (%s)", s.Name, s.Failure.Position, s.Failure.Category))
	}
	if n := len(s.SetAside); n > 0 {
		streams := "1 stream"
		if n > 1 {
			streams = fmt.Sprintf("%d streams", n)
		}
		first := s.SetAside[0]
		notes = append(notes, fmt.Sprintf("projection %s goes on without %s, since the event at %s (%s)", s.Name, streams, first.Position,
			first.Category))
	}
	return notes
}

// Failed lists the events that an operator may skip: the event at which the line stopped,
// and those that are set aside.
func (s Status) Failed() (at []domain.Position) {
	if s.Failure != nil {
		at = append(at, s.Failure.Position)
	}
	for _, a := range s.SetAside {
		at = append(at, a.Position)
	}
	return at
}

// List gives every generation that is not retired, without the fields that only a
// running service knows (Lag, Stalled).
func List(ctx context.Context, db *sqlx.DB) ([]Status, error) {
	all, err := generation.ListAll(ctx, db)
	if err != nil {
		return nil, err
	}
	list := statuses(all)
	return list, tellAside(ctx, db, list)
}

// tellAside adds the streams that each generation has set aside.
func tellAside(ctx context.Context, db *sqlx.DB, list []Status) error {
	aside, err := listAside(ctx, db)
	for i, s := range list {
		list[i].SetAside = aside[generationKey(s.Name, s.Number)]
	}
	return err
}

// Failed lists the events of a consumer that an operator may skip, in the log's order.
func Failed(ctx context.Context, db *sqlx.DB, name string) (at []domain.Position, err error) {
	all, err := List(ctx, db)
	for _, s := range all {
		if s.Name == name {
			at = append(at, s.Failed()...)
		}
	}
	slices.SortFunc(at, domain.Position.Compare)
	return slices.Compact(at), err
}

func statuses(all []generation.Generation) []Status {
	list := make([]Status, 0, len(all))
	for _, g := range all {
		if g.State == generation.Retired {
			continue
		}
		at := g.Checkpoint()
		list = append(list, Status{Generation: g, Started: !at.Start, Position: at.Position, Failure: g.Failure()})
	}
	return list
}

// Status gives every generation with its lag behind the log's end. A
// registered projection without a generation is an error: Prepare has not run.
func (s *Supervisor) Status(ctx context.Context) ([]Status, error) {
	all, err := generation.ListAll(ctx, s.db)
	if err != nil {
		return nil, err
	}
	s.observeStalls(all)
	list := statuses(all)
	if err := tellAside(ctx, s.db, list); err != nil {
		return nil, err
	}
	head := s.source.Head()
	for _, c := range s.consumers {
		if serving, _ := generation.Find(all, c); serving == nil {
			return nil, fmt.Errorf("%s was never prepared", c.Name())
		}
	}
	for i := range list {
		status := &list[i]
		c := byName(s.consumers, status.Name)
		if status.Foreign = c == nil && !generation.IsDeclared(status.Name); c != nil {
			status.Code = generation.VersionOf(c)
		}
		at := s.knownCheckpoint(*status)
		status.Started, status.Position = !at.Start, at.Position
		status.Newer = s.yields.of(*status)
		switch {
		case atEnd(at, head):
			continue
		case generation.Reached(at, head):
			status.Ahead = true
		default:
			status.Lag = head.Commit - at.Position.Commit
		}
		status.Stalled = s.stalls.since(status.Schema)
	}
	return list, nil
}

// atEnd says that the checkpoint is the log's end, or that the end is not known.
func atEnd(at eventstore.Checkpoint, head domain.Position) bool {
	return head == domain.Position{} || !at.Start && at.Position == head
}

// knownCheckpoint is the stored checkpoint, or that of this process's runner if it is newer.
func (s *Supervisor) knownCheckpoint(status Status) eventstore.Checkpoint {
	at := eventstore.Checkpoint{Position: status.Position, Start: !status.Started}
	if here := s.tracker.positionOf(status.Name); status.Serving && generation.AtLeast(here, at) {
		return here
	}
	return at
}

// observeStalls notes which generations stand still.
func (s *Supervisor) observeStalls(all []generation.Generation) {
	head := s.source.Head()
	for _, status := range statuses(all) {
		at := s.knownCheckpoint(status)
		s.stalls.observe(status.Schema, at, atEnd(at, head), time.Now())
	}
}

// stalls remembers since when each generation has been at its place without being
// at the log's end. A busy runner moves; one that is stuck stays at the same place.
type stalls struct {
	mu    sync.Mutex
	seen  map[string]stall // by schema
	clock time.Time        // of the last observation
}

type stall struct {
	at    eventstore.Checkpoint
	since time.Time
}

func (s *stalls) observe(schema string, at eventstore.Checkpoint, done bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]stall{}
	}
	s.clock = now
	if old, ok := s.seen[schema]; !ok || old.at != at || done {
		s.seen[schema] = stall{at: at, since: now}
	}
}

func (s *stalls) since(schema string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.seen[schema]; ok {
		return s.clock.Sub(old.since)
	}
	return 0
}

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/credits"
	"humanqa/domain/host"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/domain/session"
	"humanqa/eventstore"
)

// memoryLog is the log in memory, with its exact rules of revision and
// idempotency. The real one is tested with the real one; here a test wants to
// fail a write, once persisted and once not.
type memoryLog struct {
	mu      sync.Mutex
	events  []domain.Recorded
	streams map[string][]int
	grown   chan struct{} // closed and replaced at each append
	types   map[string]func() domain.Event
	// fail, if set, is asked before each append: an error fails it, and
	// persisted says whether the events are in all the same.
	fail func(stream string, events []domain.NewEvent) (persisted bool, err error)
}

func newMemoryLog() *memoryLog {
	l := &memoryLog{streams: map[string][]int{}, grown: make(chan struct{}), types: map[string]func() domain.Event{}}
	for _, spec := range slices.Concat(account.Specs(), checker.Specs(), credits.Specs(), project.Specs(), job.Specs(),
		host.Specs(), session.Specs(), loop.Specs()) {
		l.types[spec.New().EventType()] = spec.New
	}
	return l
}

func (l *memoryLog) failNext(suffix string, persisted bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = func(_ string, events []domain.NewEvent) (bool, error) {
		if events[0].Event.EventType() != suffix {
			return true, nil
		}
		l.fail = nil
		return persisted, err
	}
}

// Append implements domain.Log.
func (l *memoryLog) Append(_ context.Context, stream string, expected domain.ExpectedRevision, events []domain.NewEvent) (domain.Written, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		if persisted, err := l.fail(stream, events); err != nil {
			if persisted {
				_, _ = l.append(stream, expected, events) // the caller learns of the failure only
			}
			return domain.Written{}, err
		}
	}
	return l.append(stream, expected, events)
}

func (l *memoryLog) append(stream string, expected domain.ExpectedRevision, events []domain.NewEvent) (domain.Written, error) {
	at := l.streams[stream]
	if int(expected)+1 != len(at) {
		repeated := at[min(len(at), int(expected)+1):]
		for i, e := range events {
			if i >= len(repeated) || l.events[repeated[i]].ID != e.ID {
				return domain.Written{}, domain.ErrWrongRevision
			}
		}
		last := l.events[repeated[len(events)-1]]
		return domain.Written{Revision: last.Revision, Position: last.Position}, nil
	}
	var last domain.Recorded
	for _, e := range events {
		data, err := json.Marshal(e.Event)
		if err != nil {
			return domain.Written{}, fmt.Errorf("encode: %w", err)
		}
		decoded := l.types[e.Event.EventType()]()
		if err := json.Unmarshal(data, decoded); err != nil {
			return domain.Written{}, fmt.Errorf("decode: %w", err)
		}
		place := uint64(len(l.events) + 1)
		last = domain.Recorded{
			ID: e.ID, Stream: stream, Revision: uint64(len(l.streams[stream])),
			Position: domain.Position{Commit: place, Prepare: place},
			Type:     e.Event.EventType(), Meta: e.Meta, Event: decoded,
		}
		l.streams[stream] = append(l.streams[stream], len(l.events))
		l.events = append(l.events, last)
	}
	close(l.grown)
	l.grown = make(chan struct{})
	return domain.Written{Revision: last.Revision, Position: last.Position}, nil
}

// Load implements domain.Log.
func (l *memoryLog) Load(_ context.Context, stream string, from uint64, each func(domain.Recorded) error) error {
	l.mu.Lock()
	var events []domain.Recorded
	for _, i := range l.streams[stream] {
		if l.events[i].Revision >= from {
			events = append(events, l.events[i])
		}
	}
	l.mu.Unlock()
	for _, e := range events {
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

// Next implements projections.Source.
func (l *memoryLog) Next(ctx context.Context, after eventstore.Checkpoint, most int) (eventstore.Page, error) {
	for {
		l.mu.Lock()
		rest, grown := l.events[min(uint64(len(l.events)), after.Position.Commit):], l.grown
		l.mu.Unlock()
		if n := min(len(rest), most); n > 0 {
			return eventstore.Page{Events: rest[:n:n], Next: rest[n-1].Position, Live: n == len(rest)}, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return eventstore.Page{}, ctx.Err()
		}
	}
}

// Head implements projections.Source.
func (l *memoryLog) Head() domain.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) == 0 {
		return domain.Position{}
	}
	return l.events[len(l.events)-1].Position
}

// count says how many events of a type there are.
func (l *memoryLog) count(eventType string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, e := range l.events {
		if e.Type == eventType {
			n++
		}
	}
	return n
}

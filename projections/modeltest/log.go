// Package modeltest is what the tests of the read models share: a log in
// memory, a service that folds it into a real Postgres, and events with what a
// test does not care about filled in.
package modeltest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"humanqa/domain"
	"humanqa/eventstore"
)

// Log is a log in memory that runners can follow. Hold keeps events back,
// Spoil makes one undecodable.
type Log struct {
	mu      sync.Mutex
	events  []domain.Recorded
	spoiled map[uint64]bool
	held    uint64 // 0: nothing is held back; else the last position handed out
	asked   []eventstore.Checkpoint
	wake    chan struct{}
	long    map[string]uint64 // how many events each stream has; nil: to be counted
}

// NewLog makes an empty log.
func NewLog() *Log {
	return &Log{spoiled: map[uint64]bool{}, wake: make(chan struct{})}
}

// Append puts events at the end of a stream, and of the log.
func (m *Log) Append(stream string, events ...domain.Event) domain.Position {
	return m.AppendAt(time.Time{}, stream, events...)
}

// AppendAt appends events of that moment.
func (m *Log) AppendAt(now time.Time, stream string, events ...domain.Event) domain.Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.long == nil {
		m.long = map[string]uint64{}
		for _, r := range m.events {
			m.long[r.Stream]++
		}
	}
	for _, e := range events {
		at := uint64(len(m.events) + 1)
		r := domain.Recorded{Stream: stream, Revision: m.long[stream], Position: domain.Position{Commit: at, Prepare: at}, Event: e, Meta: domain.Metadata{Time: now}}
		if e != nil {
			r.Type = e.EventType()
		}
		m.events = append(m.events, r)
		m.long[stream]++
	}
	m.stir()
	return m.head()
}

// Spoil makes the event at the position undecodable.
func (m *Log) Spoil(p domain.Position) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spoiled[p.Commit] = true
}

// Lose takes the last events away, as a restored backup does.
func (m *Log) Lose(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.long = nil
	m.events = m.events[:len(m.events)-n]
}

// Hold keeps back what lies behind a position; 0 lets everything go.
func (m *Log) Hold(after uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = after
	m.stir()
}

func (m *Log) stir() {
	close(m.wake)
	m.wake = make(chan struct{})
}

func (m *Log) head() domain.Position {
	n := uint64(len(m.events))
	return domain.Position{Commit: n, Prepare: n}
}

// Head implements consumer.Source.
func (m *Log) Head() domain.Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.head()
}

// Next implements consumer.Source.
func (m *Log) Next(ctx context.Context, after eventstore.Checkpoint, limit int) (eventstore.Page, error) {
	for first := true; ; first = false {
		m.mu.Lock()
		if first {
			m.asked = append(m.asked, after)
		}
		page, ok, err := m.page(after, limit)
		wake := m.wake
		m.mu.Unlock()
		if ok || err != nil {
			return page, err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return eventstore.Page{}, ctx.Err()
		}
	}
}

func (m *Log) page(after eventstore.Checkpoint, limit int) (eventstore.Page, bool, error) {
	from, to := min(int(after.Position.Commit), len(m.events)), len(m.events)
	if m.held > 0 {
		to = min(to, int(m.held))
	}
	var page eventstore.Page
	for i := from; i < min(to, from+limit); i++ {
		e := m.events[i]
		if m.spoiled[e.Position.Commit] {
			if len(page.Events) == 0 {
				return page, false, &eventstore.DecodeError{
					Position: e.Position, Stream: e.Stream, Type: e.Type, Err: errors.New("not JSON"),
				}
			}
			break
		}
		page.Events = append(page.Events, e)
		page.Next = e.Position
	}
	page.Live = page.Next == m.head()
	return page, len(page.Events) > 0, nil
}

// Events gives what was appended so far.
func (m *Log) Events() []domain.Recorded {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events)
}

// Asked gives the checkpoints that Next was asked behind.
func (m *Log) Asked() []eventstore.Checkpoint {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

// Copy makes a log of its own with the same events.
func (m *Log) Copy() *Log {
	c := NewLog()
	c.events = m.Events()
	return c
}

// Package logtest has logs for tests: one in memory with faults on demand, the real one
// with its node and feed, and the contract of both.
package logtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/eventstore"
)

// Log is the log that the service needs, for its commands and for its consumers.
type Log interface {
	domain.Log
	Next(ctx context.Context, after eventstore.Checkpoint, maxEvents int, types map[string]bool) (eventstore.Page, error)
	Head() domain.Position
}

// Memory is a log in memory that keeps the contract of Test, down to the bytes: the
// codec encodes and decodes every event that is read. A test decides which write fails,
// and whether it was persisted. It also decides which events followers see, and when.
type Memory struct {
	mu      sync.Mutex
	events  []domain.Recorded // the one at position p is at p-1
	streams map[string][]int  // places in events
	grown   chan struct{}     // closed and replaced when followers may see more

	appends map[string]int
	loads   int
	asked   []eventstore.Checkpoint

	before  func(stream string)
	strike  func(stream string, events []domain.NewEvent) *Fault
	spoiled map[uint64]bool
	held    uint64 // 0: no event is held back; else the last position that followers get
}

var _ Log = (*Memory)(nil)

// New gives an empty log.
func New() *Memory {
	return &Memory{
		streams: map[string][]int{}, grown: make(chan struct{}), appends: map[string]int{}, spoiled: map[uint64]bool{},
	}
}

// Append implements domain.Log.
func (m *Memory) Append(
	_ context.Context, stream string, expected domain.ExpectedRevision, events []domain.NewEvent,
) (domain.AppendResult, error) {
	m.mu.Lock()
	before := m.before
	m.mu.Unlock()
	if before != nil {
		before(stream)
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	var fault *Fault
	if m.strike != nil {
		fault = m.strike(stream, events)
	}
	if fault != nil && !fault.Persisted {
		return domain.AppendResult{}, fault.Err
	}
	written, err := m.append(stream, expected, events)
	if err == nil && fault != nil {
		return domain.AppendResult{}, fault.Err
	}
	return written, err
}

func (m *Memory) append(stream string, expected domain.ExpectedRevision, events []domain.NewEvent) (domain.AppendResult, error) {
	has := m.streams[stream]
	switch at := int(expected) + 1; {
	case len(events) == 0:
		return domain.AppendResult{}, errors.New("append: no events")
	case at > len(has):
		return domain.AppendResult{}, domain.ErrWrongRevision
	case at < len(has): // a repeat, or another writer was first
		for i, e := range events {
			if at+i >= len(has) || m.events[has[at+i]].ID != e.ID {
				return domain.AppendResult{}, domain.ErrWrongRevision
			}
		}
		return m.written(has[at+len(events)-1]), nil
	}
	// Unless all events can be encoded, none is kept.
	recorded := make([]domain.Recorded, len(events))
	for i, e := range events {
		if e.ID == uuid.Nil {
			return domain.AppendResult{}, fmt.Errorf("append to %s: an event without an id", stream)
		}
		data, meta, err := eventstore.Encode(e)
		if err == nil {
			recorded[i], err = m.place(stream, i, eventstore.RawEvent{ID: e.ID, Type: e.Event.EventType(), Data: data, Meta: meta})
		}
		if err != nil {
			return domain.AppendResult{}, fmt.Errorf("append to %s: %w", stream, err)
		}
	}
	m.appends[stream]++
	m.keep(recorded...)
	return m.written(len(m.events) - 1), nil
}

// place decodes an event as the one that comes i places after the next.
func (m *Memory) place(stream string, i int, raw eventstore.RawEvent) (domain.Recorded, error) {
	position := uint64(len(m.events) + i + 1)
	raw.Stream, raw.Revision = stream, uint64(len(m.streams[stream])+i)
	raw.Position = domain.Position{Commit: position, Prepare: position}
	return raw.Decode()
}

func (m *Memory) keep(events ...domain.Recorded) {
	for _, e := range events {
		m.streams[e.Stream] = append(m.streams[e.Stream], len(m.events))
		m.events = append(m.events, e)
	}
	m.stir()
}

func (m *Memory) stir() {
	close(m.grown)
	m.grown = make(chan struct{})
}

func (m *Memory) written(place int) domain.AppendResult {
	e := m.events[place]
	return domain.AppendResult{Revision: e.Revision, Position: e.Position}
}

// Load implements domain.Log.
func (m *Memory) Load(_ context.Context, stream string, from uint64, each func(domain.Recorded) error) error {
	m.mu.Lock()
	m.loads++
	m.mu.Unlock()
	for _, e := range m.Stream(stream) {
		if e.Revision < from {
			continue
		}
		if m.isSpoiled(e.Position) {
			return undecodable(e)
		}
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

func (m *Memory) isSpoiled(at domain.Position) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spoiled[at.Commit]
}

func undecodable(e domain.Recorded) *eventstore.DecodeError {
	e.Event, e.Meta = nil, domain.Metadata{}
	return &eventstore.DecodeError{Recorded: e, Err: errors.New("not JSON")}
}

// LoadTail implements domain.Log.
func (m *Memory) LoadTail(_ context.Context, stream, eventType string, most int) (events []domain.Recorded, ok bool, err error) {
	events = m.Stream(stream)
	from := 0
	for i, e := range slices.Backward(events) {
		if e.Type == eventType {
			from = i
			break
		}
	}
	if events = events[from:]; len(events) > most {
		return nil, false, nil
	}
	return events, true, nil
}

// Next implements Log. It gives the events behind the checkpoint, and blocks until there is
// one. Like the feed, it leaves out Event and Meta of other types than the given ones; nil:
// of none.
func (m *Memory) Next(ctx context.Context, after eventstore.Checkpoint, maxEvents int, types map[string]bool) (eventstore.Page, error) {
	m.mu.Lock()
	m.asked = append(m.asked, after)
	m.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return eventstore.Page{}, err
		}
		m.mu.Lock()
		page, err := m.page(after, max(maxEvents, 1))
		grown := m.grown
		m.mu.Unlock()
		if err != nil || len(page.Events) > 0 {
			return only(page, types), err
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return eventstore.Page{}, ctx.Err()
		}
	}
}

func only(page eventstore.Page, types map[string]bool) eventstore.Page {
	if types == nil {
		return page
	}
	page.Events = slices.Clone(page.Events)
	for i, e := range page.Events {
		if !types[e.Type] && eventstore.Version(e.Type) > 0 {
			page.Events[i].Event, page.Events[i].Meta = nil, domain.Metadata{}
		}
		if !types[eventstore.Sums] {
			page.Events[i].Stored.Data, page.Events[i].Stored.Meta = [32]byte{}, [32]byte{}
		}
	}
	return page
}

func (m *Memory) page(after eventstore.Checkpoint, maxEvents int) (page eventstore.Page, err error) {
	from, to := 0, len(m.events)
	if !after.Start {
		from = min(int(after.Position.Commit), to)
	}
	if m.held > 0 {
		to = min(to, int(m.held))
	}
	for _, e := range m.events[from:max(from, min(to, from+maxEvents))] {
		if m.spoiled[e.Position.Commit] {
			if len(page.Events) == 0 {
				err = undecodable(e)
			}
			break
		}
		page.Events = append(page.Events, e)
		page.Next = e.Position
	}
	page.Live = page.Next == m.head()
	return page, err
}

// Head implements Log.
func (m *Memory) Head() domain.Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.head()
}

func (m *Memory) head() domain.Position {
	n := uint64(len(m.events))
	return domain.Position{Commit: n, Prepare: n}
}

// Writes of a test without a command.

// Unknown is the type of an event that this binary does not know.
type Unknown string

// EventType implements domain.Event.
func (u Unknown) EventType() string { return string(u) }

// Record adds events to a stream, at any revision, and gives the last one's position.
// Their metadata are empty, and have no time.
func (m *Memory) Record(stream string, events ...domain.Event) domain.Position {
	return m.RecordAs(domain.Metadata{}, stream, events...)
}

// RecordAs is Record with metadata.
func (m *Memory) RecordAs(meta domain.Metadata, stream string, events ...domain.Event) domain.Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		id := domain.CommandIDFor(stream, fmt.Sprint(len(m.streams[stream])))
		data, encoded, err := eventstore.Encode(domain.NewEvent{ID: id, Event: e, Meta: meta})
		if _, unknown := e.(Unknown); unknown {
			data, encoded, err = []byte("{}"), nil, nil
		}
		recorded := domain.Recorded{}
		if err == nil {
			recorded, err = m.place(stream, 0, eventstore.RawEvent{ID: id, Type: e.EventType(), Data: data, Meta: encoded})
		}
		if err != nil {
			panic(err) // a mistake of the test
		}
		m.keep(recorded)
	}
	return m.head()
}

// RecordStored adds an event as another binary may have written it, without a check.
func (m *Memory) RecordStored(stream, eventType, data string) domain.Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := domain.CommandIDFor(stream, fmt.Sprint(len(m.streams[stream])))
	recorded, err := m.place(stream, 0, eventstore.RawEvent{ID: id, Type: eventType, Data: []byte(data)})
	if err != nil {
		panic(err) // a mistake of the test
	}
	m.keep(recorded)
	return m.head()
}

// Reads of a test.

// All gives every event in the log's order.
func (m *Memory) All() []domain.Recorded {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events)
}

// After gives every event behind a position, in the log's order.
func (m *Memory) After(position domain.Position) []domain.Recorded {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events[position.Commit:])
}

// Stream gives the events of a stream.
func (m *Memory) Stream(stream string) []domain.Recorded {
	m.mu.Lock()
	defer m.mu.Unlock()
	events := make([]domain.Recorded, len(m.streams[stream]))
	for i, place := range m.streams[stream] {
		events[i] = m.events[place]
	}
	return events
}

// Types gives the types of a stream's events.
func (m *Memory) Types(stream string) (types []string) {
	for _, e := range m.Stream(stream) {
		types = append(types, e.Type)
	}
	return types
}

// Count says how many events of a type there are.
func (m *Memory) Count(eventType string) (n int) {
	for _, e := range m.All() {
		if e.Type == eventType {
			n++
		}
	}
	return n
}

// Appends says how many appends wrote to a stream.
func (m *Memory) Appends(stream string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.appends[stream]
}

// Loads says how often any stream was loaded.
func (m *Memory) Loads() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loads
}

// Asked lists the checkpoints that followers asked behind.
func (m *Memory) Asked() []eventstore.Checkpoint {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

// Faults that a test makes.

// Fault is how an append fails: with this error, once written or not.
type Fault struct {
	Persisted bool
	Err       error
}

// Strike makes every append call fault for its fault; nil is none. fault must not use
// the log.
func (m *Memory) Strike(fault func(stream string, events []domain.NewEvent) *Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.strike = fault
}

// Fail makes the given appends fail, until Heal.
func (m *Memory) Fail(which AppendFilter, persisted bool, err error) {
	m.Strike(func(stream string, events []domain.NewEvent) *Fault {
		if !which(stream, events) {
			return nil
		}
		return &Fault{Persisted: persisted, Err: err}
	})
}

// Heal ends Fail and Strike.
func (m *Memory) Heal() { m.Strike(nil) }

// Before is called before each append, and may append itself; nil ends it.
func (m *Memory) Before(do func(stream string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before = do
}

// AppendFilter selects appends.
type AppendFilter func(stream string, events []domain.NewEvent) bool

// To selects the appends to streams whose names begin with the prefix.
func To(prefix string) AppendFilter {
	return func(stream string, _ []domain.NewEvent) bool { return strings.HasPrefix(stream, prefix) }
}

// Of selects the appends that begin with an event of the type.
func Of(eventType string) AppendFilter {
	return func(_ string, events []domain.NewEvent) bool { return events[0].Event.EventType() == eventType }
}

// Nth selects one append, counted from 1.
func Nth(n int) AppendFilter {
	return func(string, []domain.NewEvent) bool { n--; return n == 0 }
}

// Once selects the first of the given appends.
func Once(which AppendFilter) AppendFilter {
	done := false
	return func(stream string, events []domain.NewEvent) bool {
		hit := !done && which(stream, events)
		done = done || hit
		return hit
	}
}

// Spoil makes the event at a position undecodable, or decodable again.
func (m *Memory) Spoil(position uint64, spoiled bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spoiled[position] = spoiled
	m.stir()
}

// Hold keeps the events behind a position from followers; 0 ends it.
func (m *Memory) Hold(after uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = after
	m.stir()
}

// Lose takes the last n events away, as a restored backup does.
func (m *Memory) Lose(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events[len(m.events)-n:] {
		m.streams[e.Stream] = m.streams[e.Stream][:e.Revision]
	}
	m.events = m.events[:len(m.events)-n]
}

// Copy is a log of its own with the same events.
func (m *Memory) Copy() *Memory {
	c := New()
	c.keep(m.All()...)
	return c
}

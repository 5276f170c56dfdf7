package store

import "github.com/google/uuid"

// idsHeld is how many of the log's last events are known by their ids.
const idsHeld = 100_000

// place is where an event stands in its stream.
type place struct {
	stream   string
	revision int64
}

// identity is an event's id and where it was written.
type identity struct {
	id       uuid.UUID
	position int64
}

// placed is the id of an event and its place.
type placed struct {
	id uuid.UUID
	place
}

// ids holds the log's last events, and behind them those that are in flight. By them the
// writer recognises a repeat. An id that stands in the log twice belongs to its first place,
// as in the original.
type ids struct {
	first   int64    // the position of the oldest
	events  []placed // in the log's order
	byID    map[uuid.UUID]int64
	byPlace map[place]int64
}

// add adds the event behind the last one.
func (s *ids) add(e placed) {
	position := s.first + int64(len(s.events))
	s.events = append(s.events, e)
	if _, taken := s.byPlace[e.place]; !taken { // else the assumption that the stream is absent is wrong
		s.byPlace[e.place] = position
	}
	if _, taken := s.byID[e.id]; !taken {
		s.byID[e.id] = position
	}
}

// find gives the place at which the event was first written.
func (s *ids) find(id uuid.UUID) (at place, position int64, ok bool) {
	position, ok = s.byID[id]
	if ok {
		at = s.events[position-s.first].place
	}
	return at, position, ok
}

// at gives the event at a place.
func (s *ids) at(p place) (identity, bool) {
	position, ok := s.byPlace[p]
	if !ok {
		return identity{}, false
	}
	return identity{s.events[position-s.first].id, position}, true
}

// trim forgets old events. Those behind the committed position are in memory only.
func (s *ids) trim(committed int64) {
	for s.first <= committed-idsHeld && len(s.events) > 0 {
		s.remove(s.first)
		s.events = s.events[1:]
		s.first++
	}
}

// undo forgets the events behind a position.
func (s *ids) undo(head int64) {
	for last := s.first + int64(len(s.events)) - 1; last > head && len(s.events) > 0; last-- {
		s.remove(last)
		s.events = s.events[:len(s.events)-1]
	}
}

func (s *ids) remove(position int64) {
	e := s.events[position-s.first]
	if s.byPlace[e.place] == position {
		delete(s.byPlace, e.place)
	}
	if s.byID[e.id] == position {
		delete(s.byID, e.id)
	}
}

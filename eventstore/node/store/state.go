package store

import (
	"slices"

	"github.com/google/uuid"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// statesHeld bounds the cache of stream states. It must exceed the streams
	// of two full groups by far: a state in flight must never be evicted.
	statesHeld = 32 * 1024
	// recentHeld bounds the event ids remembered per stream. Resends with an
	// expected revision look further back in Postgres; those with Any don't.
	recentHeld = 32
)

// identity is an event's id and where it was written.
type identity struct {
	id       uuid.UUID
	position int64
}

// state is the writer's knowledge of one stream. It is ahead of Postgres by the
// groups in flight; if one of them fails it is dropped.
type state struct {
	last   int64      // last revision; NoStream; tombstoned
	recent []identity // of the last len(recent) revisions, oldest first
	meta   metadata   // of a metadata stream: the content of its last event
}

// appendEvent adds an event behind the last one.
func (s *state) appendEvent(id uuid.UUID, position int64) {
	s.last++
	s.recent = append(s.recent, identity{id, position})
}

// identitiesAt returns the identities of the revisions from..to as far as remembered.
func (s *state) identitiesAt(from, to int64) ([]identity, bool) {
	oldest := s.last - int64(len(s.recent)) + 1
	if s.last == tombstoned || from < oldest || to > s.last {
		return nil, false
	}
	return s.recent[from-oldest : to-oldest+1], true
}

// findID returns the revision at which a remembered event was first written.
func (s *state) findID(id uuid.UUID) (identity, int64, bool) {
	for i, e := range s.recent {
		if e.id == id {
			return e, s.last - int64(len(s.recent)-1-i), true
		}
	}
	return identity{}, 0, false
}

// trimIDs forgets old ids, except those that are not committed yet: these are in
// memory only.
func (s *state) trimIDs(committed int64) {
	if len(s.recent) <= 2*recentHeld {
		return
	}
	drop := len(s.recent) - recentHeld
	if s.recent[drop-1].position <= committed {
		s.recent = slices.Clone(s.recent[drop:])
	}
}

// states is the writer's bounded cache. Only the writer goroutine touches it.
type states struct {
	held *simplelru.LRU[string, *state]
}

func newStates() *states {
	held, err := simplelru.NewLRU[string, *state](statesHeld, nil)
	if err != nil { // only for a size below one
		panic(err)
	}
	return &states{held: held}
}

// missingFor names the states a batch needs and the cache lacks: those of its
// streams and of their companions.
func (c *states) missingFor(batch []*Write) []string {
	var names []string
	asked := map[string]bool{}
	need := func(name string) {
		if _, ok := c.held.Get(name); !ok && !asked[name] {
			asked[name] = true
			names = append(names, name)
		}
	}
	for _, w := range batch {
		need(w.stream)
		need(companion(w.stream))
	}
	return names
}

// canAssumeAbsent says that all of a batch's writes whose states are missing expect to begin
// their streams. Such streams are nearly always new.
func (c *states) canAssumeAbsent(batch []*Write, missing []string) bool {
	unknown := make(map[string]bool, len(missing))
	for _, name := range missing {
		unknown[name] = true
	}
	for _, w := range batch {
		if !unknown[w.stream] && !unknown[companion(w.stream)] {
			continue
		}
		if w.op != OpAppend || w.Expected != ExpectNoStream || len(w.events) == 0 || IsMetaStream(w.stream) {
			return false
		}
	}
	return true
}

func (c *states) get(name string) *state {
	st, ok := c.held.Get(name)
	if !ok { // all states of a batch are loaded before it is decided
		panic("no state for stream " + name)
	}
	return st
}

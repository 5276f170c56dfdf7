package store

import (
	"fmt"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// statesHeld bounds the cache of stream states: the streams of a group in flight and of the
// next one, each with its companion. A state in flight must never be evicted.
const statesHeld = 4 * groupLength

// state is the writer's knowledge of one stream. It is ahead of Postgres by the
// groups in flight; if one of them fails it is dropped.
type state struct {
	last int64    // last revision; NoStream; tombstoned
	meta metadata // of a metadata stream: the content of its last event
}

// states is the writer's bounded cache. Only the writer goroutine touches it.
type states struct {
	held *simplelru.LRU[string, *state]
}

func newStates() *states {
	held, _ := simplelru.NewLRU[string, *state](statesHeld, nil) // the size is positive
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

// pair gives the states of a stream and of its companion. All states of a batch are loaded
// before it is decided.
func (c *states) pair(stream string) (of, other *state, err error) {
	of, known := c.held.Get(stream)
	other, also := c.held.Get(companion(stream))
	if !known || !also {
		return nil, nil, fmt.Errorf("the state of stream %s was not loaded", stream)
	}
	return of, other, nil
}

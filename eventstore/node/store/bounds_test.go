package store

import (
	"testing"
)

// A state in flight must not be evicted: while a group commits, the next one is decided.
func TestTheStatesOfTwoGroupsAreHeld(t *testing.T) {
	t.Parallel()
	w := &writer{queue: make(chan *Write, 2*groupLength)}
	arrive := func(n int) {
		for range n {
			w.queue <- NewWrite(t.Context(), OpAppend, "s", ExpectAny)
		}
	}
	g := &group{}
	for arrived := groupLength - 1; !g.full(); arrived = groupLength {
		arrive(arrived)
		g.members = append(g.members, w.collectBatch(<-w.queue, groupLength-g.length())...)
	}
	if states := 2 * len(g.members); 2*states > statesHeld {
		t.Fatalf("a group may need %d states, and %d are held", states, statesHeld)
	}
}

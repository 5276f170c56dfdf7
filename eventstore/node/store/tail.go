package store

import "sync"

const (
	tailEvents = 4096
	tailBytes  = 8 << 20
)

// tail is the ring of the latest committed events. The writer publishes whole
// groups; subscriptions read from it at their own pace. It is bounded in
// events and bytes: a reader of older events is told to read a page.
type tail struct {
	mu      sync.Mutex
	ring    []*Record // position p is at p % len
	first   int64     // the oldest position held; head+1 when empty
	head    int64     // the last committed position
	bytes   int
	changed chan struct{} // closed at the next publish
}

func newTail(head int64) *tail {
	return &tail{ring: make([]*Record, tailEvents), first: head + 1, head: head, changed: make(chan struct{})}
}

// publish makes a committed group visible. Positions continue the head.
func (t *tail) publish(group []*Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range group {
		if r.Position-t.first >= int64(len(t.ring)) {
			t.dropOldest()
		}
		t.ring[r.Position%int64(len(t.ring))] = r
		t.bytes += r.size()
		t.head = r.Position
	}
	for t.bytes > tailBytes && t.first <= t.head {
		t.dropOldest()
	}
	t.wake()
}

// reset forgets everything and moves to a head found in Postgres: after a
// reconnect there may be events there that were never published.
func (t *tail) reset(head int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.ring)
	t.first, t.head, t.bytes = head+1, head, 0
	t.wake()
}

func (t *tail) dropOldest() {
	i := t.first % int64(len(t.ring))
	t.bytes -= t.ring[i].size()
	t.ring[i] = nil
	t.first++
}

func (t *tail) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// After copies events behind position into buf. behind means the next event
// is not in the ring any more. With neither events nor behind the reader is at
// the head, and changed tells when that is no longer so.
func (t *tail) After(position int64, buf []*Record) (n int, behind bool, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if position >= t.head {
		return 0, false, t.changed
	}
	if position+1 < t.first {
		return 0, true, nil
	}
	for p := position + 1; p <= t.head && n < len(buf); p++ {
		buf[n] = t.ring[p%int64(len(t.ring))]
		n++
	}
	return n, false, nil
}

func (t *tail) Head() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head
}

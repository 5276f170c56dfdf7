package store

import "sync"

const (
	tailEvents = 4096
	tailBytes  = 8 << 20
)

// tail holds the latest committed events. The writer publishes whole
// groups; subscriptions read from it at their own pace. It is bounded in
// events and bytes: a reader of older events is told to read a page.
type tail struct {
	mu      sync.Mutex
	events  []*Record // the oldest first, up to head
	head    int64     // the last committed position
	bytes   int
	changed chan struct{} // closed at the next publish
}

func newTail(head int64) *tail {
	return &tail{head: head, changed: make(chan struct{})}
}

// publish makes a committed group visible. Positions continue the head.
func (t *tail) publish(group []*Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range group {
		t.events = append(t.events, r)
		t.bytes += r.Size()
		t.head = r.Position
	}
	for len(t.events) > tailEvents || t.bytes > tailBytes {
		t.bytes -= t.events[0].Size()
		t.events[0] = nil // frees the event's memory
		t.events = t.events[1:]
	}
	t.wake()
}

// reset forgets everything and moves to a head found in Postgres: after a
// reconnect there may be events there that were never published.
func (t *tail) reset(head int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events, t.head, t.bytes = nil, head, 0
	t.wake()
}

func (t *tail) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// After copies events behind position into buf. behind means that the next event
// is not held any more. With neither events nor behind the reader is at the head,
// and changed is closed when the head moves.
func (t *tail) After(position int64, buf []*Record) (n int, behind bool, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if position >= t.head {
		return 0, false, t.changed
	}
	first := t.head - int64(len(t.events)) // the position before the oldest event
	if position < first {
		return 0, true, nil
	}
	return copy(buf, t.events[position-first:]), false, nil
}

func (t *tail) Head() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head
}

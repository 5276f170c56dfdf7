package eventstore

import (
	"sort"

	"humanqa/domain"
)

const (
	ringEvents = 4096
	ringBytes  = 16 << 20
)

// Checkpoint is the position that a consumer has read up to: every event up to and
// including Position, or none when Start.
type Checkpoint struct {
	Position domain.Position
	Start    bool // nothing read yet; Position means nothing
}

// At is the checkpoint of a reader that has read everything up to p.
func At(p domain.Position) Checkpoint { return Checkpoint{Position: p} }

// isBefore says that a has read less than b.
func (a Checkpoint) isBefore(b Checkpoint) bool {
	switch {
	case a.Start || b.Start:
		return a.Start && !b.Start
	}
	return a.Position.Compare(b.Position) < 0
}

// slot is one event of the ring, or why it could not be decoded.
type slot struct {
	event    domain.Recorded
	failed   *DecodeError
	position domain.Position
	size     int
}

// ring holds the newest events of the log without a hole: all that lie behind
// lower, up to and including head. System events take no slot, but move head.
// It is not safe for concurrent use; Feed locks it.
type ring struct {
	slots []slot // the oldest first
	bytes int

	maxEvents, maxBytes int

	lower, head Checkpoint
}

func newRing(at Checkpoint, maxEvents, maxBytes int) *ring {
	return &ring{maxEvents: maxEvents, maxBytes: maxBytes, lower: at, head: at}
}

// pushSlot appends an event behind head and drops the oldest ones as needed.
func (r *ring) pushSlot(s slot) {
	for len(r.slots) == r.maxEvents || len(r.slots) > 0 && r.bytes+s.size > r.maxBytes {
		r.dropOldest()
	}
	r.slots = append(r.slots, s)
	r.bytes += s.size
	r.head = At(s.position)
}

// moveHead moves head past an event that takes no slot.
func (r *ring) moveHead(p domain.Position) { r.head = At(p) }

func (r *ring) dropOldest() {
	r.lower = At(r.slots[0].position)
	r.bytes -= r.slots[0].size
	r.slots[0] = slot{} // frees the event's memory
	r.slots = r.slots[1:]
}

// covers says that the ring holds every event between the checkpoint and head.
func (r *ring) covers(after Checkpoint) bool { return !after.isBefore(r.lower) }

// pageAfter gives up to limit events behind the checkpoint, which the ring covers and
// which lies before head. It ends before an event that could not be decoded,
// and fails if that one comes first.
func (r *ring) pageAfter(after Checkpoint, limit int) (Page, error) {
	from := sort.Search(len(r.slots), func(i int) bool { return after.isBefore(At(r.slots[i].position)) })
	n := min(limit, len(r.slots)-from)
	p := Page{Events: make([]domain.Recorded, 0, n), Next: after.Position}
	for i, s := range r.slots[from : from+n] {
		if s.failed != nil {
			if i == 0 {
				return Page{}, s.failed
			}
			return p, nil
		}
		p.Events = append(p.Events, s.event)
		p.Next = s.position
	}
	if from+n == len(r.slots) {
		p.Next = r.head.Position // past system events at the end
		p.Live = true
	}
	return p, nil
}

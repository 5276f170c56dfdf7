package eventstore

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"humanqa/domain"
	"humanqa/internal/testing/must"
)

func pos(n int) domain.Position { return domain.Position{Commit: uint64(n), Prepare: uint64(n)} }

// Whatever goes through the ring: a checkpoint it covers gets exactly the
// events behind it, and it covers everything down to its lower bound.
func TestTheRingServesExactlyWhatIsBehindACheckpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := rapid.IntRange(0, 3).Draw(t, "begin")
		start := Checkpoint{Position: pos(begin), Start: begin == 0}
		r := newRing(start, rapid.IntRange(1, 8).Draw(t, "events"), rapid.IntRange(1, 40).Draw(t, "bytes"))
		events := map[int]bool{}
		head := begin
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			head++
			if rapid.Bool().Draw(t, "system") {
				r.moveHead(pos(head))
				continue
			}
			events[head] = true
			r.pushSlot(slot{event: domain.Recorded{Position: pos(head)}, position: pos(head), size: rapid.IntRange(1, 20).Draw(t, "size")})
		}
		if len(r.slots) > r.maxEvents || len(r.slots) > 1 && r.bytes > r.maxBytes {
			t.Fatalf("the ring holds %d events, %d bytes", len(r.slots), r.bytes)
		}
		for at := begin; at < head; at++ {
			after := Checkpoint{Position: pos(at), Start: at == 0}
			if !r.covers(after) {
				if !after.isBefore(r.lower) {
					t.Fatalf("%d is not covered above %+v", at, r.lower)
				}
				continue
			}
			limit := rapid.IntRange(1, 10).Draw(t, "limit")
			page, err := r.pageAfter(after, limit)
			must.NoError(t, err)
			var want []domain.Position
			last := head
			for n := at + 1; n <= head; n++ {
				if !events[n] {
					continue
				}
				if len(want) == limit {
					last = int(want[limit-1].Commit)
					break
				}
				want = append(want, pos(n))
			}
			var got []domain.Position
			for _, e := range page.Events {
				got = append(got, e.Position)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) || page.Next != pos(last) || page.Live != (last == head) {
				t.Fatalf("behind %d: %v up to %s, live %t; want %v up to %d", at, got, page.Next, page.Live, want, last)
			}
		}
	})
}

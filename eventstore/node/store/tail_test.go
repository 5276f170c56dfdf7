package store

import (
	"testing"
)

func run(from, to int64, size int) []*Record {
	var out []*Record
	for p := from; p <= to; p++ {
		out = append(out, &Record{Position: p, Data: make([]byte, size)})
	}
	return out
}

// positionsAfter reads the tail behind a position to its end.
func positionsAfter(t *testing.T, tl *tail, position int64) (n int, behind bool) {
	t.Helper()
	var batch [100]*Record
	for {
		got, behind, _ := tl.After(position, batch[:])
		if got == 0 {
			return n, behind
		}
		for _, r := range batch[:got] {
			if r.Position != position+1 {
				t.Fatalf("position %d after %d", r.Position, position)
			}
			position = r.Position
			n++
		}
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	t.Run("delivers in order from any place it holds", func(t *testing.T) {
		t.Parallel()
		tl := newTail(10)
		tl.publish(run(11, 200, 1))
		tl.publish(run(201, 300, 1))
		for _, from := range []int64{10, 11, 150, 299, 300} {
			if n, behind := positionsAfter(t, tl, from); n != int(300-from) || behind {
				t.Fatalf("from %d: got %d, behind %v", from, n, behind)
			}
		}
	})
	t.Run("tells who asks for something older", func(t *testing.T) {
		t.Parallel()
		tl := newTail(10)
		if n, behind := positionsAfter(t, tl, 9); n != 0 || !behind {
			t.Fatalf("got %d, behind %v", n, behind)
		}
	})
	t.Run("holds a bounded number of events", func(t *testing.T) {
		t.Parallel()
		tl := newTail(0)
		for p := int64(1); p <= 3*tailEvents; p += 1000 {
			tl.publish(run(p, p+999, 1))
		}
		head := tl.Head()
		if n, behind := positionsAfter(t, tl, head-tailEvents); n != tailEvents || behind {
			t.Fatalf("got %d, behind %v", n, behind)
		}
		if _, behind := positionsAfter(t, tl, head-tailEvents-1); !behind {
			t.Fatal("it holds more than it may")
		}
	})
	t.Run("holds a bounded number of bytes", func(t *testing.T) {
		t.Parallel()
		tl := newTail(0)
		tl.publish(run(1, 100, 1<<20))
		if tl.bytes > tailBytes {
			t.Fatalf("it holds %d bytes", tl.bytes)
		}
		if n, behind := positionsAfter(t, tl, tl.head-int64(len(tl.events))); n == 0 || n > 16 || behind {
			t.Fatalf("got %d, behind %v", n, behind)
		}
		// An event larger than the whole tail leaves it empty, not broken.
		tl.publish([]*Record{{Position: 101, Data: make([]byte, tailBytes+1)}})
		if n, behind := positionsAfter(t, tl, 100); n != 0 || !behind {
			t.Fatalf("got %d, behind %v", n, behind)
		}
		tl.publish(run(102, 102, 1))
		if n, behind := positionsAfter(t, tl, 101); n != 1 || behind {
			t.Fatalf("got %d, behind %v", n, behind)
		}
	})
	t.Run("wakes those who wait, also after a reset", func(t *testing.T) {
		t.Parallel()
		tl := newTail(5)
		_, _, changed := tl.After(5, nil)
		tl.publish(run(6, 6, 1))
		<-changed
		_, _, changed = tl.After(6, nil)
		tl.reset(9)
		<-changed
		if _, behind := positionsAfter(t, tl, 6); !behind {
			t.Fatal("what a reset skipped must be read from pages")
		}
	})
}

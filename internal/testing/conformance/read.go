package conformance

import (
	"math"
	"slices"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/internal/testing/must"
)

var readStreamTests = []test{
	{"forward from the start, limited", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(10)...)
		c.equal(revisions(c.read(c.stream("a"), esdb.ReadStreamOptions{}, 4)), sequence(0, 3))
	}},
	{"forward from a revision, inclusive", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(10)...)
		c.equal(revisions(c.read(c.stream("a"), esdb.ReadStreamOptions{From: esdb.Revision(7)}, 100)), sequence(7, 9))
	}},
	{"forward from behind the end finds nothing", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(3)...)
		c.equal(revisions(c.read(c.stream("a"), esdb.ReadStreamOptions{From: esdb.Revision(3)}, 100)), nil)
		c.nothing(drain(c.client.ReadStream(c.ctx, c.stream("a"), esdb.ReadStreamOptions{From: esdb.End{}}, 100)))
	}},
	{"backward from the end", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(10)...)
		o := esdb.ReadStreamOptions{Direction: esdb.Backwards, From: esdb.End{}}
		c.equal(revisions(c.read(c.stream("a"), o, 3)), sequence(9, 7))
		c.equal(revisions(c.read(c.stream("a"), o, 100)), sequence(9, 0))
	}},
	{"backward from a revision, inclusive", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(10)...)
		o := esdb.ReadStreamOptions{Direction: esdb.Backwards, From: esdb.Revision(4)}
		c.equal(revisions(c.read(c.stream("a"), o, 3)), sequence(4, 2))
	}},
	{"backward from the start is the first event", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(3)...)
		c.equal(revisions(c.read(c.stream("a"), esdb.ReadStreamOptions{Direction: esdb.Backwards}, 10)), sequence(0, 0))
	}},
	{"a stream that is not there is not found", func(c *scenario) {
		_, err := drain(c.client.ReadStream(c.ctx, c.stream("none"), esdb.ReadStreamOptions{}, 10))
		c.refused(err, esdb.ErrorCodeResourceNotFound)
		_, err = drain(c.client.ReadStream(c.ctx, c.stream("none"), esdb.ReadStreamOptions{Direction: esdb.Backwards, From: esdb.End{}}, 1))
		c.refused(err, esdb.ErrorCodeResourceNotFound)
	}},
	{"many events arrive in order, both ways", func(c *scenario) {
		const n = 3000
		all := events(n)
		for batch := range slices.Chunk(all, 500) {
			c.written(c.stream("a"), esdb.Any{}, batch...)
		}
		c.equal(c.revisionsOf(c.stream("a")), sequence(0, n-1))
		o := esdb.ReadStreamOptions{Direction: esdb.Backwards, From: esdb.End{}}
		c.equal(revisions(c.read(c.stream("a"), o, math.MaxUint64)), sequence(n-1, 0))
	}},
	{"big events arrive whole", func(c *scenario) {
		for i := range 12 {
			e := event(i)
			e.Data = make([]byte, 900<<10)
			e.Data[0] = byte(i)
			c.written(c.stream("a"), esdb.Any{}, e)
		}
		for i, e := range c.read(c.stream("a"), esdb.ReadStreamOptions{}, 100) {
			if len(e.Event.Data) != 900<<10 || e.Event.Data[0] != byte(i) {
				c.Fatalf("event %d came back different", i)
			}
		}
		c.equal(c.revisionsOf(c.stream("a")), sequence(0, 11))
	}},
}

// nothing expects that a read forwards from far behind the end finds no event; the
// original may also give an error.
func (c *scenario) nothing(got []*esdb.ResolvedEvent, err error) {
	c.Helper()
	if len(got) != 0 {
		c.Fatalf("got %d events, %v", len(got), err)
	}
}

// mine keeps the events of this test.
func (c *scenario) mine(all []*esdb.ResolvedEvent) []*esdb.ResolvedEvent {
	return slices.DeleteFunc(all, func(e *esdb.ResolvedEvent) bool {
		id := e.OriginalEvent().StreamID
		return len(id) < len(c.prefix()) || id[:len(c.prefix())] != c.prefix()
	})
}

func (c *scenario) readAll(o esdb.ReadAllOptions, count uint64) []*esdb.ResolvedEvent {
	c.Helper()
	out, err := drain(c.client.ReadAll(c.ctx, o, count))
	must.NoError(c, err)
	return out
}

func at(r *esdb.WriteResult) esdb.Position {
	return esdb.Position{Commit: r.CommitPosition, Prepare: r.PreparePosition}
}

var readAllTests = []test{
	{"forward from a position is inclusive", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		second := c.written(c.stream("b"), esdb.NoStream{}, event(1))
		c.written(c.stream("c"), esdb.NoStream{}, event(2))
		got := c.readAll(esdb.ReadAllOptions{From: at(second)}, 1)
		if len(got) != 1 || got[0].Event.StreamID != c.stream("b") {
			c.Fatalf("got %+v", got)
		}
		if mine := c.mine(c.readAll(esdb.ReadAllOptions{From: at(second)}, 1_000_000)); len(mine) != 2 {
			c.Fatalf("got %d events", len(mine))
		}
	}},
	{"backward from a position is exclusive", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		second := c.written(c.stream("b"), esdb.NoStream{}, event(1))
		got := c.readAll(esdb.ReadAllOptions{Direction: esdb.Backwards, From: at(second)}, 1_000_000)
		mine := c.mine(slices.Clone(got))
		if len(mine) != 1 || mine[0].Event.StreamID != c.stream("a") || position(got[0]).Commit >= second.CommitPosition {
			c.Fatalf("got %+v", mine)
		}
	}},
	{"from the start and from zero are the same", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		start := c.readAll(esdb.ReadAllOptions{}, 1)
		zero := c.readAll(esdb.ReadAllOptions{From: esdb.Position{}}, 1)
		if len(start) != 1 || len(zero) != 1 || start[0].Event.EventID != zero[0].Event.EventID {
			c.Fatalf("got %+v and %+v", start, zero)
		}
	}},
	{"positions are ordered both ways and name their event", func(c *scenario) {
		for i := range 20 {
			c.written(c.stream(string(rune('a'+i%3))), esdb.Any{}, event(i))
		}
		ordered := func(a, b *esdb.ResolvedEvent) int {
			return int(int64(position(a).Commit) - int64(position(b).Commit))
		}
		forward := c.readAll(esdb.ReadAllOptions{}, 1_000_000)
		if !slices.IsSortedFunc(forward, ordered) || len(c.mine(slices.Clone(forward))) != 20 {
			c.Fatal("forward is out of order or incomplete")
		}
		backward := c.readAll(esdb.ReadAllOptions{Direction: esdb.Backwards, From: esdb.End{}}, 1_000_000)
		slices.Reverse(backward)
		if !slices.IsSortedFunc(backward, ordered) || len(c.mine(slices.Clone(backward))) != 20 {
			c.Fatal("backward is out of order or incomplete")
		}
		one := c.mine(forward)[7]
		found := c.readAll(esdb.ReadAllOptions{From: position(one)}, 1)
		if len(found) != 1 || found[0].Event.EventID != one.Event.EventID || found[0].Commit == nil ||
			*found[0].Commit != position(one).Commit {
			c.Fatalf("got %+v, want %+v", found[0].Event, one.Event)
		}
	}},
	{"the count limits", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(5)...)
		for _, direction := range []esdb.Direction{esdb.Forwards, esdb.Backwards} {
			var from esdb.AllPosition = esdb.Start{}
			if direction == esdb.Backwards {
				from = esdb.End{}
			}
			if got := c.readAll(esdb.ReadAllOptions{Direction: direction, From: from}, 3); len(got) != 3 {
				c.Fatalf("got %d events", len(got))
			}
		}
	}},
	{"forward from beyond the end finds nothing", func(c *scenario) {
		last := c.written(c.stream("a"), esdb.NoStream{}, event(0))
		beyond := esdb.Position{Commit: last.CommitPosition + 1<<40, Prepare: last.PreparePosition + 1<<40}
		if got := c.readAll(esdb.ReadAllOptions{From: beyond}, 10); len(got) != 0 {
			c.Fatalf("got %d events", len(got))
		}
	}},
	{"forward from the end and backward from the start find nothing", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		if got := c.readAll(esdb.ReadAllOptions{Direction: esdb.Backwards, From: esdb.Start{}}, 10); len(got) != 0 {
			c.Fatalf("got %d events", len(got))
		}
		got, err := drain(c.client.ReadAll(c.ctx, esdb.ReadAllOptions{From: esdb.End{}}, 10))
		c.nothing(c.mine(got), err)
	}},
}

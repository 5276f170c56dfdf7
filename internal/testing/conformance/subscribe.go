package conformance

import (
	"fmt"
	"slices"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"humanqa/internal/testing/must"
)

// heard is what a subscription delivered, in order: events, "caught up" and
// checkpoints. One that is dropped as too slow while live, as the original may do
// at any time, is made anew behind the last event.
type heard struct {
	c       *scenario
	sub     *esdb.Subscription
	again   func(after *esdb.ResolvedEvent) (*esdb.Subscription, error)
	latest  *esdb.ResolvedEvent
	arrived int // events so far
	// checkpoints counts those seen so far, last is the latest, and before are
	// the events that had arrived by then.
	checkpoints int
	last        esdb.Position
	before      int
}

func (c *scenario) subscribe(stream string, from esdb.StreamPosition) *heard {
	c.Helper()
	return c.listen(func(after *esdb.ResolvedEvent) (*esdb.Subscription, error) {
		if after != nil {
			from = esdb.Revision(after.OriginalEvent().EventNumber)
		}
		return c.client.SubscribeToStream(c.ctx, stream, esdb.SubscribeToStreamOptions{From: from})
	})
}

func (c *scenario) subscribeAll(o esdb.SubscribeToAllOptions) *heard {
	c.Helper()
	return c.listen(func(after *esdb.ResolvedEvent) (*esdb.Subscription, error) {
		if after != nil {
			o.From = position(after)
		}
		return c.client.SubscribeToAll(c.ctx, o)
	})
}

func (c *scenario) listen(again func(*esdb.ResolvedEvent) (*esdb.Subscription, error)) *heard {
	c.Helper()
	h := &heard{c: c, again: again}
	h.open()
	c.Cleanup(func() { _ = h.sub.Close() }) // never fails
	return h
}

func (h *heard) open() {
	h.c.Helper()
	sub, err := h.again(h.latest)
	must.NoError(h.c, err)
	h.sub, h.last = sub, esdb.Position{}
}

// next is the next event or caught-up; checkpoints are noted in passing.
func (h *heard) next() (e *esdb.ResolvedEvent, caughtUp bool) {
	h.c.Helper()
	for {
		got := h.sub.Recv()
		switch {
		case got.SubscriptionDropped != nil && status.Code(got.SubscriptionDropped.Error) == codes.Aborted:
			h.open()
		case got.SubscriptionDropped != nil:
			h.c.Fatalf("dropped: %v", got.SubscriptionDropped.Error)
		case got.CheckPointReached != nil:
			at := *got.CheckPointReached
			if at.Commit <= h.last.Commit && h.last != (esdb.Position{}) { // the first may be the start
				h.c.Fatalf("checkpoint %+v after %+v", at, h.last)
			}
			h.checkpoints++
			h.last, h.before = at, h.arrived
		case got.EventAppeared != nil:
			h.latest = got.EventAppeared
			h.arrived++
			return got.EventAppeared, false
		case got.CaughtUp != nil:
			return nil, true
		}
	}
}

// events takes the next n events and ignores when it caught up.
func (h *heard) events(n int) []*esdb.ResolvedEvent {
	h.c.Helper()
	var out []*esdb.ResolvedEvent
	for len(out) < n {
		if e, caughtUp := h.next(); !caughtUp {
			out = append(out, e)
		}
	}
	return out
}

// untilLive takes the events up to the first caught-up, which the original sends
// only for streams that exist.
func (h *heard) untilLive() []*esdb.ResolvedEvent {
	h.c.Helper()
	var out []*esdb.ResolvedEvent
	for {
		e, caughtUp := h.next()
		if caughtUp {
			return out
		}
		out = append(out, e)
	}
}

var streamSubscriptionTests = []test{
	{"from the start it catches up, then goes live", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(5)...)
		c.written(c.stream("b"), esdb.NoStream{}, event(0))
		h := c.subscribe(c.stream("a"), esdb.Start{})
		c.equal(revisions(h.untilLive()), sequence(0, 4))
		c.written(c.stream("b"), esdb.Any{}, event(1))
		c.written(c.stream("a"), esdb.Any{}, events(3)...)
		c.equal(revisions(h.events(3)), sequence(5, 7))
	}},
	{"from a revision it begins behind it", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(5)...)
		c.equal(revisions(c.subscribe(c.stream("a"), esdb.Revision(2)).untilLive()), sequence(3, 4))
		c.equal(revisions(c.subscribe(c.stream("a"), esdb.Revision(0)).untilLive()), sequence(1, 4))
	}},
	{"from the end it delivers only what is new", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(5)...)
		h := c.subscribe(c.stream("a"), esdb.End{})
		c.equal(revisions(h.untilLive()), nil)
		c.written(c.stream("a"), esdb.Any{}, event(5))
		c.equal(revisions(h.events(1)), sequence(5, 5))
	}},
	{"a stream may be subscribed to before it exists", func(c *scenario) {
		h := c.subscribe(c.stream("a"), esdb.Start{})
		c.written(c.stream("a"), esdb.NoStream{}, events(2)...)
		c.equal(revisions(h.events(2)), sequence(0, 1))
	}},
	{"a tombstone ends it", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		h := c.subscribe(c.stream("a"), esdb.Start{})
		h.untilLive()
		_, err := c.client.TombstoneStream(c.ctx, c.stream("a"), esdb.TombstoneStreamOptions{})
		must.NoError(c, err)
		for {
			got := h.sub.Recv()
			if got.SubscriptionDropped != nil {
				return
			}
			if e := got.EventAppeared; e != nil && e.Event.EventType != "$streamDeleted" {
				c.Fatalf("got %+v", e.Event)
			}
		}
	}},
	{"closing it on the client's side ends it", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		h := c.subscribe(c.stream("a"), esdb.Start{})
		h.untilLive()
		must.NoError(c, h.sub.Close())
		if got := h.sub.Recv(); got.SubscriptionDropped == nil {
			c.Fatalf("got %+v", got)
		}
	}},
}

var allSubscriptionTests = []test{
	{"from a position it begins behind it, and goes live", func(c *scenario) {
		first := c.written(c.stream("a"), esdb.NoStream{}, event(0))
		c.written(c.stream("b"), esdb.NoStream{}, event(1))
		h := c.subscribeAll(esdb.SubscribeToAllOptions{From: at(first)})
		caught := c.mine(h.untilLive())
		if len(caught) != 1 || caught[0].Event.StreamID != c.stream("b") {
			c.Fatalf("got %+v", caught)
		}
		live := c.written(c.stream("c"), esdb.NoStream{}, event(2))
		for {
			e := h.events(1)[0]
			if e.Event.StreamID == c.stream("c") {
				if position(e) != at(live) || e.Commit == nil || *e.Commit != live.CommitPosition {
					c.Fatalf("got %+v at %v, want %+v", position(e), e.Commit, live)
				}
				return
			}
		}
	}},
	{"from the end it delivers only what is new", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		h := c.subscribeAll(esdb.SubscribeToAllOptions{From: esdb.End{}})
		for {
			if _, caughtUp := h.next(); caughtUp {
				break
			}
		}
		c.written(c.stream("b"), esdb.NoStream{}, event(1))
		for {
			if mine := c.mine(h.events(1)); len(mine) == 1 {
				if mine[0].Event.StreamID != c.stream("b") {
					c.Fatalf("got %+v", mine[0].Event)
				}
				return
			}
		}
	}},
	{"from beyond the end it waits", func(c *scenario) {
		last := c.written(c.stream("a"), esdb.NoStream{}, event(0))
		beyond := esdb.Position{Commit: last.CommitPosition + 1<<40, Prepare: last.PreparePosition + 1<<40}
		h := c.subscribeAll(esdb.SubscribeToAllOptions{From: beyond})
		if mine := c.mine(h.untilLive()); len(mine) != 0 {
			c.Fatalf("got %d events", len(mine))
		}
	}},
	{"from the start it delivers everything", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(3)...)
		h := c.subscribeAll(esdb.SubscribeToAllOptions{From: esdb.Start{}})
		if mine := c.mine(h.untilLive()); len(mine) != 3 {
			c.Fatalf("got %d events", len(mine))
		}
	}},
	{"a filter by stream prefix", func(c *scenario) {
		c.filtered(&esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{c.stream("x"), c.stream("y")}},
			[]string{c.stream("x1"), c.stream("y2")}, []string{c.stream("z3")})
	}},
	{"a filter by stream regex", func(c *scenario) {
		c.filtered(&esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Regex: "^" + c.prefix() + "[xy][0-9]$"},
			[]string{c.stream("x1"), c.stream("y2")}, []string{c.stream("x"), c.stream("z3")})
	}},
	{"a filter by an expression as .NET reads it", func(c *scenario) {
		c.filtered(&esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Regex: "^" + c.prefix() + `(?!no)\w\d[b-z-[aeiou]]$`},
			[]string{c.stream("x1b"), c.stream("ä٣c")}, []string{c.stream("x1e"), c.stream("no1b")})
	}},
	{"a filter by event type prefix", func(c *scenario) {
		c.filteredByType(&esdb.SubscriptionFilter{Type: esdb.EventFilterType, Prefixes: []string{c.id + "-yes"}})
	}},
	{"a filter by event type regex", func(c *scenario) {
		c.filteredByType(&esdb.SubscriptionFilter{Type: esdb.EventFilterType, Regex: "^" + c.id + "-y.s$"})
	}},
	{"a filter without a search window", func(c *scenario) {
		c.written(c.stream("x"), esdb.NoStream{}, event(0))
		h := c.subscribeAll(esdb.SubscribeToAllOptions{From: esdb.Start{}, MaxSearchWindow: esdb.NoMaxSearchWindow,
			Filter: &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{c.stream("x")}}})
		if got := h.untilLive(); len(got) != 1 {
			c.Fatalf("got %d events", len(got))
		}
	}},
	{"checkpoints tell how far a filter has searched", func(c *scenario) {
		var last *esdb.WriteResult
		for i := range 40 {
			last = c.written(c.stream("other"), esdb.Any{}, event(i))
		}
		h := c.subscribeAll(esdb.SubscribeToAllOptions{
			From: esdb.Start{}, MaxSearchWindow: 4, CheckpointInterval: 2,
			Filter: &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{c.stream("x")}},
		})
		if got := h.untilLive(); len(got) != 0 {
			c.Fatalf("got %d events", len(got))
		}
		// Live: after eight more events there must be another one.
		before := h.checkpoints
		for i := range 9 {
			c.written(c.stream("other"), esdb.Any{}, event(i))
		}
		c.written(c.stream("x"), esdb.Any{}, event(0))
		h.events(1)
		// The checkpoint may come after the caught-up message.
		if h.checkpoints == before || h.last.Commit < last.CommitPosition {
			c.Fatalf("%d checkpoints while live, the last one %+v, after %+v", h.checkpoints-before, h.last, last)
		}
	}},
	{"a checkpoint is a place to resume from", func(c *scenario) {
		for i := range 30 {
			c.written(c.stream(fmt.Sprintf("%c", 'x'+i%2)), esdb.Any{}, event(i))
		}
		filter := &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{c.stream("x")}}
		first := c.subscribeAll(esdb.SubscribeToAllOptions{From: esdb.Start{}, MaxSearchWindow: 4, Filter: filter})
		c.equal(revisions(first.untilLive()), sequence(0, 14))
		c.written(c.stream("x"), esdb.Any{}, event(99))
		second := c.subscribeAll(esdb.SubscribeToAllOptions{From: first.last, MaxSearchWindow: 4, Filter: filter})
		c.equal(revisions(second.events(16-first.before)), sequence(first.before, 15))
	}},
	{"system events can be left out", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		_, err := c.client.SetStreamMetadata(c.ctx, c.stream("a"), expecting(esdb.Any{}), esdb.StreamMetadata{})
		must.NoError(c, err)
		h := c.subscribeAll(esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: esdb.ExcludeSystemEventsFilter()})
		for _, e := range h.untilLive() {
			if e.Event.EventType[0] == '$' {
				c.Fatalf("got %+v", e.Event)
			}
		}
	}},
}

// filtered writes to all streams, before and after subscribing, and expects
// exactly the events of the wanted ones.
func (c *scenario) filtered(f *esdb.SubscriptionFilter, wanted, unwanted []string) {
	c.Helper()
	write := func() {
		for _, stream := range slices.Concat(unwanted, wanted) {
			c.written(stream, esdb.Any{}, event(0))
		}
	}
	write()
	h := c.subscribeAll(esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: f})
	check := func(got []*esdb.ResolvedEvent) {
		c.Helper()
		if len(got) != len(wanted) {
			c.Fatalf("got %d events, want %d", len(got), len(wanted))
		}
		for i, e := range got {
			if e.Event.StreamID != wanted[i] {
				c.Fatalf("got %s, want %s", e.Event.StreamID, wanted[i])
			}
		}
	}
	check(h.untilLive())
	write()
	check(h.events(len(wanted)))
}

func (c *scenario) filteredByType(f *esdb.SubscriptionFilter) {
	c.Helper()
	write := func() {
		for _, kind := range []string{"-no", "-yes", "-not-yes"} {
			e := event(0)
			e.EventType = c.id + kind
			c.written(c.stream("a"), esdb.Any{}, e)
		}
	}
	write()
	h := c.subscribeAll(esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: f})
	c.equal(revisions(h.untilLive()), sequence(1, 1))
	write()
	c.equal(revisions(h.events(1)), sequence(4, 4))
}

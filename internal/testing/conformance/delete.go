package conformance

import (
	"math"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/internal/testing/must"
)

func (c *scenario) remove(stream string, expected esdb.ExpectedRevision) error {
	_, err := c.client.DeleteStream(c.ctx, stream, esdb.DeleteStreamOptions{ExpectedRevision: expected})
	return err
}

func (c *scenario) tombstone(stream string, expected esdb.ExpectedRevision) error {
	_, err := c.client.TombstoneStream(c.ctx, stream, esdb.TombstoneStreamOptions{ExpectedRevision: expected})
	return err
}

func (c *scenario) notFound(stream string) {
	c.Helper()
	_, err := drain(c.client.ReadStream(c.ctx, stream, esdb.ReadStreamOptions{}, 10))
	c.refused(err, esdb.ErrorCodeResourceNotFound)
}

// fails expects a refusal for which the client has no code of its own.
func (c *scenario) fails(err error) {
	c.Helper()
	if err == nil {
		c.Fatal("it was accepted")
	}
}

var deleteTests = []test{
	{"a deleted stream is not found", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(3)...)
		must.NoError(c, c.remove(c.stream("a"), esdb.Revision(2)))
		c.notFound(c.stream("a"))
	}},
	{"its next write continues its revisions", func(c *scenario) {
		for i, expected := range []esdb.ExpectedRevision{esdb.Any{}, esdb.NoStream{}, esdb.Revision(2)} {
			stream := c.stream(string(rune('a' + i)))
			c.written(stream, esdb.NoStream{}, events(3)...)
			must.NoError(c, c.remove(stream, esdb.Any{}))
			if r := c.written(stream, expected, events(2)...); r.NextExpectedVersion != 4 {
				c.Fatalf("got %+v", r)
			}
			c.equal(c.revisionsOf(stream), sequence(3, 4))
			if r := c.written(stream, esdb.Revision(4), event(5)); r.NextExpectedVersion != 5 {
				c.Fatalf("got %+v", r)
			}
			c.equal(c.revisionsOf(stream), sequence(3, 5))
		}
	}},
	{"an append without events revives it", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(3)...)
		must.NoError(c, c.remove(c.stream("a"), esdb.Any{}))
		if r := c.written(c.stream("a"), esdb.Any{}); r.CommitPosition == 0 {
			c.Fatalf("got %+v", r)
		}
		c.equal(c.revisionsOf(c.stream("a")), nil)
		c.written(c.stream("a"), esdb.Revision(2), event(3))
		c.equal(c.revisionsOf(c.stream("a")), sequence(3, 3))
	}},
	{"stream exists is refused on a deleted stream", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		must.NoError(c, c.remove(c.stream("a"), esdb.Any{}))
		_, err := c.client.AppendToStream(c.ctx, c.stream("a"), expecting(esdb.StreamExists{}), event(1))
		c.refused(err, esdb.ErrorCodeStreamDeleted)
	}},
	{"deleting checks the expected revision", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(3)...)
		c.fails(c.remove(c.stream("a"), esdb.Revision(1)))
		c.fails(c.remove(c.stream("a"), esdb.Revision(9)))
		c.fails(c.remove(c.stream("a"), esdb.NoStream{}))
		c.equal(c.revisionsOf(c.stream("a")), sequence(0, 2))
		must.NoError(c, c.remove(c.stream("a"), esdb.StreamExists{}))
	}},
	{"a stream that never was can't be deleted", func(c *scenario) {
		c.fails(c.remove(c.stream("a"), esdb.Any{}))
	}},
	{"deleting writes the stream's metadata", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		must.NoError(c, c.remove(c.stream("a"), esdb.Any{}))
		c.equal(c.revisionsOf("$$"+c.stream("a")), sequence(0, 0))
		c.written(c.stream("a"), esdb.NoStream{}, event(1))
		got, err := c.client.GetStreamMetadata(c.ctx, c.stream("a"), esdb.ReadStreamOptions{})
		must.NoError(c, err)
		if got.TruncateBefore() == nil || *got.TruncateBefore() != 1 {
			c.Fatalf("got %+v", got)
		}
	}},
	{"metadata for a deleted stream revives it", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(3)...)
		must.NoError(c, c.remove(c.stream("a"), esdb.Any{}))
		c.setMetadata(c.stream("a"), func(m *esdb.StreamMetadata) { m.SetMaxCount(9) })
		c.equal(c.revisionsOf(c.stream("a")), nil)
		got, err := c.client.GetStreamMetadata(c.ctx, c.stream("a"), esdb.ReadStreamOptions{})
		must.NoError(c, err)
		if got.TruncateBefore() == nil || *got.TruncateBefore() != 3 || got.MaxCount() == nil || *got.MaxCount() != 9 {
			c.Fatalf("got %+v", got)
		}
	}},
	{"a tombstoned stream is gone for good", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(3)...)
		must.NoError(c, c.tombstone(c.stream("a"), esdb.Revision(2)))
		_, err := drain(c.client.ReadStream(c.ctx, c.stream("a"), esdb.ReadStreamOptions{}, 10))
		c.refused(err, esdb.ErrorCodeStreamDeleted)
		for _, expected := range []esdb.ExpectedRevision{esdb.Any{}, esdb.NoStream{}, esdb.StreamExists{}, esdb.Revision(2)} {
			_, err := c.client.AppendToStream(c.ctx, c.stream("a"), expecting(expected), event(3))
			c.refused(err, esdb.ErrorCodeStreamDeleted)
		}
		c.refused(c.tombstone(c.stream("a"), esdb.Any{}), esdb.ErrorCodeStreamDeleted)
		c.refused(c.remove(c.stream("a"), esdb.Any{}), esdb.ErrorCodeStreamDeleted)
		// The original still takes its metadata, without an effect.
		_, err = c.client.SetStreamMetadata(c.ctx, c.stream("a"), expecting(esdb.Any{}), esdb.StreamMetadata{})
		if err != nil {
			c.refused(err, esdb.ErrorCodeStreamDeleted)
		}
		_, err = drain(c.client.ReadStream(c.ctx, c.stream("a"), esdb.ReadStreamOptions{}, 10))
		c.refused(err, esdb.ErrorCodeStreamDeleted)
	}},
	{"a tombstone checks the expected revision", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(3)...)
		c.fails(c.tombstone(c.stream("a"), esdb.Revision(1)))
		c.equal(c.revisionsOf(c.stream("a")), sequence(0, 2))
	}},
	{"a tombstone needs no stream and no life", func(c *scenario) {
		must.NoError(c, c.tombstone(c.stream("never"), esdb.NoStream{}))
		c.written(c.stream("deleted"), esdb.NoStream{}, event(0))
		must.NoError(c, c.remove(c.stream("deleted"), esdb.Any{}))
		must.NoError(c, c.tombstone(c.stream("deleted"), esdb.Any{}))
		_, err := drain(c.client.ReadStream(c.ctx, c.stream("deleted"), esdb.ReadStreamOptions{}, 1))
		c.refused(err, esdb.ErrorCodeStreamDeleted)
	}},
	{"a tombstone stands in $all", func(c *scenario) {
		first := c.written(c.stream("a"), esdb.NoStream{}, event(0))
		must.NoError(c, c.tombstone(c.stream("a"), esdb.Any{}))
		mine := c.mine(c.readAll(esdb.ReadAllOptions{From: at(first)}, 1_000_000))
		if len(mine) != 2 || mine[1].Event.EventType != "$streamDeleted" || mine[1].Event.EventNumber != math.MaxInt64 {
			c.Fatalf("got %+v", mine)
		}
	}},
}

var linkTests = []test{
	{"a link is followed when asked", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(2)...)
		link := esdb.EventData{EventType: "$>", Data: []byte("1@" + c.stream("a"))}
		written := c.written(c.stream("links"), esdb.NoStream{}, link)

		plain := c.read(c.stream("links"), esdb.ReadStreamOptions{}, 1)[0]
		if plain.Link != nil || plain.Event.EventType != "$>" {
			c.Fatalf("got %+v", plain)
		}
		followed := c.read(c.stream("links"), esdb.ReadStreamOptions{ResolveLinkTos: true}, 1)[0]
		if followed.Link == nil || followed.Link.StreamID != c.stream("links") || followed.Event.StreamID != c.stream("a") ||
			followed.Event.EventNumber != 1 {
			c.Fatalf("got %+v", followed)
		}
		ofAll := c.readAll(esdb.ReadAllOptions{From: at(written), ResolveLinkTos: true}, 1)[0]
		if ofAll.Link == nil || ofAll.Event.StreamID != c.stream("a") || *ofAll.Commit != written.CommitPosition {
			c.Fatalf("got %+v", ofAll)
		}
	}},
	{"a link to revision -1 is to the last event", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(3)...)
		c.written(c.stream("links"), esdb.NoStream{}, esdb.EventData{EventType: "$>", Data: []byte("-1@" + c.stream("a"))})
		got := c.read(c.stream("links"), esdb.ReadStreamOptions{ResolveLinkTos: true}, 1)[0]
		if got.Event == nil || got.Event.StreamID != c.stream("a") || got.Event.EventNumber != 2 {
			c.Fatalf("got %+v", got)
		}
	}},
	{"a link to nowhere comes without its event", func(c *scenario) {
		c.written(c.stream("gone"), esdb.NoStream{}, event(0))
		must.NoError(c, c.remove(c.stream("gone"), esdb.Any{}))
		for i, target := range []string{
			"0@" + c.stream("none"), "0@" + c.stream("gone"), " +0 @" + c.stream("none"), "-2@" + c.stream("gone"), "0@a\x00b", "0@", "0",
		} {
			c.written(c.stream("links"), expectedBefore(i), esdb.EventData{EventType: "$>", Data: []byte(target)})
		}
		for _, e := range c.read(c.stream("links"), esdb.ReadStreamOptions{ResolveLinkTos: true}, 10) {
			if e.Link == nil || e.Event != nil {
				c.Fatalf("got %+v", e)
			}
		}
	}},
	{"what has no number is no link", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		for i, data := range []string{"", "a", "@" + c.stream("a"), "x@" + c.stream("a"), "9223372036854775808@" + c.stream("a")} {
			c.written(c.stream("links"), expectedBefore(i), esdb.EventData{EventType: "$>", Data: []byte(data)})
		}
		got := c.read(c.stream("links"), esdb.ReadStreamOptions{ResolveLinkTos: true}, 10)
		if len(got) != 5 {
			c.Fatalf("got %d events", len(got))
		}
		for _, e := range got {
			if e.Link != nil || e.Event == nil || e.Event.EventType != "$>" || e.Event.StreamID != c.stream("links") {
				c.Fatalf("got %+v", e)
			}
		}
	}},
}

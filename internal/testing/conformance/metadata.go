package conformance

import (
	"slices"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

func (c *scenario) setMetadata(stream string, set func(*esdb.StreamMetadata)) {
	c.Helper()
	var m esdb.StreamMetadata
	set(&m)
	_, err := c.client.SetStreamMetadata(c.ctx, stream, expecting(esdb.Any{}), m)
	must.NoError(c, err)
}

var metadataTests = []test{
	{"it comes back", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		c.setMetadata(c.stream("a"), func(m *esdb.StreamMetadata) {
			m.SetMaxCount(7)
			m.SetMaxAge(90 * time.Second)
			m.AddCustomProperty("owner", "qa")
		})
		c.setMetadata(c.stream("a"), func(m *esdb.StreamMetadata) {
			m.SetMaxCount(8)
			m.AddCustomProperty("owner", "qa")
		})
		got, err := c.client.GetStreamMetadata(c.ctx, c.stream("a"), esdb.ReadStreamOptions{})
		must.NoError(c, err)
		if got.MaxCount() == nil || *got.MaxCount() != 8 || got.MaxAge() != nil || got.CustomProperty("owner") != "qa" {
			c.Fatalf("got %+v", got)
		}
	}},
	{"its expected revision is its own stream's", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(4)...)
		_, err := c.client.SetStreamMetadata(c.ctx, c.stream("a"), expecting(esdb.Revision(3)), esdb.StreamMetadata{})
		c.refused(err, esdb.ErrorCodeWrongExpectedVersion)
		_, err = c.client.SetStreamMetadata(c.ctx, c.stream("a"), expecting(esdb.NoStream{}), esdb.StreamMetadata{})
		must.NoError(c, err)
	}},
	{"only its latest event is read", func(c *scenario) {
		for i := range 3 {
			c.setMetadata(c.stream("a"), func(m *esdb.StreamMetadata) { m.SetMaxCount(uint64(i + 1)) })
		}
		c.equal(c.revisionsOf("$$"+c.stream("a")), sequence(2, 2))
	}},
	{"max count hides the older events", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(10)...)
		c.setMetadata(c.stream("a"), func(m *esdb.StreamMetadata) { m.SetMaxCount(3) })
		c.equal(c.revisionsOf(c.stream("a")), sequence(7, 9))
		o := esdb.ReadStreamOptions{Direction: esdb.Backwards, From: esdb.End{}}
		c.equal(revisions(c.read(c.stream("a"), o, 100)), sequence(9, 7))
		c.written(c.stream("a"), esdb.Revision(9), event(10))
		c.equal(c.revisionsOf(c.stream("a")), sequence(8, 10))
		c.equal(revisions(c.subscribe(c.stream("a"), esdb.Start{}).untilLive()), sequence(8, 10))
	}},
	{"a number out of range drops its field, and a value of a wrong kind drops all", func(c *scenario) {
		for i, raw := range []struct {
			metadata string
			first    int // of three revisions
		}{
			{`{"$tb": 2}`, 2},
			{`{"$MaxCount": 1}`, 0},
			{`{"$maxCount": 0, "$tb": 2}`, 2},
			{`{"$maxCount": 1, "$tb": -1}`, 2},
			{`{"$tb": 2, "$maxAge": -1}`, 2},
			{`{"$tb": 2, "$cacheControl": 0}`, 2},
			{`{"$tb": 2, "$tempStream": true}`, 2},
			{`{"$tb": 2} and more`, 2},
			{`{"$tb": 2`, 0},
			{`{"$maxCount": 1, "$tb": "2"}`, 0},
			{`{"$maxCount": 1, "$tb": 2.5}`, 0},
			{`{"$maxCount": 1, "$tb": 9223372036854775808}`, 0},
			{`{"$tb": 2, "$cacheControl": null}`, 0},
			{`{"$tb": 2, "$tempStream": 1}`, 0},
			{`{"$tb": 2, "$acl": 1}`, 0},
			{`[1]`, 0},
		} {
			stream := c.stream(string(rune('a' + i)))
			c.written(stream, esdb.NoStream{}, events(3)...)
			m := event(0)
			m.EventType, m.Data = "$metadata", []byte(raw.metadata)
			c.written("$$"+stream, esdb.NoStream{}, m)
			if got := c.revisionsOf(stream); !slices.Equal(got, sequence(raw.first, 2)) {
				c.Errorf("%s: got revisions %v", raw.metadata, got)
			}
		}
	}},
	{"truncate before hides what is before", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(6)...)
		c.setMetadata(c.stream("a"), func(m *esdb.StreamMetadata) { m.SetTruncateBefore(4) })
		c.equal(c.revisionsOf(c.stream("a")), sequence(4, 5))
		c.equal(revisions(c.read(c.stream("a"), esdb.ReadStreamOptions{From: esdb.Revision(2)}, 1)), sequence(4, 4))
		o := esdb.ReadStreamOptions{Direction: esdb.Backwards, From: esdb.Revision(4)}
		c.equal(revisions(c.read(c.stream("a"), o, 100)), sequence(4, 4))
		c.setMetadata(c.stream("a"), func(*esdb.StreamMetadata) {})
		c.equal(c.revisionsOf(c.stream("a")), sequence(0, 5))
	}},
	{"truncating everything leaves an empty stream, not a missing one", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(2)...)
		c.setMetadata(c.stream("a"), func(m *esdb.StreamMetadata) { m.SetTruncateBefore(2) })
		c.equal(c.revisionsOf(c.stream("a")), nil)
		c.written(c.stream("a"), esdb.Revision(1), event(2))
		c.equal(c.revisionsOf(c.stream("a")), sequence(2, 2))
	}},
	{"max age hides what is older", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(2)...)
		c.setMetadata(c.stream("a"), func(m *esdb.StreamMetadata) { m.SetMaxAge(time.Hour) })
		c.equal(c.revisionsOf(c.stream("a")), sequence(0, 1))
		c.setMetadata(c.stream("a"), func(m *esdb.StreamMetadata) { m.SetMaxAge(time.Second) })
		eventually.True(c, "an age hides the events", func() bool { return len(c.revisionsOf(c.stream("a"))) == 0 })
	}},
	{"it may come before its stream", func(c *scenario) {
		c.setMetadata(c.stream("a"), func(m *esdb.StreamMetadata) { m.SetMaxCount(2) })
		c.written(c.stream("a"), esdb.NoStream{}, events(5)...)
		c.equal(c.revisionsOf(c.stream("a")), sequence(3, 4))
	}},
	{"with metadata alone a stream counts as existing", func(c *scenario) {
		c.setMetadata(c.stream("a"), func(m *esdb.StreamMetadata) { m.SetMaxCount(2) })
		c.written(c.stream("a"), esdb.StreamExists{}, event(0))
	}},
	{"what is hidden stays in $all", func(c *scenario) {
		first := c.written(c.stream("a"), esdb.NoStream{}, events(5)...)
		c.setMetadata(c.stream("a"), func(m *esdb.StreamMetadata) { m.SetMaxCount(1) })
		got := c.readAll(esdb.ReadAllOptions{From: at(first)}, 1)
		if len(got) != 1 || got[0].Event.StreamID != c.stream("a") {
			c.Fatalf("got %+v", got)
		}
	}},
}

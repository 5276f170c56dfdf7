package conformance

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
)

var appendTests = []test{
	{"a new stream begins at revision zero", func(c *scenario) {
		result := c.written(c.stream("a"), esdb.NoStream{}, event(0))
		if result.NextExpectedVersion != 0 {
			c.Fatalf("got revision %d", result.NextExpectedVersion)
		}
	}},
	{"positions grow and belong to the last event", func(c *scenario) {
		first := c.written(c.stream("a"), esdb.NoStream{}, events(3)...)
		second := c.written(c.stream("b"), esdb.NoStream{}, event(0))
		if first.NextExpectedVersion != 2 || second.CommitPosition <= first.CommitPosition {
			c.Fatalf("got %+v, then %+v", first, second)
		}
		read := c.read(c.stream("a"), esdb.ReadStreamOptions{}, 10)
		if got := position(read[2]); got.Commit != first.CommitPosition || got.Prepare > got.Commit {
			c.Fatalf("the last event is at %+v, the append was answered %+v", got, first)
		}
	}},
	{"no stream is refused on an existing stream", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		c.conflicts(c.stream("a"), esdb.NoStream{}, event(1))
	}},
	{"stream exists is refused on a new stream", func(c *scenario) {
		c.conflicts(c.stream("a"), esdb.StreamExists{}, event(0))
	}},
	{"stream exists is accepted on an existing stream", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		if r := c.written(c.stream("a"), esdb.StreamExists{}, event(1)); r.NextExpectedVersion != 1 {
			c.Fatalf("got %+v", r)
		}
	}},
	{"any is accepted on both", func(c *scenario) {
		c.written(c.stream("a"), esdb.Any{}, event(0))
		c.written(c.stream("a"), esdb.Any{}, event(1))
		c.equal(c.revisionsOf(c.stream("a")), sequence(0, 1))
	}},
	{"the exact revision is accepted", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(2)...)
		if r := c.written(c.stream("a"), esdb.Revision(1), event(2)); r.NextExpectedVersion != 2 {
			c.Fatalf("got %+v", r)
		}
	}},
	{"a revision behind is refused", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(3)...)
		c.conflicts(c.stream("a"), esdb.Revision(0), event(9))
	}},
	{"a revision ahead is refused", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		c.conflicts(c.stream("a"), esdb.Revision(5), event(9))
		c.conflicts(c.stream("none"), esdb.Revision(0), event(9))
	}},
	{"a refused append leaves nothing behind", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		c.conflicts(c.stream("a"), esdb.Revision(7), events(3)...)
		c.equal(c.revisionsOf(c.stream("a")), sequence(0, 0))
	}},
	{"an append without events writes nothing", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(2)...)
		if r := c.written(c.stream("a"), esdb.Revision(1)); r.NextExpectedVersion != 1 {
			c.Fatalf("got %+v", r)
		}
		c.conflicts(c.stream("a"), esdb.Revision(0))
		c.equal(c.revisionsOf(c.stream("a")), sequence(0, 1))
	}},
	{"an event comes back as it was sent", func(c *scenario) {
		before := time.Now().Add(-time.Minute)
		sent := esdb.EventData{
			EventID: uuid.New(), EventType: "häppened 🎉", ContentType: esdb.ContentTypeBinary,
			Data: []byte{0, 1, 255, 0}, Metadata: []byte("\x00meta"),
		}
		name := c.stream("ströme/ü?&'\"\\")
		c.written(name, esdb.NoStream{}, sent)
		got := c.read(name, esdb.ReadStreamOptions{}, 1)[0].Event
		if got.EventID != sent.EventID || got.EventType != sent.EventType || got.StreamID != name || got.EventNumber != 0 ||
			got.ContentType != "application/octet-stream" || !bytes.Equal(got.Data, sent.Data) ||
			!bytes.Equal(got.UserMetadata, sent.Metadata) {
			c.Fatalf("got %+v", got)
		}
		if got.CreatedDate.Before(before) || got.CreatedDate.After(time.Now().Add(time.Minute)) {
			c.Fatalf("created at %s", got.CreatedDate)
		}
	}},
	{"json is remembered as json", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		if got := c.read(c.stream("a"), esdb.ReadStreamOptions{}, 1)[0].Event.ContentType; got != "application/json" {
			c.Fatalf("got %q", got)
		}
	}},
	{"an event of almost the maximum size is kept", func(c *scenario) {
		big := event(0)
		big.Data = bytes.Repeat([]byte("x"), 1<<20-1000)
		c.written(c.stream("a"), esdb.NoStream{}, big, event(1))
		got := c.read(c.stream("a"), esdb.ReadStreamOptions{}, 2)
		if len(got) != 2 || !bytes.Equal(got[0].Event.Data, big.Data) {
			c.Fatal("the big event came back different")
		}
	}},
	{"an append above the maximum size is refused whole", func(c *scenario) {
		half := events(2)
		for i := range half {
			half[i].Data = bytes.Repeat([]byte("x"), 9<<20)
		}
		_, err := c.client.AppendToStream(c.ctx, c.stream("a"), expecting(esdb.NoStream{}), half...)
		c.refused(err, esdb.ErrorCodeUnknown)
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
	}},
	{"an empty stream name is refused", func(c *scenario) {
		if _, err := c.client.AppendToStream(c.ctx, "", expecting(esdb.Any{}), event(0)); err == nil {
			c.Fatal("it was accepted")
		}
	}},
}

// The rule of repeats, exactly the original's: clients resend after an unknown
// outcome and rely on it.
var repeatTests = []test{
	{"the same ids at the same place are the same write", func(c *scenario) {
		e := events(3)
		first := c.written(c.stream("a"), esdb.NoStream{}, e...)
		c.written(c.stream("a"), esdb.Revision(2), event(3))
		again := c.written(c.stream("a"), esdb.NoStream{}, e...)
		if *again != *first {
			c.Fatalf("got %+v, want %+v", again, first)
		}
		c.equal(c.revisionsOf(c.stream("a")), sequence(0, 3))
	}},
	{"so they are behind an exact revision", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, event(0))
		e := events(2)
		first := c.written(c.stream("a"), esdb.Revision(0), e...)
		if again := c.written(c.stream("a"), esdb.Revision(0), e...); *again != *first {
			c.Fatalf("got %+v, want %+v", again, first)
		}
	}},
	{"a repeat from far back is still recognised", func(c *scenario) {
		e := events(150)
		for i := range e {
			c.written(c.stream("a"), expectedBefore(i), e[i])
		}
		if again := c.written(c.stream("a"), esdb.Revision(9), e[10:13]...); again.NextExpectedVersion != 12 {
			c.Fatalf("got %+v", again)
		}
		c.conflicts(c.stream("a"), esdb.Revision(9), e[11])
		c.equal(c.revisionsOf(c.stream("a")), sequence(0, 149))
	}},
	{"a part of a written append is a repeat too", func(c *scenario) {
		e := events(3)
		c.written(c.stream("a"), esdb.NoStream{}, e...)
		if again := c.written(c.stream("a"), esdb.NoStream{}, e[:2]...); again.NextExpectedVersion != 1 {
			c.Fatalf("got %+v", again)
		}
		if again := c.written(c.stream("a"), esdb.Revision(1), e[2]); again.NextExpectedVersion != 2 {
			c.Fatalf("got %+v", again)
		}
	}},
	{"more than was written is a conflict", func(c *scenario) {
		e := events(3)
		c.written(c.stream("a"), esdb.NoStream{}, e[:2]...)
		c.conflicts(c.stream("a"), esdb.NoStream{}, e...)
	}},
	{"other ids in part are a conflict", func(c *scenario) {
		e := events(2)
		c.written(c.stream("a"), esdb.NoStream{}, e...)
		c.conflicts(c.stream("a"), esdb.NoStream{}, e[0], event(9))
		c.conflicts(c.stream("a"), esdb.NoStream{}, event(9), e[1])
		c.conflicts(c.stream("a"), esdb.NoStream{}, e[1], e[0])
	}},
	{"at the current revision the same ids are written again", func(c *scenario) {
		e := event(0)
		c.written(c.stream("a"), esdb.NoStream{}, e)
		if r := c.written(c.stream("a"), esdb.Revision(0), e); r.NextExpectedVersion != 1 {
			c.Fatalf("got %+v", r)
		}
	}},
	{"with any the recent ids are recognised", func(c *scenario) {
		e := events(2)
		first := c.written(c.stream("a"), esdb.Any{}, e...)
		c.written(c.stream("a"), esdb.Any{}, event(9))
		if again := c.written(c.stream("a"), esdb.Any{}, e...); *again != *first {
			c.Fatalf("got %+v, want %+v", again, first)
		}
		if again := c.written(c.stream("a"), esdb.StreamExists{}, e...); *again != *first {
			c.Fatalf("got %+v, want %+v", again, first)
		}
		c.equal(c.revisionsOf(c.stream("a")), sequence(0, 2))
	}},
	{"with any equal ids are the first of them", func(c *scenario) {
		for _, expected := range []struct {
			revision    esdb.ExpectedRevision
			first, then uint64
		}{{esdb.Any{}, 5, 0}, {esdb.NoStream{}, 5, 5}} {
			six := slices.Repeat([]esdb.EventData{event(0)}, 6)
			stream := c.stream(fmt.Sprintf("%T", expected.revision))
			if r := c.written(stream, expected.revision, six...); r.NextExpectedVersion != expected.first {
				c.Fatalf("got %+v", r)
			}
			if r := c.written(stream, expected.revision, six...); r.NextExpectedVersion != expected.then {
				c.Fatalf("again: got %+v", r)
			}
		}
		six := slices.Repeat([]esdb.EventData{event(0)}, 6)
		c.written(c.stream("exists"), esdb.NoStream{}, event(1))
		c.written(c.stream("exists"), esdb.StreamExists{}, six...)
		if r := c.written(c.stream("exists"), esdb.StreamExists{}, six...); r.NextExpectedVersion != 1 {
			c.Fatalf("again: got %+v", r)
		}
	}},
	{"with any half a repeat is a conflict", func(c *scenario) {
		e := events(2)
		c.written(c.stream("a"), esdb.Any{}, e...)
		c.conflicts(c.stream("a"), esdb.Any{}, e[0], event(9))
	}},
	// The id belongs to the stream that took it first: repeats in another one are recognised
	// by the expected revision only.
	{"the same id in another stream is no repeat", func(c *scenario) {
		e := event(0)
		c.written(c.stream("a"), esdb.Any{}, e)
		for range 2 {
			c.written(c.stream("b"), esdb.NoStream{}, e)
		}
		c.equal(c.revisionsOf(c.stream("b")), sequence(0, 0))
		c.written(c.stream("b"), esdb.Any{}, e)
		c.equal(c.revisionsOf(c.stream("b")), sequence(0, 1))
	}},
}

// expectedBefore is the expected revision of event n of a stream.
func expectedBefore(n int) esdb.ExpectedRevision {
	if n == 0 {
		return esdb.NoStream{}
	}
	return esdb.Revision(uint64(n - 1))
}

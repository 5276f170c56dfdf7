package logtest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// Test checks a log against the contract of domain.Log and of the feed. Its streams
// are new ones. The log may hold others, but no other writer may write.
func Test(t *testing.T, log Log) {
	for _, c := range []struct {
		name string
		do   func(*contract)
	}{
		{"an append is read back as it was written", (*contract).readBack},
		{"a load begins at a revision", (*contract).loadFrom},
		{"a load ends with the first error of who reads", (*contract).loadEnds},
		{"the tail from the newest event of a type on", (*contract).tail},
		{"the expected revision decides", (*contract).expected},
		{"the same append again is one append", (*contract).repeated},
		{"of many writers at one revision one wins", (*contract).raced},
		{"what cannot be stored is refused whole", (*contract).refused},
		{"a follower sees every event once, in the order of the positions", (*contract).followed},
		{"a follower at the end waits for the next event, or for its own end", (*contract).waited},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.do(&contract{T: t, log: log, stream: domain.JobStream(uuid.NewString())})
		})
	}
}

type contract struct {
	*testing.T
	log    Log
	stream string
}

// note is an event that its text identifies.
func note(text string) domain.NewEvent {
	return domain.NewEvent{ID: uuid.New(), Event: &job.ItemChecked{ItemID: text}, Meta: domain.Metadata{
		CommandID: uuid.New(), CorrelationID: "request", CausationID: "cause", Actor: "checker:ann", AccountID: "acc",
		Time: time.Date(2026, 3, 1, 12, 0, 0, 123_000_000, time.UTC),
	}}
}

func notes(n int) (events []domain.NewEvent) {
	for i := range n {
		events = append(events, note(fmt.Sprint(i)))
	}
	return events
}

func (c *contract) append(expected domain.ExpectedRevision, events ...domain.NewEvent) domain.AppendResult {
	c.Helper()
	written, err := c.log.Append(c.Context(), c.stream, expected, events)
	must.NoError(c, err)
	return written
}

func (c *contract) load(from uint64) (events []domain.Recorded) {
	c.Helper()
	err := c.log.Load(c.Context(), c.stream, from, func(r domain.Recorded) error {
		events = append(events, r)
		return nil
	})
	must.NoError(c, err)
	return events
}

// holds expects exactly these events in the stream.
func (c *contract) holds(want ...domain.NewEvent) []domain.Recorded {
	c.Helper()
	got := c.load(0)
	if len(got) != len(want) {
		c.Fatalf("the stream holds %d events, want %d", len(got), len(want))
	}
	for i, r := range got {
		w := want[i]
		w.Meta.Schema = r.Meta.Schema // the codec sets it
		if r.ID != w.ID || r.Stream != c.stream || r.Revision != uint64(i) || r.Type != w.Event.EventType() ||
			r.Meta != w.Meta || !reflect.DeepEqual(r.Event, w.Event) {
			c.Errorf("event %d is %+v, want %+v", i, r, w)
		}
		if i > 0 && r.Position.Compare(got[i-1].Position) <= 0 {
			c.Errorf("event %d is at %s, behind the one at %s", i, r.Position, got[i-1].Position)
		}
	}
	return got
}

func (c *contract) readBack() {
	if events := c.load(0); events != nil {
		c.Fatalf("a stream that was never written holds %v", events)
	}
	events := notes(3)
	c.append(domain.NoStream, events[0])
	written := c.append(0, events[1:]...)
	got := c.holds(events...)
	if last := got[2]; written.Revision != 2 || written.Position != last.Position {
		c.Errorf("the append said %+v, the last event is %+v", written, last)
	}
	if got[0].Meta.Schema != eventstore.Version("job.item_checked") {
		c.Errorf("schema %d", got[0].Meta.Schema)
	}
}

func (c *contract) loadFrom() {
	c.append(domain.NoStream, notes(5)...)
	for from, want := range map[uint64]int{0: 5, 3: 2, 5: 0, 9: 0} {
		if got := c.load(from); len(got) != want || want > 0 && got[0].Revision != from {
			c.Errorf("from %d there are %v, want %d events", from, got, want)
		}
	}
}

func (c *contract) loadEnds() {
	c.append(domain.NoStream, notes(5)...)
	seen, enough := 0, errors.New("enough")
	err := c.log.Load(c.Context(), c.stream, 0, func(domain.Recorded) error {
		if seen++; seen == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || seen != 2 {
		c.Errorf("%v after %d events", err, seen)
	}
}

// tail is of more events than a node gives at once. Some tails end where a page of 64 does.
func (c *contract) tail() {
	most := 1000
	tail := func(first, last uint64) {
		c.Helper()
		events, ok, err := c.log.LoadTail(c.Context(), c.stream, "job.heartbeat", most)
		if err != nil || !ok || uint64(len(events)) != last+1-first {
			c.Errorf("%d events, %t, %v; want %d to %d", len(events), ok, err, first, last)
		}
		for i, e := range events {
			if e.Revision != first+uint64(i) || e.Event == nil {
				c.Errorf("event %d is %d, %s %v", i, e.Revision, e.Type, e.Event)
			}
		}
	}
	if events, ok, err := c.log.LoadTail(c.Context(), c.stream, "job.heartbeat", most); len(events) > 0 || !ok || err != nil {
		c.Errorf("no stream has the tail %v %t %v", events, ok, err)
	}
	c.append(domain.NoStream, notes(64)...)
	tail(0, 63)
	beat := note("")
	beat.Event = &job.Heartbeat{Token: 1}
	c.append(63, beat)
	tail(64, 64)
	c.append(64, notes(500)...)
	tail(64, 564)
	beat.ID = uuid.New()
	c.append(564, beat)
	tail(565, 565)
	c.append(565, notes(63)...)
	tail(565, 628)
	c.append(628, notes(87)...)
	most = 151
	tail(565, 715)
	most = 150
	if events, ok, err := c.log.LoadTail(c.Context(), c.stream, "job.heartbeat", most); len(events) > 0 || ok || err != nil {
		c.Errorf("a longer tail is %d events %t %v", len(events), ok, err)
	}
}

// wrong expects that another writer was first.
func (c *contract) wrong(expected domain.ExpectedRevision, events ...domain.NewEvent) {
	c.Helper()
	if _, err := c.log.Append(c.Context(), c.stream, expected, events); !errors.Is(err, domain.ErrWrongRevision) {
		c.Errorf("an append at %d: %v", expected, err)
	}
}

func (c *contract) expected() {
	c.wrong(0, note("no stream"))
	events := notes(2)
	c.append(domain.NoStream, events...)
	c.wrong(domain.NoStream, note("behind"))
	c.wrong(0, note("behind"), note("behind"))
	c.wrong(2, note("ahead"))
	c.holds(events...)
}

func (c *contract) repeated() {
	events := notes(4)
	c.append(domain.NoStream, events[:1]...)
	first := c.append(0, events[1:3]...)
	c.append(2, events[3])
	if again := c.append(0, events[1:3]...); again != first {
		c.Errorf("again it is %+v, it was %+v", again, first)
	}
	c.wrong(0, events[1], note("another"))
	c.wrong(0, note("another"), events[2])
	c.wrong(0, events[1], events[2], events[3], note("one more"))
	c.holds(events...)
}

func (c *contract) raced() {
	const writers = 8
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		wins []domain.NewEvent
	)
	start := make(chan struct{})
	for i := range writers {
		wg.Go(func() {
			e := note(fmt.Sprint(i))
			<-start
			_, err := c.log.Append(c.Context(), c.stream, domain.NoStream, []domain.NewEvent{e})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				wins = append(wins, e)
			} else if !errors.Is(err, domain.ErrWrongRevision) {
				c.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
	if len(wins) != 1 {
		c.Fatalf("%d writers won", len(wins))
	}
	c.holds(wins...)
}

func (c *contract) refused() {
	good, nameless := note("good"), note("without an id")
	nameless.ID = uuid.Nil
	strange := note("of a type nobody registered")
	strange.Event = Unknown("job.from_the_future")
	nul, noUTF8 := note("a\x00b"), note("a\xffb")
	for _, events := range [][]domain.NewEvent{{}, {nameless}, {good, nameless}, {strange}, {good, strange}, {nul}, {good, nul}, {noUTF8}} {
		if written, err := c.log.Append(c.Context(), c.stream, domain.NoStream, events); err == nil {
			c.Errorf("%v were written: %+v", events, written)
		}
	}
	c.holds()
}

// next reads a page, and fails if none comes.
func (c *contract) next(after eventstore.Checkpoint, most int) eventstore.Page {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), eventually.Patience)
	defer cancel()
	page, err := c.log.Next(ctx, after, most, nil)
	must.NoError(c, err)
	return page
}

func (c *contract) followed() {
	var (
		want []domain.NewEvent
		last domain.AppendResult
	)
	for i := range 10 {
		want = append(want, note(fmt.Sprint(i)))
		last = c.append(domain.ExpectedRevision(i-1), want[i])
	}
	eventually.True(c, "the log's head is the last append", func() bool { return c.log.Head() == last.Position })
	stored := c.load(0)
	for _, most := range []int{1, 3, 100} {
		var got []domain.Recorded
		for at := (eventstore.Checkpoint{Start: true}); at.Start || at.Position != last.Position; {
			page := c.next(at, most)
			if len(page.Events) > most {
				c.Fatalf("%d events, asked for %d", len(page.Events), most)
			}
			for _, e := range page.Events {
				if !at.Start && e.Position.Compare(at.Position) <= 0 || page.Next.Compare(e.Position) < 0 {
					c.Fatalf("behind %v came %s, with %s to go on", at, e.Position, page.Next)
				}
			}
			if page.Live != (page.Next == last.Position) {
				c.Errorf("at %s live is %v, the end is %s", page.Next, page.Live, last.Position)
			}
			got = append(got, page.Events...)
			at = eventstore.At(page.Next)
		}
		got = slices.DeleteFunc(got, func(r domain.Recorded) bool { return r.Stream != c.stream })
		if !reflect.DeepEqual(got, stored) {
			c.Errorf("in pages of %d: %v, the stream holds %v", most, got, stored)
		}
	}
}

func (c *contract) waited() {
	last := c.append(domain.NoStream, note("the last one"))
	ctx, cancel := context.WithCancel(c.Context())
	type answer struct {
		page eventstore.Page
		err  error
	}
	answers := make(chan answer, 1)
	follow := func() {
		page, err := c.log.Next(ctx, eventstore.At(last.Position), 10, nil)
		answers <- answer{page, err}
	}
	go follow()
	select {
	case a := <-answers:
		c.Fatalf("at the end came %+v, %v", a.page, a.err)
	case <-time.After(20 * time.Millisecond): // long enough for a Next that does not block
	}
	next := c.append(0, note("one more"))
	if a := <-answers; a.err != nil || len(a.page.Events) != 1 || a.page.Next != next.Position || !a.page.Live {
		c.Fatalf("got %+v, %v", a.page, a.err)
	}
	last = next
	go follow()
	cancel()
	if a := <-answers; !errors.Is(a.err, context.Canceled) {
		c.Errorf("got %+v, %v", a.page, a.err)
	}
	c.append(domain.ExpectedRevision(last.Revision), note("for nobody"))
	if page, err := c.log.Next(ctx, eventstore.At(last.Position), 10, nil); !errors.Is(err, context.Canceled) {
		c.Errorf("after its end came %+v, %v", page, err)
	}
}

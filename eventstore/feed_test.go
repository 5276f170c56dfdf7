package eventstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// run starts a feed with a small ring if maxEvents is set.
func run(t *testing.T, c *Client, maxEvents int) *Feed {
	t.Helper()
	f := NewFeed(c, quietLog())
	if maxEvents > 0 {
		f.maxEvents = maxEvents
	}
	done := make(chan error, 1)
	go func() { done <- f.Run(t.Context()) }() // ends before the clean-up
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Errorf("the feed ended with %v", err)
		}
	})
	return f
}

// consumer reads a feed until it has seen n events, in pages of size.
type consumer struct {
	at    Checkpoint
	notes []string
	pages []Page
}

func (s *consumer) read(ctx context.Context, f *Feed, n, size int) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for len(s.notes) < n {
		page, err := f.Next(ctx, s.at, size, nil)
		if err != nil {
			return fmt.Errorf("behind %d events: %w", len(s.notes), err)
		}
		for _, r := range page.Events {
			if !s.at.isBefore(At(r.Position)) {
				return fmt.Errorf("%s is not behind %+v", r.Position, s.at)
			}
			s.at = At(r.Position)
			s.notes = append(s.notes, noteOf(r))
		}
		if page.Next.Compare(s.at.Position) < 0 {
			return fmt.Errorf("the page goes back to %s from %+v", page.Next, s.at)
		}
		s.at = At(page.Next)
		s.pages = append(s.pages, page)
	}
	return nil
}

func (s *consumer) expect(t *testing.T, stream string, n int) {
	t.Helper()
	if len(s.notes) != n {
		t.Errorf("saw %d events, want %d", len(s.notes), n)
	}
	for i, got := range s.notes {
		if want := fmt.Sprintf("%s@%d", stream, i); got != want {
			t.Fatalf("event %d is %q, want %q", i, got, want)
		}
	}
}

func TestConsumersSeeEveryEventOnceFromTheStart(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	grow(t, c, "job-1", 0, 40)
	f := run(t, c, 0)
	var wg sync.WaitGroup
	consumers := make([]consumer, 4)
	for i := range consumers {
		consumers[i].at.Start = true
		wg.Go(func() {
			if err := consumers[i].read(t.Context(), f, 120, 7); err != nil {
				t.Error(err)
			}
		})
	}
	last := grow(t, c, "job-1", 40, 80)
	wg.Wait()
	for i := range consumers {
		consumers[i].expect(t, "job-1", 120)
	}
	if f.Head() != last.Position {
		t.Errorf("head %s, want %s", f.Head(), last.Position)
	}
	if page := consumers[0].pages[len(consumers[0].pages)-1]; !page.Live {
		t.Error("the last page is not live")
	}
}

func TestAFeedOnAnEmptyLogWaitsForTheFirstEvent(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	f := run(t, c, 0)
	done := make(chan error, 1)
	s := consumer{at: Checkpoint{Start: true}}
	go func() { done <- s.read(t.Context(), f, 1, 10) }()
	grow(t, c, "job-1", 0, 1)
	must.NoError(t, <-done)
	s.expect(t, "job-1", 1)
}

// The consumer is slower than the ring is long: it falls out, reads pages, and
// joins again.
func TestAConsumerThatFellOutOfTheRingReadsPages(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	f := run(t, c, 16)
	s := consumer{at: Checkpoint{Start: true}}
	for n := 0; n < 200; n += 50 {
		last := grow(t, c, "job-1", n, 50)
		eventually.True(t, "the feed arrives", func() bool { return f.Head() == last.Position })
		must.NoError(t, s.read(t.Context(), f, n+25, 5))
	}
	must.NoError(t, s.read(t.Context(), f, 200, 5))
	s.expect(t, "job-1", 200)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ring.slots) != 16 || f.ring.lower.Position.Commit != 184 {
		t.Errorf("the ring holds %d events behind %+v", len(f.ring.slots), f.ring.lower)
	}
}

func TestAFeedSurvivesCrashesOfTheNode(t *testing.T) {
	t.Parallel()
	n, c := setup(t)
	f := run(t, c, 64)
	const total = 600
	done := make(chan error, 1)
	s := consumer{at: Checkpoint{Start: true}}
	go func() { done <- s.read(t.Context(), f, total, 50) }()
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range total {
			if _, err := c.Append(t.Context(), "job-1", domain.ExpectedRevision(i-1), []domain.NewEvent{note(fmt.Sprintf("job-1@%d", i))}); err != nil {
				t.Errorf("append %d: %v", i, err)
				return
			}
		}
	})
	for at := int64(100); at < total; at += 200 {
		eventually.True(t, "the log grows", func() bool { return n.node.Head() >= at })
		n.stop()
		n.start()
	}
	writer.Wait()
	must.NoError(t, <-done)
	s.expect(t, "job-1", total)
}

// The node is away for longer than any patience: consumers just wait.
func TestAFeedWaitsForANodeThatIsAwayForLong(t *testing.T) {
	t.Parallel()
	n, patient := setup(t)
	c := connect(t, n.socket, limits{call: 100 * time.Millisecond, patience: 200 * time.Millisecond, quiet: time.Minute})
	grow(t, patient, "job-1", 0, 3)
	f := run(t, c, 0)
	eventually.True(t, "the feed runs", func() bool { return f.Head().Commit == 3 })
	n.stop()
	eventually.True(t, "an append gives up", func() bool {
		_, err := c.Append(t.Context(), "job-2", domain.NoStream, []domain.NewEvent{note("x")})
		return domain.IsKind(err, domain.KindUnavailable)
	})
	done := make(chan error, 1)
	s := consumer{at: Checkpoint{Start: true}} // not covered by the ring
	go func() { done <- s.read(t.Context(), f, 5, 2) }()
	n.start()
	grow(t, patient, "job-1", 3, 2)
	must.NoError(t, <-done)
	s.expect(t, "job-1", 5)
}

// The connection stays up but nothing comes through it any more.
func TestAFeedNoticesThatItsSubscriptionIsDeaf(t *testing.T) {
	t.Parallel()
	n, direct := setup(t)
	p := newProxy(t, n.socket)
	c := connect(t, p.socket, limits{call: 300 * time.Millisecond, patience: time.Second, quiet: 200 * time.Millisecond})
	f := run(t, c, 0)
	grow(t, direct, "job-1", 0, 1)
	eventually.True(t, "the feed runs", func() bool { return f.Head().Commit == 1 })
	p.deafen()
	grow(t, direct, "job-1", 1, 1)
	eventually.True(t, "the feed subscribes again", func() bool { return f.Head().Commit == 2 })
}

func TestNextEndsWithItsContext(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	f := run(t, c, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := f.Next(ctx, Checkpoint{Start: true}, 1, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// put appends a stored event as it is.
func put(t *testing.T, c *Client, stream, eventType, data, meta string) {
	t.Helper()
	_, _, err := call(t.Context(), c.connector(), func(ctx context.Context, client *esdb.Client) (*esdb.WriteResult, error) {
		return client.AppendToStream(ctx, stream, esdb.AppendToStreamOptions{}, esdb.EventData{
			EventID: uuid.New(), EventType: eventType, ContentType: esdb.ContentTypeJson, Data: []byte(data), Metadata: []byte(meta),
		})
	})
	must.NoError(t, err)
}

func TestAnEventThatDoesNotDecodeStopsItsConsumers(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	early := run(t, c, 0) // serves from its ring
	eventually.True(t, "the feed runs", func() bool {
		early.mu.Lock()
		defer early.mu.Unlock()
		return early.ring != nil
	})
	grow(t, c, "job-1", 0, 2)
	put(t, c, "job-1", "job.released", `{"token":"not a number"}`, `{"schema":1}`)
	grow(t, c, "job-2", 0, 1)
	eventually.True(t, "the feed arrives", func() bool { return early.Head().Commit == 4 })
	late := run(t, c, 0) // reads pages

	for name, f := range map[string]*Feed{"ring": early, "pages": late} {
		page, err := f.Next(t.Context(), Checkpoint{Start: true}, 10, nil)
		if err != nil || len(page.Events) != 2 || page.Next.Commit != 2 || page.Live {
			t.Errorf("%s: first %+v, %v", name, page, err)
		}
		var failed *DecodeError
		if _, err = f.Next(t.Context(), At(page.Next), 10, nil); !errors.As(err, &failed) {
			t.Fatalf("%s: then %v", name, err)
		}
		if failed.Position.Commit != 3 || failed.Stream != "job-1" || failed.Revision != 2 || failed.Type != "job.released" {
			t.Errorf("%s: %+v", name, failed)
		}
		page, err = f.Next(t.Context(), At(failed.Position), 10, nil)
		if err != nil || len(page.Events) != 1 || page.Events[0].Stream != "job-2" {
			t.Errorf("%s: behind it %+v, %v", name, page, err)
		}
	}
	put(t, c, "$$job-1", "$metadata", `{"$maxAge":7200}`, ``)
	page, err := late.Next(t.Context(), Checkpoint{Start: true}, 10, map[string]bool{Sums: true})
	if err != nil || len(page.Events) != 4 || page.Next.Commit != 5 || page.Events[2].Type != "job.released" {
		t.Fatalf("undecoded: %+v, %v", page, err)
	}
	for _, r := range page.Events {
		if r.Event != nil || r.Meta != (domain.Metadata{}) || r.Stored.Data == [32]byte{} || r.Stored.Created.IsZero() {
			t.Errorf("undecoded: %+v", r)
		}
	}
	page, err = late.Next(t.Context(), Checkpoint{Start: true}, 10, map[string]bool{page.Events[0].Type: true})
	if err != nil || len(page.Events) != 4 || page.Events[0].Event == nil || page.Events[0].Meta == (domain.Metadata{}) || page.Events[2].Event != nil || page.Events[0].Stored.Data != [32]byte{} {
		t.Fatalf("of one type: %+v, %v", page, err)
	}
	var failed *DecodeError
	if err := c.Load(t.Context(), "job-1", 0, func(domain.Recorded) error { return nil }); !errors.As(err, &failed) {
		t.Errorf("load: %v", err)
	}
	var stored []string
	if err := c.ReadRaw(t.Context(), "job-1", func(r RawEvent) error {
		stored = append(stored, r.Type)
		if !json.Valid(r.Data) || !json.Valid(r.Meta) {
			t.Errorf("raw %+v", r)
		}
		return nil
	}); err != nil || len(stored) != 3 {
		t.Errorf("raw: %v, %v", stored, err)
	}
}

func TestForeignAndSystemEventsArePassedOver(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	early := run(t, c, 0)
	put(t, c, "other", "invoice.sent", `{}`, `not json`)
	put(t, c, "$$other", "$metadata", `{"$maxAge":3600}`, ``)
	put(t, c, "$$other", "$metadata", `{"$maxAge":7200}`, ``)
	eventually.True(t, "the feed arrives", func() bool { return early.Head().Commit == 3 })
	late := run(t, c, 0)
	for name, f := range map[string]*Feed{"ring": early, "pages": late} {
		page, err := f.Next(t.Context(), Checkpoint{Start: true}, 10, nil)
		if err != nil || len(page.Events) != 1 || page.Events[0].Event != nil || page.Events[0].Type != "invoice.sent" || page.Next.Commit != 3 {
			t.Errorf("%s: %+v, %v", name, page, err)
		}
		page, err = f.Next(t.Context(), At(domain.Position{Commit: 1, Prepare: 1}), 10, nil)
		if err != nil || len(page.Events) != 0 || page.Next.Commit != 3 {
			t.Errorf("%s: only system events: %+v, %v", name, page, err)
		}
	}
}

package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/eventstore/sharedscan"
	"humanqa/internal/testing/logtest"
)

type next = func(context.Context, eventstore.Checkpoint) (eventstore.Page, error)

// joining gives readers of one scan of the log.
func joining(source sharedscan.Source, size int) func(at eventstore.Checkpoint, types ...string) (next, func()) {
	scan := sharedscan.New(source, size, sharedscan.Patience)
	return func(at eventstore.Checkpoint, types ...string) (next, func()) {
		wanted := map[string]bool{}
		for _, t := range types {
			wanted[t] = true
		}
		r := scan.Add(at, wanted)
		return r.Next, r.Leave
	}
}

// Whoever reads, from wherever, at whatever speed, sees every event once and in
// order; those that begin together cost one reading.
func TestReadersShareOnePassOverTheLog(t *testing.T) {
	t.Parallel()
	log := logtest.New()
	for i := range 100 {
		log.Record(domain.JobStream(fmt.Sprint(i)), &job.Heartbeat{}, &job.Heartbeat{}, &job.Heartbeat{})
	}
	join := joining(log, 7)
	read := func(at eventstore.Checkpoint, dice *rand.Rand, next func(context.Context, eventstore.Checkpoint) (eventstore.Page, error)) {
		want := at.Position.Commit + 1
		for at.Position != log.Head() {
			page, err := next(t.Context(), at)
			if err != nil {
				t.Error(err)
				return
			}
			for _, e := range page.Events {
				if e.Position.Commit != want {
					t.Errorf("event %d where %d was next", e.Position.Commit, want)
					return
				}
				want++
			}
			at = eventstore.At(page.Next)
			for range dice.IntN(200) {
				runtime.Gosched()
			}
		}
		if want != log.Head().Commit+1 {
			t.Errorf("the reader ends before %d", want)
		}
	}
	var reading sync.WaitGroup
	dice := rand.New(rand.NewPCG(1, 2))
	start := eventstore.Checkpoint{Start: true}
	joined := make(chan struct{}) // one that begins before the others have joined does not wait for them
	begin := func(at eventstore.Checkpoint) {
		next, leave := join(at)
		own := rand.New(rand.NewPCG(dice.Uint64(), 3))
		reading.Go(func() {
			defer leave()
			<-joined
			read(at, own, next)
		})
	}
	for range 6 {
		begin(start)
	}
	close(joined)
	reading.Wait()
	if pages := len(log.Asked()); pages != (300+6)/7 {
		t.Errorf("six readers cost %d pages", pages)
	}
	// Interrupted builds begin anywhere, while one of the others gives up.
	ctx, giveUp := context.WithCancel(t.Context())
	next, leave := join(start)
	giveUp()
	if _, err := next(ctx, start); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	leave()
	for _, at := range []uint64{0, 0, 3, 50, 211, 299} {
		from := start
		if at > 0 {
			from = eventstore.At(domain.Position{Commit: at, Prepare: at})
		}
		begin(from)
	}
	reading.Wait()
}

// half is a log that remembers what it was last asked to decode.
type half struct {
	*logtest.Memory
	pages atomic.Int64
	asked atomic.Pointer[[]string]
}

func (h *half) Next(ctx context.Context, after eventstore.Checkpoint, maxEvents int, types map[string]bool) (eventstore.Page, error) {
	asked := slices.Sorted(maps.Keys(types))
	h.asked.Store(&asked)
	h.pages.Add(1)
	return h.Memory.Next(ctx, after, maxEvents, types)
}

// What nobody looks at is not decoded, nothing at all for a raw consumer. Who comes later
// does not get pages that lack what it looks at, and from there on the pages serve
// all.
func TestOnlyWhatSomebodyLooksAtIsDecoded(t *testing.T) {
	t.Parallel()
	log := &half{Memory: logtest.New()}
	for range 25 {
		log.Record(domain.JobStream("1"), &job.Heartbeat{}, &job.Released{})
	}
	beat, released := (&job.Heartbeat{}).EventType(), (&job.Released{}).EventType()
	join := joining(log, 10)
	at := func(position uint64) eventstore.Checkpoint {
		if position == 0 {
			return eventstore.Checkpoint{Start: true}
		}
		return eventstore.At(domain.Position{Commit: position, Prepare: position})
	}
	expect := func(what string, read next, behind uint64, pages int64, types ...string) {
		t.Helper()
		page, err := read(t.Context(), at(behind))
		if err != nil || len(page.Events) != 10 {
			t.Fatalf("%s: %+v, %v", what, page, err)
		}
		for _, e := range page.Events {
			if (e.Event != nil) != slices.Contains(types, e.Type) {
				t.Errorf("%s: %s is %v", what, e.Type, e.Event)
			}
		}
		if n := log.pages.Load(); n != pages || !slices.Equal(*log.asked.Load(), types) {
			t.Errorf("%s: %d pages, the last of %v; want %d, of %v", what, n, *log.asked.Load(), pages, types)
		}
	}
	raw, leave := join(at(0))
	defer leave()
	expect("the raw consumer alone", raw, 0, 1)
	beats, leaveBeats := join(at(0), beat)
	defer leaveBeats()
	expect("a read model of one type", beats, 0, 2, beat)
	expect("both together", beats, 10, 3, beat)
	expect("the raw consumer takes what is decoded", raw, 10, 3, beat)
	both, leaveBoth := join(at(0), beat, released)
	defer leaveBoth()
	expect("one that looks at more", both, 0, 4, beat, released)
	expect("all together", both, 10, 5, beat, released)
	expect("who looks at less takes it", beats, 10, 5, beat, released)
	leaveBeats()
	leaveBoth()
	expect("the raw consumer alone again", raw, 20, 6)
}

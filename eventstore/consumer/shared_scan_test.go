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
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections"
	"humanqa/projections/auditlog"
)

// Whoever reads, from wherever, at whatever speed, sees every event once and in
// order; those that begin together cost one reading.
func TestReadersShareOnePassOverTheLog(t *testing.T) {
	t.Parallel()
	log := logtest.New()
	for i := range 100 {
		log.Record(domain.JobStream(fmt.Sprint(i)), &job.Heartbeat{}, &job.Heartbeat{}, &job.Heartbeat{})
	}
	join := consumer.Pass(log, 7)
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

func (h *half) NextOf(ctx context.Context, types map[string]bool, after eventstore.Checkpoint, maxEvents int) (eventstore.Page, error) {
	asked := slices.Sorted(maps.Keys(types))
	h.asked.Store(&asked)
	h.pages.Add(1)
	return h.Memory.NextOf(ctx, types, after, maxEvents)
}

// The tree of the audit waits for every type, and understands none.
func TestNothingIsDecodedForTheAuditsTree(t *testing.T) {
	t.Parallel()
	tree := auditlog.Projector{}
	if types := consumer.Decoded(tree); !maps.Equal(types, map[string]bool{eventstore.Sums: true}) || len(tree.Handles()) == 0 {
		t.Errorf("%d of %d types are decoded", len(types), len(tree.Handles()))
	}
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
	join := consumer.Pass(log, 10)
	at := func(position uint64) eventstore.Checkpoint {
		if position == 0 {
			return eventstore.Checkpoint{Start: true}
		}
		return eventstore.At(domain.Position{Commit: position, Prepare: position})
	}
	type next = func(context.Context, eventstore.Checkpoint) (eventstore.Page, error)
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

// All read models are built with one pass, and one that is interrupted again and
// again ends with the rows that serve.
func TestRebuildingAllReadsTheLogOnce(t *testing.T) {
	t.Parallel()
	w := setup(t, projections.All()...)
	modeltest.Everything(w.Log)
	stop := w.Run(w.Sup)
	w.Reach(w.Sup)
	stop()
	operator := w.Service(w.Log, projections.All()...)
	operator.ChangeLimits(func(l *consumer.Limits) { l.Rebuild = 100 })
	for range 3 {
		ctx, cancel := context.WithCancel(w.Ctx())
		events := int64(rand.IntN(600))
		err := operator.RebuildAll(ctx, projections.Names(), func(p consumer.Progress) {
			if p.Applied >= events {
				cancel()
			}
		})
		if cancel(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	must.NoError(t, operator.RebuildAll(w.Ctx(), projections.Names(), nil))
	before := len(w.Log.Asked())
	must.NoError(t, operator.RebuildAll(w.Ctx(), projections.Names(), nil))
	begun := w.Log.Asked()[before:]
	if n := len(begun) - len(slices.DeleteFunc(begun, func(c eventstore.Checkpoint) bool { return c.Start })); n != 1 {
		t.Errorf("the log is begun %d times for %d read models", n, len(projections.Names()))
	}
	differences, err := operator.VerifyAll(w.Ctx(), projections.Names())
	for i, found := range differences {
		if len(found) > 0 {
			t.Errorf("%s: %+v", projections.Names()[i], found)
		}
	}
	must.NoError(t, err)
	w.Exec("UPDATE {credits}.credit_accounts SET used = used + 1 WHERE account_id = (SELECT min(account_id) FROM {credits}.credit_accounts)")
	differences, err = operator.VerifyAll(w.Ctx(), projections.Names())
	if err != nil || len(differences[slices.Index(projections.Names(), "credits")]) != 2 {
		t.Errorf("a row that was changed: %+v, %v", differences, err)
	}
}

// After a night without a projector, all read models follow the log with one pass.
func TestWhatBeginsBehindTheLogsEndReadsItTogether(t *testing.T) {
	t.Parallel()
	w := setup(t, projections.All()...)
	modeltest.Everything(w.Log)
	stop := w.Run(w.Sup)
	w.Reach(w.Sup)
	stop()
	for i := range 1000 {
		w.Log.Record(domain.JobStream(fmt.Sprint("night", i)), &job.Heartbeat{}, &job.Heartbeat{}, &job.Heartbeat{})
	}
	morning := w.Service(w.Log, projections.All()...)
	const page = 50
	morning.ChangeLimits(func(l *consumer.Limits) { l.Rebuild, l.Live = page, page })
	before := len(w.Log.Asked())
	w.Run(morning)
	w.Reach(morning)
	models := len(projections.Names())
	if pages := len(w.Log.Asked()) - before; pages > models*3000/page/3 {
		t.Errorf("%d read models read %d pages of %d events to get over 3,000", models, pages, page)
	}
}

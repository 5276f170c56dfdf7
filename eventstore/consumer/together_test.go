package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/sharedscan"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/jobs"
)

// raw sees every event, as the tree of the audit does. It waits for types, and understands
// none.
type raw struct{ consumer.Projector }

func (raw) RawConsumer() {}

func TestNothingIsDecodedForARawConsumer(t *testing.T) {
	t.Parallel()
	tree := raw{jobs.Projector}
	if types := consumer.Decoded(tree); !maps.Equal(types, map[string]bool{eventstore.Sums: true}) || len(tree.Handles()) == 0 {
		t.Errorf("%d of %d types are decoded", len(types), len(tree.Handles()))
	}
}

// Read models are built with one pass, and one that is interrupted again and
// again ends with the rows that serve.
func TestRebuildingAllReadsTheLogOnce(t *testing.T) {
	t.Parallel()
	w := setup(t, manyModels()...)
	w.DB.SetMaxOpenConns(2) // fewer than there are models
	modeltest.Everything(w.Log)
	stop := w.Run(w.Sup)
	w.Reach(w.Sup)
	stop()
	operator := w.Service(w.Log, manyModels()...)
	operator.ChangeLimits(func(l *consumer.Limits) { l.Rebuild = 100 })
	for range 3 {
		ctx, cancel := context.WithCancel(w.Ctx())
		events := int64(rand.IntN(600))
		err := operator.RebuildAll(ctx, names(manyModels()), func(p consumer.Progress) {
			if p.Applied >= events {
				cancel()
			}
		})
		if cancel(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	must.NoError(t, operator.RebuildAll(w.Ctx(), names(manyModels()), nil))
	before := len(w.Log.Asked())
	must.NoError(t, operator.RebuildAll(w.Ctx(), names(manyModels()), nil))
	begun := w.Log.Asked()[before:]
	if n := len(begun) - len(slices.DeleteFunc(begun, func(c eventstore.Checkpoint) bool { return c.Start })); n != 1 {
		t.Errorf("the log is begun %d times for %d read models", n, len(names(manyModels())))
	}
	differences, err := operator.VerifyAll(w.Ctx(), names(manyModels()))
	for i, found := range differences {
		if len(found) > 0 {
			t.Errorf("%s: %+v", names(manyModels())[i], found)
		}
	}
	must.NoError(t, err)
	w.Exec("UPDATE {credits}.credit_accounts SET used = used + 1 WHERE account_id = (SELECT min(account_id) FROM {credits}.credit_accounts)")
	differences, err = operator.VerifyAll(w.Ctx(), names(manyModels()))
	if err != nil || len(differences[slices.Index(names(manyModels()), "credits")]) != 2 {
		t.Errorf("a row that was changed: %+v, %v", differences, err)
	}
}

// Readers that begin near each other come together, whichever begins to read first.
func TestReadersThatBeginNearEachOtherShareThePass(t *testing.T) {
	t.Parallel()
	log := logtest.New()
	for range 30 {
		log.Record(domain.JobStream("1"), &job.Heartbeat{})
	}
	for range 20 {
		before := len(log.Asked())
		scan := sharedscan.New(log, 5, eventually.Patience)
		all := scan.Await()
		var reading sync.WaitGroup
		for _, at := range []eventstore.Checkpoint{
			eventstore.At(domain.Position{Commit: 7, Prepare: 7}), {Start: true}, eventstore.At(domain.Position{Commit: 2, Prepare: 2}),
		} {
			r := scan.Add(at, nil)
			reading.Go(func() {
				defer r.Leave()
				for at.Position != log.Head() {
					page, err := r.Next(t.Context(), at)
					if err != nil {
						t.Error(err)
						return
					}
					at = eventstore.At(page.Next)
				}
			})
		}
		all()
		reading.Wait()
		if asked := log.Asked()[before:]; len(asked) != 30/5 {
			t.Fatalf("pages of 5 events were read behind %v", asked)
		}
	}
}

// After a night without a projector, read models follow the log with one pass.
func TestWhatBeginsBehindTheLogsEndReadsItTogether(t *testing.T) {
	t.Parallel()
	w := setup(t, manyModels()...)
	modeltest.Everything(w.Log)
	stop := w.Run(w.Sup)
	w.Reach(w.Sup)
	stop()
	for i := range 1000 {
		w.Log.Record(domain.JobStream(fmt.Sprint("night", i)), &job.Heartbeat{}, &job.Heartbeat{}, &job.Heartbeat{})
	}
	morning := w.Service(w.Log, manyModels()...)
	const page = 300
	morning.ChangeLimits(func(l *consumer.Limits) {
		l.Rebuild, l.Live = page, page
		// On a busy machine no read model gives up, and reads by itself.
		l.Together, l.Take, l.Lease, l.Shared = eventually.Patience, eventually.Patience, eventually.Patience, eventually.Patience
	})
	before := len(w.Log.Asked())
	w.Run(morning)
	w.Reach(morning)
	models := len(names(manyModels()))
	if asked := w.Log.Asked()[before:]; len(asked) > models*3000/page/3 {
		t.Errorf("%d read models read %d pages of %d events to get over 3,000: %v", models, len(asked), page, asked)
	}
}

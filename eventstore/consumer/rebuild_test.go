package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/access"
	"humanqa/projections/credits"
	"humanqa/projections/jobs"
	"humanqa/projections/readmodel"
)

// jobsNext is the next version of the jobs projection: one more column.
type jobsNext struct{ readmodel.Model }

func (jobsNext) Version() int { return jobs.Projector.Version() + 1 }

func (jobsNext) Tables() []consumer.Table {
	tables := slices.Clone(jobs.Projector.Tables())
	tables[0].DDL += "ALTER TABLE {schema}.jobs ADD COLUMN word_count integer;"
	return tables
}

// load appends and reads until it is stopped; readers must never see an error
// nor a job vanish. A writer waits until its work is shown, as clients do: else the
// slower the machine, the longer the log that is built anew. Both rest as long as their
// turn took: else a slow machine has no time left for the build beside them.
func (w *world) load() (stop func()) {
	done := make(chan struct{})
	rest := func(since time.Time) (goOn bool) {
		select {
		case <-done:
			return false
		case <-time.After(time.Since(since)):
			return true
		}
	}
	var running sync.WaitGroup
	running.Go(func() {
		for i, began := 0, time.Now(); rest(began); i++ {
			began = time.Now()
			modeltest.Lives(w.Log, fmt.Sprint("load", i, "-"), 6)
			if err := w.Sup.WaitFor(w.Ctx(), w.Log.Head()); err != nil {
				w.T.Errorf("a writer waited in vain: %v", err)
				return
			}
		}
	})
	running.Go(func() {
		most := 0
		for began := time.Now(); rest(began); {
			began = time.Now()
			_, total, err := w.reads.Jobs.List(w.Ctx(), "acc1", jobs.Filter{Limit: 5})
			if err != nil || total < most {
				w.T.Errorf("a reader met %d jobs after %d, %v", total, most, err)
				return
			}
			most = total
			if _, err := w.reads.Jobs.Job(w.Ctx(), "acc1", "before1"); err != nil {
				w.T.Errorf("a reader met %v", err)
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		running.Wait()
	})
}

// soundAt verifies any generation up to its own checkpoint.
func (w *world) soundAt(s *consumer.Supervisor, name string, number int) {
	w.T.Helper()
	differences, err := s.VerifyGeneration(w.Ctx(), name, number)
	must.NoError(w.T, err)
	for _, d := range differences {
		w.T.Errorf("generation %d of %s differs from the fold: %+v", number, name, d)
	}
}

func TestARebuildBesideTheServingRowsUnderLoad(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	modeltest.Lives(w.Log, "before", 200)
	w.Reach(w.Sup)
	stop := w.load()
	defer stop()

	var seen []consumer.Progress
	must.NoError(t, w.Sup.RebuildAll(w.Ctx(), []string{"jobs"}, func(p consumer.Progress) { seen = append(seen, p) }))
	last := seen[len(seen)-1]
	if !last.Done || last.Generation != 2 || last.Applied < 200 || last.EventsPerSecond <= 0 {
		t.Errorf("last progress: %+v", last)
	}
	served := w.Log.Head()
	w.Eventually("the load goes on behind the flip", func() bool { return w.Log.Head().Commit > served.Commit+50 })
	stop()
	w.Reach(w.Sup)
	w.Sound(w.Sup, "jobs")      // the new rows are the fold of the log …
	w.soundAt(w.Sup, "jobs", 1) // … and so were the old ones when they were replaced

	// At rest both stand at the same position and can be compared directly.
	must.NoError(t, w.Sup.RebuildAll(w.Ctx(), []string{"jobs"}, nil))
	w.Equal(jobs.Projector, jobsSchema(2), jobsSchema(3))
	if s := w.Status("jobs"); s.Schema != jobsSchema(3) || s.State != generation.Live {
		t.Errorf("got %+v", s)
	}
}

func TestANewVersionIsBuiltBesideTheOldOneUnderLoad(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stopOld := w.Run(w.Sup)
	modeltest.Lives(w.Log, "before", 150)
	w.Reach(w.Sup)
	stop := w.load()
	defer stop()

	next := w.Service(w.Log, jobsNext{jobs.Projector}, credits.Projector, access.Projector)
	w.Run(next)
	w.Eventually("the next version serves", func() bool { return w.Status("jobs").Version == jobsNext{jobs.Projector}.Version() })
	served := w.Log.Head()
	w.Eventually("the load goes on behind the flip", func() bool { return w.Log.Head().Commit > served.Commit+50 })
	stop()
	w.Reach(next)
	w.Reach(w.Sup) // a service with the old code still knows how far the new rows are
	w.Sound(next, "jobs")
	w.soundAt(w.Sup, "jobs", 1)
	stopOld()
	if err := w.Sup.RebuildAll(w.Ctx(), []string{"jobs"}, nil); !errors.Is(err, generation.ErrOldCode) {
		t.Errorf("old code was let loose on new rows: %v", err)
	}
}

func TestARebuildGoesOnWhereItWasStopped(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	modeltest.Lives(w.Log, "a", 200)
	w.Reach(w.Sup)

	gate := w.Log.Copy()
	gate.Hold(250)
	operator := w.Service(gate, jobsNext{jobs.Projector})
	ctx, cancel := context.WithCancel(w.Ctx())
	defer cancel()
	err := operator.RebuildAll(ctx, []string{"jobs"}, func(p consumer.Progress) {
		if p.Position.Commit >= 250 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if s := w.Status("jobs"); s.Version != jobs.Projector.Version() {
		t.Errorf("an unfinished build serves: %+v", s)
	}

	gate.Hold(0)
	asked := len(gate.Asked())
	must.NoError(t, operator.RebuildAll(w.Ctx(), []string{"jobs"}, nil))
	if first := gate.Asked()[asked]; first != eventstore.At(w.Log.All()[249].Position) {
		t.Errorf("the build went on behind %+v", first)
	}
	w.Sound(operator, "jobs")
	if s := w.Status("jobs"); s.Version != (jobsNext{jobs.Projector}).Version() || s.Number != 2 {
		t.Errorf("got %+v", s)
	}
}

func TestARebuildCanBeOrderedFromAnotherProcess(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Sup.ChangeLimits(func(l *consumer.Limits) { l.Retired = 0 })
	must.NoError(t, generation.RequestRebuild(w.Ctx(), w.DB, "credits"))
	must.NoError(t, generation.RequestRebuild(w.Ctx(), w.DB, "credits"))
	w.Run(w.Sup) // on an empty log: zero events is a normal case
	w.Eventually("generation 2 serves", func() bool { return w.Status("credits").Number == 2 })
	w.Eventually("the old generation is dropped", func() bool {
		return w.Count("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'credits_v1_g1'") == 0
	})
	list, err := consumer.List(w.Ctx(), w.DB)
	if err != nil || len(list) != len(models()) {
		t.Errorf("list: %+v, %v", list, err)
	}
	modeltest.Lives(w.Log, "a", 5)
	w.Reach(w.Sup)
}

// Somebody who still reads the old rows holds nobody up.
func TestAReaderOfRetiredRowsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	modeltest.Lives(w.Log, "a", 10)
	w.Reach(w.Sup)
	reader, err := w.DB.BeginTxx(w.Ctx(), nil)
	must.NoError(t, err)
	defer func() { _ = reader.Rollback() }()
	var n int
	must.NoError(t, reader.GetContext(w.Ctx(), &n, "SELECT COUNT(*) FROM "+jobsSchema(1)+".jobs"))
	must.NoError(t, w.Sup.RebuildAll(w.Ctx(), []string{"jobs"}, nil))
	if err := generation.DropRetired(w.Ctx(), w.DB, 0); !consumer.Transient(err) {
		t.Fatalf("the rows were taken from under their reader: %v", err)
	}
	modeltest.Lives(w.Log, "b", 10)
	w.Reach(w.Sup)
	must.NoError(t, reader.Commit())
	must.NoError(t, generation.DropRetired(w.Ctx(), w.DB, 0))
	if n := w.Count("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = $1", jobsSchema(1)); n != 0 {
		t.Error("the old rows are still there")
	}
}

func jobsSchema(number int) string {
	return fmt.Sprintf("jobs_v%d_g%d", jobs.Projector.Version(), number)
}

package projections

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"humanqa/eventstore"
)

// jobsNext is the next version of the jobs projection: one more column.
type jobsNext struct{ jobsProjector }

func (jobsNext) Version() int { return jobsProjector{}.Version() + 1 }

func (jobsNext) Tables() []Table {
	tables := jobsProjector{}.Tables()
	tables[0].DDL += "ALTER TABLE {schema}.jobs ADD COLUMN word_count integer;"
	return tables
}

// load appends and reads until it is stopped; readers must never see an error
// nor a job vanish.
func (w *world) load() (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-time.After(3 * time.Millisecond):
				lives(w.log, fmt.Sprint("load", i, "-"), 6)
			}
		}
	})
	running.Go(func() {
		most := 0
		for {
			select {
			case <-done:
				return
			default:
			}
			_, total, err := w.reads.Jobs.List(w.ctx(), "acc1", JobFilter{Limit: 5})
			if err != nil || total < most {
				w.t.Errorf("a reader met %d jobs after %d, %v", total, most, err)
				return
			}
			most = total
			if _, err := w.reads.Jobs.Queue(w.ctx(), "ann", 5); err != nil {
				w.t.Errorf("a reader met %v", err)
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
func (w *world) soundAt(s *Supervisor, name string, number int) {
	w.t.Helper()
	differences, err := s.verify(w.ctx(), name, getGenerationSQL, name, number)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range differences {
		w.t.Errorf("generation %d of %s differs from the fold: %+v", number, name, d)
	}
}

// equal compares two schemas of a projection row by row.
func (w *world) equal(p Projector, a, b string) {
	w.t.Helper()
	tx, err := w.sup.db.BeginTxx(w.ctx(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	rows := 0
	for _, table := range p.Tables() {
		differences, err := compare(w.ctx(), tx, table.Name, a, b)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, d := range differences {
			w.t.Errorf("%s and %s differ: %+v", a, b, d)
		}
		rows += w.count("SELECT COUNT(*) FROM " + a + "." + table.Name)
	}
	if rows == 0 {
		w.t.Error("there was nothing to compare")
	}
}

func TestARebuildBesideTheServingRowsUnderLoad(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	lives(w.log, "before", 500)
	w.reach(w.sup)
	stop := w.load()
	defer stop()

	var seen []Progress
	if err := w.sup.Rebuild(w.ctx(), "jobs", func(p Progress) { seen = append(seen, p) }); err != nil {
		t.Fatal(err)
	}
	last := seen[len(seen)-1]
	if !last.Done || last.Generation != 2 || last.Applied < 500 || last.EventsPerSecond <= 0 {
		t.Errorf("last progress: %+v", last)
	}
	served := w.log.Head()
	w.eventually("the load goes on behind the flip", func() bool { return w.log.Head().Commit > served.Commit+50 })
	stop()
	w.reach(w.sup)
	w.sound(w.sup, "jobs")      // the new rows are the fold of the log …
	w.soundAt(w.sup, "jobs", 1) // … and so were the old ones when they were replaced

	// At rest both stand at the same position and can be compared directly.
	if err := w.sup.Rebuild(w.ctx(), "jobs", nil); err != nil {
		t.Fatal(err)
	}
	w.equal(jobsProjector{}, "jobs_v2_g2", "jobs_v2_g3")
	if s := w.status("jobs"); s.Schema != "jobs_v2_g3" || s.State != Live {
		t.Errorf("got %+v", s)
	}
}

func TestANewVersionIsBuiltBesideTheOldOneUnderLoad(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stopOld := w.run(w.sup)
	lives(w.log, "before", 300)
	w.reach(w.sup)
	stop := w.load()
	defer stop()

	next := w.service(w.log, jobsNext{}, creditsProjector{}, projectsProjector{}, accessProjector{})
	w.run(next)
	w.eventually("the next version serves", func() bool { return w.status("jobs").Version == jobsNext{}.Version() })
	served := w.log.Head()
	w.eventually("the load goes on behind the flip", func() bool { return w.log.Head().Commit > served.Commit+50 })
	stop()
	w.reach(next)
	w.reach(w.sup) // a service with the old code still knows how far the new rows are
	w.sound(next, "jobs")
	w.soundAt(w.sup, "jobs", 1)
	stopOld()
	if err := w.sup.Rebuild(w.ctx(), "jobs", nil); !errors.Is(err, errOldCode) {
		t.Errorf("old code was let loose on new rows: %v", err)
	}
}

func TestARebuildGoesOnWhereItWasStopped(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	lives(w.log, "a", 400)
	w.reach(w.sup)

	gate := newMemoryLog()
	gate.events = w.log.events
	gate.hold(500)
	operator := w.service(gate, jobsNext{})
	ctx, cancel := context.WithCancel(w.ctx())
	defer cancel()
	err := operator.Rebuild(ctx, "jobs", func(p Progress) {
		if p.Position.Commit >= 500 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if s := w.status("jobs"); s.Version != (jobsProjector{}).Version() {
		t.Errorf("an unfinished build serves: %+v", s)
	}

	gate.hold(0)
	gate.asked = nil
	if err := operator.Rebuild(w.ctx(), "jobs", nil); err != nil {
		t.Fatal(err)
	}
	if first := gate.asked[0]; first != eventstore.At(gate.events[499].Position) {
		t.Errorf("the build went on behind %+v", first)
	}
	w.sound(operator, "jobs")
	if s := w.status("jobs"); s.Version != (jobsNext{}).Version() || s.Generation != 2 {
		t.Errorf("got %+v", s)
	}
}

func TestARebuildCanBeOrderedFromAnotherProcess(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.sup.limits.retired = 0
	if err := RequestRebuild(w.ctx(), w.db, "credits"); err != nil {
		t.Fatal(err)
	}
	if err := RequestRebuild(w.ctx(), w.db, "credits"); err != nil {
		t.Fatal(err)
	}
	w.run(w.sup) // on an empty log: zero events is a normal case
	w.eventually("generation 2 serves", func() bool { return w.status("credits").Generation == 2 })
	w.eventually("the old generation is dropped", func() bool {
		return w.count("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'credits_v1_g1'") == 0
	})
	list, err := List(w.ctx(), w.db)
	if err != nil || len(list) != len(All()) {
		t.Errorf("list: %+v, %v", list, err)
	}
	lives(w.log, "a", 5)
	w.reach(w.sup)
}

// Somebody who still reads the old rows holds nobody up.
func TestAReaderOfRetiredRowsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	lives(w.log, "a", 10)
	w.reach(w.sup)
	reader, err := w.db.BeginTxx(w.ctx(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback() }()
	var n int
	if err := reader.GetContext(w.ctx(), &n, "SELECT COUNT(*) FROM jobs_v2_g1.jobs"); err != nil {
		t.Fatal(err)
	}
	if err := w.sup.Rebuild(w.ctx(), "jobs", nil); err != nil {
		t.Fatal(err)
	}
	if err := dropRetired(w.ctx(), w.sup.db, 0); !transient(err) {
		t.Fatalf("the rows were taken from under their reader: %v", err)
	}
	lives(w.log, "b", 10)
	w.reach(w.sup)
	if err := reader.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := dropRetired(w.ctx(), w.sup.db, 0); err != nil {
		t.Fatal(err)
	}
	if n := w.count("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'jobs_v2_g1'"); n != 0 {
		t.Error("the old rows are still there")
	}
}

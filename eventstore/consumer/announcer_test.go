package consumer_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"
	logrustest "github.com/sirupsen/logrus/hooks/test"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/job"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// crier is a Preparer that writes a row for each job, and waits for no read model.
type crier struct {
	name string
	w    *world
}

func (c crier) Name() string              { return c.name }
func (crier) Gather() time.Duration       { return 0 }
func (crier) Handles() []string           { return domain.TypesOf((*job.Created)(nil)) }
func (crier) Begin(context.Context) error { return nil }

func (c crier) Prepare(_ context.Context, batch []domain.Recorded) (consumer.Write, int, error) {
	return func(ctx context.Context, tx *sqlx.Tx) error {
		for _, r := range batch {
			if _, err := tx.ExecContext(ctx, "INSERT INTO announced VALUES ($1, $2)", c.name, r.Stream); err != nil {
				return err
			}
		}
		return nil
	}, len(batch), nil
}

// herald is an Announcer. It counts the jobs that a reader does not find when it tells of them.
type herald struct {
	crier
	early *atomic.Int64
}

func (herald) Announces() {}

func (h herald) Prepare(ctx context.Context, batch []domain.Recorded) (consumer.Write, int, error) {
	write, done, err := h.crier.Prepare(ctx, batch)
	return func(ctx context.Context, tx *sqlx.Tx) error {
		for _, r := range batch {
			if _, err := h.w.reads.Jobs.Job(ctx, "acc", r.StreamID()); err != nil {
				h.early.Add(1)
			}
		}
		return write(ctx, tx)
	}, done, err
}

// told is a world with a herald and a crier beside the read models.
type told struct {
	*world
	herald    herald
	consumers []consumer.Consumer
	jobs      int
}

func setupTold(t *testing.T, change ...func(*consumer.Limits)) *told {
	t.Helper()
	w := &told{world: new(world)}
	w.herald = herald{crier{"herald", w.world}, new(atomic.Int64)}
	w.consumers = append(manyModels(), w.herald, crier{"crier", w.world})
	*w.world = *setup(t, w.consumers...)
	w.Exec("CREATE TABLE announced (who text, stream text, PRIMARY KEY (who, stream))")
	for _, one := range append(change, patiently) {
		w.Sup.ChangeLimits(one)
	}
	return w
}

// submit records a job.
func (w *told) submit() domain.Position {
	w.jobs++
	return w.Log.Record(domain.JobStream(fmt.Sprint("job", w.jobs)), modeltest.Created("acc"))
}

// passes waits until a consumer has passed the position.
func (w *told) passes(name string, at domain.Position) {
	w.T.Helper()
	w.Eventually(name+" passes "+at.String(), func() bool { return !w.isBehind(name, at) })
}

func (w *told) isBehind(name string, at domain.Position) bool {
	w.T.Helper()
	s := w.Status(name)
	return !s.Started || s.Position.Compare(at) < 0
}

// runs runs some of the consumers until the test ends.
func (w *told) runs(s *consumer.Supervisor, names ...string) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Only(names...)(ctx) }()
	w.T.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.T.Error(err)
		}
	})
}

// holdsUp keeps the read model jobs from writing until release is called. Its readers go on.
func (w *told) holdsUp() (release func()) {
	w.T.Helper()
	return pgtest.HoldUp(w.T, w.DB, "readmodel.jobs")
}

func (w *told) noneIsEarly() {
	w.T.Helper()
	if n := w.herald.early.Load(); n > 0 {
		w.T.Errorf("%d of %d jobs could not be read when they were announced", n, w.jobs)
	}
}

func TestWhatIsAnnouncedCanBeRead(t *testing.T) {
	t.Parallel()
	w := setupTold(t)
	w.Run(w.Sup)
	for range 300 {
		w.submit()
	}
	w.passes("herald", w.Log.Head())
	w.noneIsEarly()
}

func TestNothingIsAnnouncedWhileAReadModelIsHeldUp(t *testing.T) {
	t.Parallel()
	w := setupTold(t)
	w.Run(w.Sup)
	w.passes("herald", w.submit())
	release := w.holdsUp()
	at := w.submit()
	w.passes("crier", at)
	if !w.isBehind("herald", at) {
		t.Error("the job was announced")
	}
	release()
	w.passes("herald", at)
	w.noneIsEarly()
}

func TestAReadModelThatStandsStillIsToldOfOnceAndNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := setupTold(t, func(l *consumer.Limits) { l.Reads = 0 })
	log, lines := logrustest.NewNullLogger()
	w.Sup.LogTo(log)
	w.Run(w.Sup)
	over := func() (times int) {
		for _, line := range lines.AllEntries() {
			if behind, _ := line.Data[logrus.ErrorKey].(error); behind != nil && strings.Contains(behind.Error(), " jobs") {
				times++
			}
		}
		return times
	}
	for range 2 {
		w.passes("herald", w.submit())
		w.Reach(w.Sup)
		before, release := over(), w.holdsUp()
		for range 3 {
			w.passes("herald", w.submit())
		}
		if n := over() - before; n != 1 {
			t.Errorf("it was told %d times of one standstill", n)
		}
		release()
	}
}

func TestAStoppedReadModelIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := setupTold(t, setsNothingAside)
	stream := domain.AccountStream("acc")
	w.Log.Record(stream, &account.Created{Name: "shop"}, modeltest.Issued(1), modeltest.Issued(1)) // the same hash once more
	w.Run(w.Sup)
	w.Eventually("access stops", func() bool { return w.Status("access").Failure != nil })
	for range 20 {
		w.passes("herald", w.submit())
	}
	w.noneIsEarly()
}

func TestAnAnnouncerWaitsForReadModelsThatRunElsewhere(t *testing.T) {
	t.Parallel()
	w := setupTold(t)
	w.runs(w.Sup, names(manyModels())...)
	worker := w.Service(w.Log, w.consumers...)
	worker.ChangeLimits(patiently)
	apart{w.world, worker}.follows()
	w.runs(worker, "herald", "crier")
	for range 20 {
		w.passes("herald", w.submit())
	}
	release := w.holdsUp()
	at := w.submit()
	w.passes("crier", at)
	if !w.isBehind("herald", at) {
		t.Error("the job was announced")
	}
	release()
	w.passes("herald", at)
	w.noneIsEarly()
}

// A lease is renewed each third of its length, and not during the wait.
func TestAnAnnouncerKeepsItsLeaseWhileItWaits(t *testing.T) {
	t.Parallel()
	if l := consumer.DefaultLimits(); l.Lease/3+l.Reads >= l.Lease {
		t.Errorf("a lease of %s ends in a wait of %s", l.Lease, l.Reads)
	}
}

func TestAStopEndsTheWaitOfAnAnnouncer(t *testing.T) {
	t.Parallel()
	w := setupTold(t)
	stop := w.Run(w.Sup)
	w.passes("herald", w.submit())
	release := w.holdsUp()
	at := w.submit()
	w.passes("crier", at)
	stop()
	if s := w.Status("herald"); s.Owner != "" || !w.isBehind("herald", at) {
		t.Errorf("after the stop: %+v", s)
	}
	release()
	w.Run(w.Service(w.Log, w.consumers...))
	w.passes("herald", at)
	w.noneIsEarly()
	if n := w.Count("SELECT count(*) FROM announced WHERE who = 'herald'"); n != w.jobs {
		t.Errorf("%d announcements of %d jobs", n, w.jobs)
	}
}

func TestARebuildOfAnAnnouncerWaitsForNoReadModel(t *testing.T) {
	t.Parallel()
	w := setupTold(t)
	w.Run(w.Sup)
	w.passes("events", w.submit())
	release := w.holdsUp()
	at := w.submit()
	w.passes("crier", at)
	operator := w.Service(w.Log, w.consumers...)
	must.NoError(t, operator.RebuildAll(w.Ctx(), []string{"events"}, nil))
	release()
	w.passes("events", at)
	w.Sound(w.Sup, "events")
}

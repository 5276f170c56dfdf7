package consumer_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/jobs"
)

// broken is the jobs projector with faults.
type broken struct {
	consumer.Projector
	apply func(ctx context.Context, tx *sqlx.Tx, inner func() error) error
}

func (b broken) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	return b.apply(ctx, tx, func() error { return b.Projector.Apply(ctx, tx, schema, batch) })
}

// A runner that dies after it wrote the rows and before it committed leaves
// nothing behind, however it dies.
func TestABatchThatIsNotCommittedLeavesNothing(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	w := setup(t, broken{jobs.Projector, func(ctx context.Context, tx *sqlx.Tx, inner func() error) error {
		if err := inner(); err != nil {
			return err
		}
		switch calls.Add(1) % 4 {
		case 1:
			return driver.ErrBadConn
		case 2:
			_, err := tx.ExecContext(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			if err == nil {
				t.Error("the connection outlived its end")
			}
			return err
		}
		return nil
	}})
	w.Run(w.Sup)
	for i := range 12 {
		modeltest.Lives(w.Log, fmt.Sprint("a", i, "-"), 10)
		w.Reach(w.Sup)
	}
	w.Sound(w.Service(w.Log, jobs.Projector), "jobs")
	if s := w.Status("jobs"); s.Failure != nil || s.Lag != 0 {
		t.Errorf("got %+v", s)
	}
}

// A plan is kept, and was mostly made while there was next to nothing in the tables. The
// pages of a build are others, and so may its plans be.
func TestOnlyWhatIsLiveIsPlannedOnce(t *testing.T) {
	t.Parallel()
	var got struct {
		Plans, Scans string
	}
	c := broken{jobs.Projector, func(ctx context.Context, tx *sqlx.Tx, _ func() error) error {
		return tx.GetContext(ctx, &got, "SELECT current_setting('plan_cache_mode') AS plans, current_setting('enable_seqscan') AS scans")
	}}
	w := setup(t, c)
	modeltest.Lives(w.Log, "j", 2)
	for i, state := range []string{"building", "live"} {
		w.Exec("UPDATE projection_checkpoints SET status = $1", state)
		tenure, err := w.Sup.Acquire(w.Ctx(), c, "owner", time.Minute)
		must.NoError(t, err)
		must.NoError(t, tenure.Commit(w.Ctx(), tenure.Choose(w.Log.All())[i:i+1]))
		if live := state == "live"; (got.Plans == "force_generic_plan") != live || (got.Scans == "off") != live {
			t.Errorf("%s: planned with %+v", state, got)
		}
	}
}

// The commit of a batch whose answer was lost must not be followed by the same
// batch again.
func TestApplyingABatchTwiceIsImpossible(t *testing.T) {
	t.Parallel()
	w := setup(t)
	modeltest.Lives(w.Log, "j", 12)
	tenure, err := w.Sup.Acquire(w.Ctx(), jobs.Projector, "owner", time.Minute)
	if err != nil || tenure == nil {
		t.Fatalf("acquire: %v, %v", tenure, err)
	}
	batch := tenure.Choose(w.Log.All())
	for from := range batch {
		before := tenure.Stored()
		must.NoError(t, tenure.Commit(w.Ctx(), batch[from:from+1]))
		after := tenure.Stored()
		tenure.Believe(before) // as if the commit's answer had been lost
		for to := from + 1; to <= len(batch); to += 7 {
			if err := tenure.Commit(w.Ctx(), batch[from:to]); !errors.Is(err, generation.ErrNotOwner) {
				t.Fatalf("the same batch again: %v", err)
			}
		}
		tenure.Believe(after)
	}
	w.Sound(w.Sup, "jobs")
}

func TestTwoRunnersNeverAdvanceOneCheckpoint(t *testing.T) {
	t.Parallel()
	w := setup(t)
	others := []*consumer.Supervisor{w.Sup, w.Service(w.Log, models()...), w.Service(w.Log, models()...)}
	for _, s := range others {
		w.Run(s)
	}
	for i := range 30 {
		// Whoever has the lease loses it, as if they had been asleep, and the next owner had gone.
		w.Exec("UPDATE projection_checkpoints SET owner = 'gone', lease_until = now() - interval '1 hour'")
		modeltest.Lives(w.Log, fmt.Sprint("a", i, "-"), 5)
		if i%10 == 0 {
			w.Reach(others[i/10%len(others)])
		}
	}
	for _, s := range others {
		w.Reach(s)
	}
	w.Sound(w.Sup, names(models())...)
	handled := 0
	for _, r := range w.Log.All() {
		if slices.Contains(jobs.Projector.Handles(), r.Type) {
			handled++
		}
	}
	if s := w.Status("jobs"); s.Applied != int64(handled) {
		t.Errorf("%d events were applied, the log has %d", s.Applied, handled)
	}
	if n := w.Count("SELECT max(epoch) FROM projection_checkpoints"); n < 3 {
		t.Errorf("the lease changed hands %d times: the test shows nothing", n)
	}
}

func TestAServiceThatStopsLetsTheNextOneStartAtOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stop := w.Run(w.Sup)
	modeltest.Lives(w.Log, "a", 10)
	w.Reach(w.Sup)
	stop()
	if n := w.Count("SELECT COUNT(*) FROM projection_checkpoints WHERE owner IS NOT NULL"); n != 0 {
		t.Errorf("%d leases are still held", n)
	}
	next := w.Service(w.Log, models()...)
	next.ChangeLimits(func(l *consumer.Limits) { l.Lease = time.Hour })
	w.Run(next)
	modeltest.Lives(w.Log, "b", 10)
	w.Reach(next)
	w.Sound(next, "jobs")
}

func TestUnknownEventsAreCountedAndPassedOver(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	w.Log.Record("weather-1", logtest.Unknown("weather.changed"), logtest.Unknown("weather.changed"), logtest.Unknown("weather.changed"))
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"))
	w.Reach(w.Sup)
	if s := w.Status("jobs"); s.Unknown != 3 || s.Applied != 1 {
		t.Errorf("got %+v", s)
	}
}

// A zombie whose lease was taken over while it applied a batch must not
// commit it.
func TestATakeOverDuringABatchFencesTheOldOwner(t *testing.T) {
	t.Parallel()
	w := setup(t)
	modeltest.Lives(w.Log, "a", 5)
	acquire := func(owner string, length time.Duration) *consumer.Tenure {
		tenure, err := w.Sup.Acquire(w.Ctx(), jobs.Projector, owner, length)
		must.NoError(t, err)
		return tenure
	}
	old, heir := acquire("old", time.Nanosecond), acquire("heir", time.Nanosecond)
	batch := old.Choose(w.Log.All())
	if err := old.Commit(w.Ctx(), batch); !errors.Is(err, generation.ErrNotOwner) {
		t.Errorf("the old owner's batch: %v", err)
	}
	if err := heir.Commit(w.Ctx(), batch); err != nil {
		t.Errorf("the heir's batch: %v", err)
	}
	if acquire("third", time.Minute) != nil {
		t.Error("a lease in force was taken")
	}
	w.Sound(w.Sup, "jobs")
}

// A new projection exists, with its views, before anything is in the log.
func TestManyServicesPrepareAtOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := w.Sup.Prepare(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := w.Count("SELECT COUNT(*) FROM projection_checkpoints"); n != len(models()) {
		t.Errorf("%d generations, want one of each projection", n)
	}
	if _, total, err := w.reads.Jobs.List(w.Ctx(), "acc", jobs.Filter{Limit: 1}); err != nil || total != 0 {
		t.Errorf("an empty read model answers: %d, %v", total, err)
	}
}

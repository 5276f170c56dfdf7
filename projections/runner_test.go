package projections

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
	"humanqa/domain/account"
	"humanqa/eventstore"
)

// broken is the jobs projector with faults.
type broken struct {
	Projector
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
	w := setup(t, broken{jobsProjector{}, func(ctx context.Context, tx *sqlx.Tx, inner func() error) error {
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
	w.run(w.sup)
	for i := range 20 {
		lives(w.log, fmt.Sprint("a", i, "-"), 10)
		w.reach(w.sup)
	}
	w.sound(w.service(w.log, jobsProjector{}), "jobs")
	if s := w.status("jobs"); s.Failure != nil || s.Lag != 0 {
		t.Errorf("got %+v", s)
	}
}

// The commit of a batch whose answer was lost must not be followed by the same
// batch again.
func TestApplyingABatchTwiceIsImpossible(t *testing.T) {
	t.Parallel()
	w := setup(t)
	lives(w.log, "j", 30)
	all, err := listGenerations(w.ctx(), w.sup.db)
	if err != nil {
		t.Fatal(err)
	}
	g := all[slices.IndexFunc(all, func(g generation) bool { return g.Name == "jobs" })]
	r := w.sup.runner(jobsProjector{}, g)
	l, err := acquire(w.ctx(), w.sup.db, g, r.owner, time.Minute)
	if err != nil || l == nil {
		t.Fatalf("acquire: %v, %v", l, err)
	}
	f := &following{runner: r, lease: l}
	batch := f.choose(w.log.events)
	for from := range batch {
		before := l.stored
		if err := f.commit(w.ctx(), batch[from:from+1], eventstore.At(batch[from].Position)); err != nil {
			t.Fatal(err)
		}
		after := l.stored
		l.stored = before // as if the commit's answer had been lost
		for to := from + 1; to <= len(batch); to += 7 {
			if err := f.commit(w.ctx(), batch[from:to], eventstore.At(batch[to-1].Position)); !errors.Is(err, errNotOwner) {
				t.Fatalf("the same batch again: %v", err)
			}
		}
		l.stored = after
	}
	w.sound(w.sup, "jobs")
}

func TestTwoRunnersNeverAdvanceOneCheckpoint(t *testing.T) {
	t.Parallel()
	w := setup(t)
	others := []*Supervisor{w.sup, w.service(w.log, All()...), w.service(w.log, All()...)}
	for _, s := range others {
		w.run(s)
	}
	for i := range 60 {
		lives(w.log, fmt.Sprint("a", i, "-"), 5)
		// The lease ends under whoever has it, as if they had been asleep.
		w.exec("UPDATE projection_checkpoints SET lease_until = now() - interval '1 hour'")
		if i%10 == 0 {
			w.reach(others[i/10%len(others)])
		}
	}
	for _, s := range others {
		w.reach(s)
	}
	w.sound(w.sup, names()...)
	handled := len((&following{runner: w.sup.runner(jobsProjector{}, generation{}), lease: &lease{}}).choose(w.log.events))
	if s := w.status("jobs"); s.Applied != int64(handled) {
		t.Errorf("%d events were applied, the log has %d", s.Applied, handled)
	}
	if n := w.count("SELECT max(epoch) FROM projection_checkpoints"); n < 3 {
		t.Errorf("the lease changed hands %d times: the test shows nothing", n)
	}
}

func TestAServiceThatStopsLetsTheNextOneStartAtOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stop := w.run(w.sup)
	lives(w.log, "a", 10)
	w.reach(w.sup)
	stop()
	if n := w.count("SELECT COUNT(*) FROM projection_checkpoints WHERE owner IS NOT NULL"); n != 0 {
		t.Errorf("%d leases are still held", n)
	}
	next := w.service(w.log, All()...)
	next.limits.lease = time.Hour
	w.run(next)
	lives(w.log, "b", 10)
	w.reach(next)
	w.sound(next, "jobs")
}

func TestUnknownEventsAreCountedAndPassedOver(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	w.log.append("weather-1", nil, nil, nil)
	w.log.append(domain.JobStream("j1"), created("acc"))
	w.reach(w.sup)
	if s := w.status("jobs"); s.Unknown != 3 || s.Applied != 1 {
		t.Errorf("got %+v", s)
	}
}

func TestAPoisonEventStopsTheLine(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stream := domain.AccountStream("acc")
	w.log.append(stream, &account.Created{Name: "shop"}, issued(1))
	poison := w.log.append(stream, issued(1)) // the same hash once more
	w.log.append(stream, issued(2))
	w.run(w.sup)

	stopped := func(attempts int) {
		t.Helper()
		w.eventually("access stops", func() bool {
			f := w.status("access").Failure
			return f != nil && f.Attempts == attempts
		})
		f := w.status("access").Failure
		if f.Category != CategoryConstraint || f.Position != poison || f.Detail == "" {
			t.Errorf("got %+v", f)
		}
		if _, found, err := w.reads.Access.Key(w.ctx(), "hash1"); !found || err != nil {
			t.Errorf("what precedes the poison is applied: %v, %v", found, err)
		}
		if _, found, err := w.reads.Access.Key(w.ctx(), "hash2"); found || err != nil {
			t.Errorf("what follows the poison is not applied: %v, %v", found, err)
		}
	}
	stopped(1)
	if problem := w.status("access").Problem(); problem != "projection access stopped at 3/3 (constraint)" {
		t.Errorf("problem: %q", problem)
	}

	var stop *StoppedError
	if err := w.sup.WaitFor(w.ctx(), w.log.Head()); !errors.As(err, &stop) || stop.Name != "access" {
		t.Errorf("who waits is told at once: %v", err)
	}
	if err := w.sup.WaitFor(w.ctx(), domain.Position{Commit: 2, Prepare: 2}); err != nil {
		t.Errorf("what was applied can still be waited for: %v", err)
	}

	if err := Retry(w.ctx(), w.db, "access"); err != nil {
		t.Fatal(err)
	}
	stopped(2)

	if err := Retry(w.ctx(), w.db, "jobs"); err == nil {
		t.Error("a projection that runs was retried")
	}
	if err := Skip(w.ctx(), w.db, "access", domain.Position{Commit: 2, Prepare: 2}, "ops", "a guess"); err == nil {
		t.Error("an event was skipped that stopped nothing")
	}
	if err := Skip(w.ctx(), w.db, "access", poison, "ops", ""); err == nil {
		t.Error("an event was skipped for no reason")
	}
	if err := Skip(w.ctx(), w.db, "access", poison, "ops", "issued twice"); err != nil {
		t.Fatal(err)
	}
	w.reach(w.sup)
	if _, found, err := w.reads.Access.Key(w.ctx(), "hash2"); !found || err != nil {
		t.Errorf("the line goes on behind the skip: %v, %v", found, err)
	}
	skips, err := Skips(w.ctx(), w.db, "access")
	if err != nil || len(skips) != 1 {
		t.Fatalf("skips: %+v, %v", skips, err)
	}
	if s := skips[0]; s.Position != poison || s.Who != "ops" || s.Why != "issued twice" || s.Detail == "" || s.At.IsZero() {
		t.Errorf("got %+v", s)
	}
	if s := w.status("access"); s.Skipped != 1 || s.Failure != nil || s.State != Live {
		t.Errorf("got %+v", s)
	}
	w.sound(w.sup, "access")
	if err := w.sup.Rebuild(w.ctx(), "access", nil); err != nil {
		t.Errorf("a rebuild passes over what was skipped: %v", err)
	}
}

func TestAnUndecodableEventStopsEveryProjection(t *testing.T) {
	t.Parallel()
	w := setup(t)
	lives(w.log, "a", 3)
	bad := w.log.append(domain.JobStream("bad"), created("acc"))
	w.log.spoil(bad)
	lives(w.log, "b", 3)
	w.run(w.sup)
	for _, name := range names() {
		w.eventually(name+" stops", func() bool { return w.status(name).Failure != nil })
		if f := w.status(name).Failure; f.Category != CategoryDecode || f.Position != bad {
			t.Errorf("%s: %+v", name, f)
		}
		if err := Skip(w.ctx(), w.db, name, bad, "ops", "written by a bug"); err != nil {
			t.Fatal(err)
		}
	}
	w.reach(w.sup)
	w.sound(w.sup, names()...)
}

// A zombie whose lease was taken over while it applied a batch must not
// commit it.
func TestATakeOverDuringABatchFencesTheOldOwner(t *testing.T) {
	t.Parallel()
	w := setup(t)
	lives(w.log, "a", 5)
	all, err := listGenerations(w.ctx(), w.sup.db)
	if err != nil {
		t.Fatal(err)
	}
	g := all[slices.IndexFunc(all, func(g generation) bool { return g.Name == "jobs" })]
	tenure := func(owner string) *following {
		r := w.sup.runner(jobsProjector{}, g)
		r.owner = owner
		l, err := acquire(w.ctx(), w.sup.db, g, owner, time.Nanosecond)
		if err != nil || l == nil {
			t.Fatalf("acquire: %v, %v", l, err)
		}
		return &following{runner: r, lease: l}
	}
	old := tenure("old")
	heir := tenure("heir")
	batch := old.choose(w.log.events)
	next := eventstore.At(batch[len(batch)-1].Position)
	if err := old.commit(w.ctx(), batch, next); !errors.Is(err, errNotOwner) {
		t.Errorf("the old owner's batch: %v", err)
	}
	if err := heir.commit(w.ctx(), batch, next); err != nil {
		t.Errorf("the heir's batch: %v", err)
	}
	if l, err := acquire(w.ctx(), w.sup.db, g, "third", time.Minute); err != nil || l != nil {
		t.Errorf("a lease in force was taken: %v, %v", l, err)
	}
	w.sound(w.sup, "jobs")
}

// A new projection exists, with its views, before anything is in the log.
func TestManyServicesPrepareAtOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := w.sup.Prepare(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := w.count("SELECT COUNT(*) FROM projection_checkpoints"); n != len(All()) {
		t.Errorf("%d generations, want one of each projection", n)
	}
	if _, total, err := w.reads.Jobs.List(w.ctx(), "acc", JobFilter{Limit: 1}); err != nil || total != 0 {
		t.Errorf("an empty read model answers: %d, %v", total, err)
	}
}

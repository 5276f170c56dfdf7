package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/jobs"
)

// grouped is a world that sees in which transaction each read model wrote last, and
// may be in the way of one.
type grouped struct {
	*world
	jobs int // recorded, each handled by the read models jobs and history

	mu    sync.Mutex
	wrote map[string]wrote
	fault map[string]func(ctx context.Context, tx *sqlx.Tx) error
}

// wrote is what is known of a consumer's transactions.
type wrote struct {
	times int
	ID    int64  `db:"id"`    // of the last
	Plans string `db:"plans"` // in it
}

// watched is a projector whose transactions the test sees.
type watched struct {
	consumer.Projector
	c *grouped
}

func (w watched) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	if err := w.c.note(ctx, tx, w.Name()); err != nil {
		return err
	}
	fault := w.c.faultOf(w.Name())
	if err := w.Projector.Apply(ctx, tx, schema, batch); err != nil {
		return err
	}
	return fault(ctx, tx)
}

// faultOf is what a consumer's writes meet now.
func (c *grouped) faultOf(name string) func(ctx context.Context, tx *sqlx.Tx) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if fault := c.fault[name]; fault != nil {
		return fault
	}
	return func(context.Context, *sqlx.Tx) error { return nil }
}

// note notes the transaction in which a consumer writes.
func (c *grouped) note(ctx context.Context, tx *sqlx.Tx, name string) error {
	var last wrote
	if err := tx.GetContext(ctx, &last, "SELECT txid_current() AS id, current_setting('plan_cache_mode') AS plans"); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	last.times = c.wrote[name].times + 1
	c.wrote[name] = last
	return nil
}

// last is what is known of a consumer's transactions by now.
func (c *grouped) last(name string) wrote {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrote[name]
}

// newGrouped prepares many read models, the lazy ones as the test wants them, and others.
func newGrouped(t *testing.T, lazy func(watched) consumer.Consumer, others ...func(*grouped) consumer.Consumer) *grouped {
	t.Helper()
	c := &grouped{wrote: map[string]wrote{}, fault: map[string]func(context.Context, *sqlx.Tx) error{}}
	var consumers []consumer.Consumer
	for _, one := range manyModels() {
		w := watched{one.(consumer.Projector), c}
		if _, isLazy := one.(consumer.Lazy); isLazy {
			consumers = append(consumers, lazy(w))
		} else {
			consumers = append(consumers, w)
		}
	}
	for _, other := range others {
		consumers = append(consumers, other(c))
	}
	c.world = setup(t, consumers...)
	return c
}

// patiently has no transaction fail because the machine is slow.
func patiently(l *consumer.Limits) { l.Shared, l.Lease = time.Minute, time.Hour }

// asTheyAre has the lazy read models gather as they do.
func asTheyAre(w watched) consumer.Consumer { return w.Projector }

// setupGroup runs many read models until all share their transactions.
func setupGroup(t *testing.T, change ...func(*consumer.Limits)) *grouped {
	t.Helper()
	c := newGrouped(t, asTheyAre)
	for _, one := range change {
		c.Sup.ChangeLimits(one)
	}
	c.Run(c.Sup)
	c.submit()
	c.Reach(c.Sup)
	c.shares()
	return c
}

// breaks has a read model's next writes meet a fault; nil: none.
func (c *grouped) breaks(name string, fault func(ctx context.Context, tx *sqlx.Tx) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault[name] = fault
}

// submit records an event for jobs, history and others.
func (c *grouped) submit() domain.Position {
	c.jobs++
	return c.Log.Record(domain.JobStream(fmt.Sprint("job", c.jobs)), modeltest.Created("acc"))
}

// together says that some consumers wrote last in one transaction.
func (c *grouped) together(names ...string) bool {
	for _, name := range names {
		if c.last(name).ID != c.last(names[0]).ID {
			return false
		}
	}
	return true
}

// shares waits until jobs and history write in one transaction.
func (c *grouped) shares() {
	c.T.Helper()
	c.Eventually("the read models share a transaction", func() bool {
		c.submit()
		c.Reach(c.Sup)
		return c.together("jobs", "history")
	})
}

func TestConsumersThatHaveCaughtUpShareATransaction(t *testing.T) {
	t.Parallel()
	c := setupGroup(t, patiently)
	for range 20 {
		c.submit()
		c.Reach(c.Sup)
		if !c.together("jobs", "history") {
			t.Error("an event was written by a transaction for each read model")
		}
	}
	if got := c.last("jobs").Plans; got != "force_generic_plan" {
		t.Errorf("statements are planned with %s", got)
	}
	c.Sound(c.Sup, names(manyModels())...)
}

// Also while somebody waits in another process, of whom nothing more is known here.
func TestTheBeginningOfACommandWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	c := setupGroup(t, patiently, func(l *consumer.Limits) { l.Hold = time.Hour })
	listening, err := sqlx.ConnectContext(c.Ctx(), "postgres", pgpool.Named(pgtest.DSN(t, c.DB), consumer.ListenerName))
	must.NoError(t, err)
	defer func() { _ = listening.Close() }()
	c.Log.Record(domain.CreditsStream("acc"), &credits.Granted{LotID: "lot", Amount: 1 << 20})
	debit := func() domain.Position {
		return c.Log.Record(domain.CreditsStream("acc"), &credits.Debited{
			JobID: fmt.Sprint("job", c.jobs+1), Amount: 1, Parts: []credits.Part{{LotID: "lot", Amount: 1}},
		})
	}
	c.Eventually("a charge and its job share a transaction", func() bool {
		at := debit()
		c.Eventually("the charge is read", func() bool { return slices.Contains(c.Log.Asked(), eventstore.At(at)) })
		c.submit()
		c.Reach(c.Sup)
		return c.together("credits", "ledger", "jobs")
	})
	if err := c.Sup.WaitFor(c.Ctx(), debit()); err != nil {
		t.Errorf("who waits for the charge itself: %v", err)
	}
	c.Sound(c.Sup, names(manyModels())...)
}

func TestAPoisonEventIsSetAsideByOneOfThoseThatShareATransaction(t *testing.T) {
	t.Parallel()
	c := setupGroup(t)
	stream := domain.AccountStream("acc")
	c.Log.Record(stream, &account.Created{Name: "shop"}, modeltest.Issued(1))
	c.Reach(c.Sup)
	poison := c.Log.Record(stream, modeltest.Issued(1)) // the same hash once more
	last := c.submit()
	c.reach(last, "access", "jobs", "history")
	if aside := c.Status("access").SetAside; len(aside) != 1 || aside[0].Position != poison || aside[0].Category != generation.CategoryConstraint {
		t.Errorf("got %+v, want the event at %s", aside, poison)
	}
	c.Eventually("the others share a transaction again", func() bool {
		c.reach(c.submit(), "jobs", "history")
		return c.together("jobs", "history")
	})
	c.Sound(c.Sup, names(manyModels())...)
	must.NoError(t, generation.Skip(c.Ctx(), c.DB, "access", poison, "ops", "issued twice"))
	c.Eventually("it is skipped", func() bool { return len(c.Status("access").SetAside) == 0 })
	c.Sound(c.Sup, names(manyModels())...)
}

func TestALostLeaseIsLostByOneOfThoseThatShareATransaction(t *testing.T) {
	t.Parallel()
	c := setupGroup(t)
	c.Exec("UPDATE projection_checkpoints SET owner = 'thief', epoch = epoch + 1, lease_until = now() + interval '1 hour' WHERE name = 'jobs'")
	applied := c.Status("jobs").Applied
	c.reach(c.submit(), "history")
	c.reach(c.submit(), "history")
	if got := c.Status("jobs"); got.Applied != applied {
		t.Errorf("%d events were applied without the lease", got.Applied-applied)
	}
	if n := c.Count("SELECT count(*) FROM readmodel.jobs"); n != c.jobs-2 {
		t.Errorf("%d jobs are shown, want the %d from before", n, c.jobs-2)
	}
	c.Exec("UPDATE projection_checkpoints SET lease_until = now() - interval '1 hour' WHERE name = 'jobs'")
	c.Reach(c.Sup)
	c.shares()
	c.Sound(c.Sup, names(manyModels())...)
}

// Both belong to one projection until the runner of the old generation learns of its end.
func TestAReplacedGenerationIsNotWrittenWithItsSuccessor(t *testing.T) {
	t.Parallel()
	w := setup(t, jobs.Projector)
	old, err := w.Sup.Acquire(w.Ctx(), jobs.Projector, "old", time.Hour)
	must.NoError(t, err)
	must.NoError(t, w.Sup.RebuildAll(w.Ctx(), []string{"jobs"}, nil))
	next, err := w.Sup.AcquireGeneration(w.Ctx(), jobs.Projector, 2, "next", time.Hour)
	must.NoError(t, err)
	w.Log.Record(domain.JobStream("job"), modeltest.Created("acc"))
	if err := w.Sup.CommitTogether(w.Ctx(), w.Log.All(), old, next); err == nil {
		t.Errorf("it has %d jobs, and %d are shown", w.Count("SELECT count(*) FROM "+jobsSchema(1)+".jobs"), w.Count("SELECT count(*) FROM readmodel.jobs"))
	}
	must.NoError(t, w.Sup.CommitTogether(w.Ctx(), w.Log.All(), next))
	w.Sound(w.Sup, "jobs")
	w.soundAt(w.Sup, "jobs", 1)
}

// Whoever writes last takes what the others wrote with it, and all of it comes again.
func TestASharedTransactionThatIsNotCommittedLeavesNothing(t *testing.T) {
	t.Parallel()
	c := setupGroup(t)
	for _, name := range []string{"jobs", "history", "credits"} {
		var killed sync.Once
		c.breaks(name, func(ctx context.Context, tx *sqlx.Tx) (err error) {
			killed.Do(func() {
				if _, err = tx.ExecContext(ctx, "SELECT pg_terminate_backend(pg_backend_pid())"); err == nil {
					t.Error("the connection outlived its end")
				}
			})
			return err
		})
		c.Log.Record(domain.CreditsStream("acc"), &credits.Granted{LotID: "lot of " + name, Amount: 100})
		c.submit()
		modeltest.Lives(c.Log, name+"-", 5)
		c.Reach(c.Sup)
	}
	c.Sound(c.Sup, names(manyModels())...)
	for _, name := range []string{"jobs", "history", "credits"} {
		handled := 0
		all := manyModels()
		types := all[slices.Index(names(manyModels()), name)].Handles()
		for _, e := range c.Log.All() {
			if slices.Contains(types, e.Type) {
				handled++
			}
		}
		if s := c.Status(name); s.Applied != int64(handled) {
			t.Errorf("%s has applied %d events, the log has %d", name, s.Applied, handled)
		}
	}
}

func TestAReadModelThatIsHeldUpHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	c := setupGroup(t)
	holding, err := c.DB.BeginTxx(c.Ctx(), nil)
	must.NoError(t, err)
	defer func() { _ = holding.Rollback() }()
	_, err = holding.ExecContext(c.Ctx(), "LOCK TABLE "+c.Status("jobs").Schema+".jobs IN ACCESS EXCLUSIVE MODE")
	must.NoError(t, err)
	c.reach(c.submit(), "history")
	must.NoError(t, holding.Rollback())
	c.Reach(c.Sup)
	c.Sound(c.Sup, "jobs", "history")
}

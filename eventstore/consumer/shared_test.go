package consumer_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/testing/must"
)

// announcer is a Preparer that writes a row for each job, once.
type announcer struct {
	name string
	c    *grouped

	mu     sync.Mutex
	refuse domain.Position // no word can be found for what is there
	wrote  int             // transactions, committed or not
	heard  []error         // of those
}

var (
	_ consumer.Committer = (*announcer)(nil)
	_ consumer.Lazy      = (*announcer)(nil)
)

func (a *announcer) Name() string              { return a.name }
func (*announcer) Gather() time.Duration       { return 0 }
func (*announcer) Handles() []string           { return domain.TypesOf((*job.Created)(nil)) }
func (*announcer) Begin(context.Context) error { return nil }

func (a *announcer) Prepare(_ context.Context, batch []domain.Recorded) (write consumer.Write, done int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range batch {
		if r.Position == a.refuse {
			err = &consumer.PoisonError{Category: generation.CategoryPayload, Err: errors.New("no word for it")}
			break
		}
		done++
	}
	batch = batch[:done]
	return func(ctx context.Context, tx *sqlx.Tx) error {
		a.mu.Lock()
		a.wrote++
		a.mu.Unlock()
		for _, r := range batch {
			if _, err := tx.ExecContext(ctx, "INSERT INTO announced VALUES ($1, $2)", a.name, r.Stream); err != nil {
				return err
			}
		}
		if err := a.c.note(ctx, tx, a.name); err != nil {
			return err
		}
		return a.c.faultOf(a.name)(ctx, tx)
	}, done, err
}

func (a *announcer) Committed(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = append(a.heard, err)
}

func (a *announcer) heardOf(err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.heard, func(heard error) bool { return errors.Is(heard, err) })
}

// setupAnnouncers runs many read models and two announcers, until those share a transaction.
func setupAnnouncers(t *testing.T) (*grouped, *announcer) {
	t.Helper()
	a, crier := &announcer{name: "announcer"}, &announcer{name: "crier"}
	join := func(a *announcer) func(*grouped) consumer.Consumer {
		return func(c *grouped) consumer.Consumer {
			a.c = c
			return a
		}
	}
	c := newGrouped(t, asTheyAre, join(a), join(crier))
	c.Exec("CREATE TABLE announced (who text, stream text, PRIMARY KEY (who, stream))")
	c.Run(c.Sup)
	c.announces()
	return c, a
}

// announces waits until the announcers share a transaction.
func (c *grouped) announces() {
	c.T.Helper()
	c.Eventually("the announcers share a transaction", func() bool {
		c.reach(c.submit(), "announcer", "crier", "jobs")
		return c.together("announcer", "crier")
	})
}

func TestWhoPreparesSharesATransactionAndHearsOfItsEnd(t *testing.T) {
	t.Parallel()
	c, a := setupAnnouncers(t)
	if c.together("announcer", "jobs") {
		t.Error("the announcers wait for the read models")
	}
	broken := errors.New("broken off")
	c.Eventually("it hears of a transaction that is broken off", func() bool {
		var once sync.Once
		c.breaks("crier", func(context.Context, *sqlx.Tx) (err error) {
			once.Do(func() { err = broken })
			return err
		})
		c.reach(c.submit(), "announcer", "crier") // each by itself
		if a.heardOf(broken) {
			return true
		}
		c.announces() // they had parted
		return false
	})
	c.Eventually("it has heard of each", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.heard) >= a.wrote
	})
	if n := c.Count("SELECT count(*) FROM announced WHERE who = 'announcer'"); n != c.jobs {
		t.Errorf("%d of %d jobs were announced", n, c.jobs)
	}
}

func TestWhatCannotBePreparedIsSetAside(t *testing.T) {
	t.Parallel()
	c, a := setupAnnouncers(t)
	a.mu.Lock()
	poison := c.submit()
	a.refuse = poison
	a.mu.Unlock()
	c.reach(c.submit(), "announcer", "crier")
	if aside := c.Status("announcer").SetAside; len(aside) != 1 || aside[0].Position != poison || aside[0].Category != generation.CategoryPayload {
		t.Errorf("got %+v, want the event at %s", aside, poison)
	}
	c.shares()
	announced := func() int { return c.Count("SELECT count(*) FROM announced WHERE who = 'announcer'") }
	c.reach(c.submit(), "announcer")
	if n := announced(); n != c.jobs-1 {
		t.Errorf("%d of %d jobs were announced, want all but one", n, c.jobs)
	}
	a.mu.Lock()
	a.refuse = domain.Position{}
	a.mu.Unlock()
	must.NoError(t, generation.Retry(c.Ctx(), c.DB, "announcer"))
	c.Eventually("it is announced late", func() bool { return len(c.Status("announcer").SetAside) == 0 })
	if n := announced(); n != c.jobs {
		t.Errorf("%d of %d jobs were announced", n, c.jobs)
	}
	c.Sound(c.Sup, names(manyModels())...)
}

// patient has a read model gather for so long that only who waits ends it.
type patient struct{ watched }

func (patient) Gather() time.Duration { return time.Hour }

// leisurely has a read model gather for two seconds.
type leisurely struct{ watched }

func (leisurely) Gather() time.Duration { return 2 * time.Second }

// A burst is more than one batch. Rested between all of them, it would take minutes, and
// timers that are due would wait for it.
func TestABurstIsNotGatheredPageByPage(t *testing.T) {
	t.Parallel()
	c := newGrouped(t, func(w watched) consumer.Consumer { return leisurely{w} })
	c.Sup.ChangeLimits(func(l *consumer.Limits) { l.Live = 4 })
	c.Run(c.Sup)
	c.Eventually("feed and timers share a transaction", func() bool {
		c.submit()
		c.Reach(c.Sup)
		must.NoError(t, errors.Join(c.Sup.CatchUp(c.Ctx(), "events"), c.Sup.CatchUp(c.Ctx(), "timers")))
		return c.together("events", "timers")
	})
	for range 200 {
		c.submit()
	}
	head := c.Log.Head()
	c.Eventually("the timers are set", func() bool { return c.Status("timers").Position.Compare(head) >= 0 })
}

func TestWhatGathersIsWrittenTogetherOnceSomebodyWaits(t *testing.T) {
	t.Parallel()
	c := newGrouped(t, func(w watched) consumer.Consumer { return patient{w} })
	c.Run(c.Sup)
	flush := func() {
		for _, name := range []string{"events", "timers"} {
			must.NoError(t, c.Sup.CatchUp(c.Ctx(), name))
		}
	}
	c.Eventually("feed and timers share a transaction", func() bool {
		c.submit()
		c.Reach(c.Sup)
		flush()
		return c.together("events", "timers")
	})
	before := c.last("events").times
	for range 10 {
		c.submit()
		c.Reach(c.Sup)
	}
	if c.last("events").times != before {
		t.Error("the feed does not gather")
	}
	flush()
	if took := c.last("events").times - before; took > 3 { // one, unless the machine stands still
		t.Errorf("ten jobs took %d batches of the feed", took)
	}
	c.Sound(c.Sup, names(manyModels())...)
}

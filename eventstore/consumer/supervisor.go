package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
	"humanqa/eventstore/sharedscan"
	"humanqa/internal/backoff"
	"humanqa/internal/pgpool"
	"humanqa/internal/tracing"
)

// Supervisor runs the consumers of this process, and knows the progress of all
// consumers, in any process.
type Supervisor struct {
	db        *sqlx.DB
	source    Source
	scan      *sharedscan.Scan // of the log, for all read models that are built or verified
	log       logrus.FieldLogger
	consumers []Consumer
	tracker   *progressTracker
	stalls    stalls
	yields    yields
	limits    Limits
	notifies  atomic.Bool // another process waits for consumers that run here
	tracer    *tracing.Tracer
	session   string // part of the names of this process's owners, and of its connection
	peers     pgpool.Sessions
}

// TraceWith makes batches of rows record spans of the requests behind them. It is called before Run.
func (s *Supervisor) TraceWith(t *tracing.Tracer) { s.tracer = t }

// New makes a supervisor; nothing runs before Run. A node that only serves the
// API calls Prepare, WaitFor and Status, and never Run.
func New(db *sqlx.DB, source Source, log logrus.FieldLogger, consumers ...Consumer) *Supervisor {
	return &Supervisor{
		db: db, source: source, scan: sharedscan.New(source, defaultLimits().Rebuild, sharedscan.Patience),
		log:       log.WithField("component", "consumers"),
		consumers: consumers,
		tracker:   newProgressTracker(db, consumers), limits: defaultLimits(), session: uuid.NewString(),
	}
}

// SetLimits changes the sizes and times of all runners, before Run.
func (s *Supervisor) SetLimits(l Limits) {
	s.limits, s.scan = l, sharedscan.New(s.source, l.Rebuild, cmp.Or(l.Together, sharedscan.Patience))
}

// Prepare creates the schemas and views of projections that are new. It is
// safe to call by any number of processes at once, and by Run itself.
func (s *Supervisor) Prepare(ctx context.Context) error {
	return generation.Prepare(ctx, s.db, s.consumers)
}

// Run keeps a runner for every generation that this binary's code can advance,
// until ctx ends, which gives nil; then all leases are released.
func (s *Supervisor) Run(ctx context.Context) error { return s.runConsumers(ctx, s.consumers) }

// Only gives a Run for some of the consumers.
func (s *Supervisor) Only(names ...string) func(context.Context) error {
	var wanted []Consumer
	for _, c := range s.consumers {
		if slices.Contains(names, c.Name()) {
			wanted = append(wanted, c)
		}
	}
	return func(ctx context.Context) error { return s.runConsumers(ctx, wanted) }
}

func (s *Supervisor) runConsumers(ctx context.Context, consumers []Consumer) error {
	if err := s.Prepare(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	runners := newRunnerSet(s, consumers)
	defer runners.running.Wait()
	runners.startBatches(ctx)
	tick := time.NewTicker(s.limits.StandBy)
	defer tick.Stop()
	for blind := false; ; {
		err := s.lookForWork(ctx, runners)
		if err != nil && !blind && ctx.Err() == nil { // logged once an outage, not once a tick
			s.log.WithError(err).Warn("the projections' orders cannot be read, trying again")
		}
		blind = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// listenerName is the name of a connection whose process waits for consumers of others.
const listenerName = "humanqa waits"

// lookSQL is one statement, since it runs often. It gives every generation. Each row also has
// the orders to rebuild, the sessions of all processes, and whether another process waits for
// consumers here. Before the first generation there is nothing to do.
const lookSQL = `
SELECT ` + generation.Columns + `, around.*,
    EXISTS (
        SELECT FROM projection_set_aside a
        WHERE (a.name, a.generation) = (projection_checkpoints.name, projection_checkpoints.generation)
          AND a.due_at <= clock_timestamp()) AS due
FROM projection_checkpoints
CROSS JOIN (
    SELECT ARRAY(SELECT r.name FROM projection_rebuilds r ORDER BY r.requested_at) AS orders,
        pg_postmaster_start_time() AS started,
        ARRAY(
            SELECT substr(a.application_name, length('consumers ') + 1)
            FROM pg_stat_activity a
            WHERE a.datname = current_database()
              AND a.application_name LIKE 'consumers %') AS present,
        EXISTS (
            SELECT FROM pg_stat_activity
            WHERE datname = current_database()
              AND application_name = $1) AS waited) around
ORDER BY name, generation`

// lookForWork takes orders, starts missing runners, ends the leases of dead processes, and
// drops retired generations.
func (s *Supervisor) lookForWork(ctx context.Context, runners *runnerSet) error {
	var seen []struct {
		generation.Generation
		Orders  pq.StringArray `db:"orders"`
		Started time.Time      `db:"started"` // the database
		Present pq.StringArray `db:"present"`
		Waited  bool           `db:"waited"`
		Due     bool           `db:"due"` // an event that was set aside is to be tried again
	}
	if err := s.db.SelectContext(ctx, &seen, lookSQL, listenerName); err != nil {
		return fmt.Errorf("read the checkpoints and orders: %w", err)
	}
	if len(seen) == 0 {
		return nil
	}
	s.notifies.Store(seen[0].Waited)
	if err := runners.takeOrders(ctx, seen[0].Orders); err != nil { // the next look starts the builds' runners
		return err
	}
	retired := false
	came := s.scan.Await() // all runners that start together
	all := make([]generation.Generation, len(seen))
	for i, g := range seen {
		all[i] = g.Generation
		if g.State == generation.Retired {
			retired = true
			continue
		}
		runners.startRunner(ctx, g.Generation)
		if g.Due {
			runners.remindRunner(g.Schema)
		}
	}
	came()
	s.observeStalls(all)
	if err := endLeases(ctx, s.db, s.peers.Dead(seen[0].Started, seen[0].Present), all); err != nil {
		return err
	}
	if !retired {
		return nil
	}
	err := generation.DropRetired(ctx, s.db, s.limits.Retired)
	if err != nil && transient(err) {
		return nil // a reader still holds it, the next look may find it free
	}
	return err
}

// takeOrders turns operators' orders into generations to build. Orders for
// projections that this binary does not have, or has an older version of, are
// left to the services that can follow them.
func (c *runnerSet) takeOrders(ctx context.Context, names []string) error {
	for _, name := range names {
		p, ok := byName(c.consumers, name).(Projector)
		if !ok {
			continue
		}
		err := pgpool.InTx(ctx, c.s.db, func(tx *sqlx.Tx) error {
			if err := generation.TakeOrder(ctx, tx, name); err != nil {
				return err
			}
			_, err := generation.StartBuild(ctx, tx, p)
			return err
		})
		if err != nil && !errors.Is(err, generation.ErrNotOwner) && !errors.Is(err, generation.ErrOldCode) {
			return fmt.Errorf("follow the order to rebuild %s: %w", name, err)
		}
	}
	return nil
}

// Follow reads the log from a position on until ctx ends, which gives nil. So
// WaitFor and CatchUp need not wait for consumers of other processes that have
// nothing to do. Over dsn, notifications tell when those have moved. Without Follow
// they wait until every stored checkpoint has passed the position.
func (s *Supervisor) Follow(ctx context.Context, dsn string, from domain.Position) error {
	a := s.tracker
	at := eventstore.Checkpoint{Position: from, Start: from == domain.Position{}}
	a.startFollowing(at, func() <-chan struct{} {
		return pgpool.Listen(ctx, pgpool.Named(dsn, listenerName), generation.Channel, nil)
	})
	for ctx.Err() == nil {
		page, err := s.source.Next(ctx, at, s.limits.Live, nil)
		var unreadable *eventstore.DecodeError
		switch {
		case ctx.Err() != nil:
		case errors.As(err, &unreadable):
			at = eventstore.At(unreadable.Position)
			a.noteUnreadable(unreadable.Position)
		case err != nil:
			// Meanwhile waits end by the part of the log that was followed before, and
			// by the stored checkpoints.
			s.log.WithError(err).WithField("again_in", s.limits.MaxBackoff.String()).Warn("the log cannot be followed")
			_ = backoff.Wait(ctx, s.limits.MaxBackoff) // the loop finds out that ctx has ended
		default:
			at = eventstore.At(page.Next)
			a.notePage(page.Events, page.Next)
		}
	}
	return nil
}

// WaitFor blocks until the serving generation of every registered projection that is
// not Lazy shows the position: it has seen every event up to there that it handles. A
// projection that has not started counts, too. It fails at once with a *StoppedError if
// one of them stopped before.
func (s *Supervisor) WaitFor(ctx context.Context, position domain.Position) error {
	return s.tracker.waitFor(ctx, position)
}

// Shown is the newest position up to which every projection that is not Lazy shows all
// events that it handles, as far as this process knows. It looks for those that run elsewhere.
func (s *Supervisor) Shown(ctx context.Context) (domain.Position, error) {
	return s.tracker.shown(ctx)
}

// CatchUp blocks until the named projection's serving generation has seen all events
// that the others show by now. It is for reads of a lazy projection behind a write.
func (s *Supervisor) CatchUp(ctx context.Context, name string) error {
	return s.tracker.waitForShown(ctx, name)
}

// runnerSet holds the runners of some consumers in one process, one for each generation.
type runnerSet struct {
	s         *Supervisor
	consumers []Consumer
	batches   map[batchKey]*sharedBatch // empty: each runner goes by itself
	running   sync.WaitGroup

	mu      sync.Mutex
	started map[string]*runner // by schema
}

func newRunnerSet(s *Supervisor, consumers []Consumer) *runnerSet {
	return &runnerSet{s: s, consumers: consumers, started: map[string]*runner{}}
}

// startBatches starts a shared batch for each kind of consumer.
func (c *runnerSet) startBatches(ctx context.Context) {
	c.batches = map[batchKey]*sharedBatch{}
	for _, one := range c.consumers {
		with := batchKeyOf(one)
		if c.batches[with] != nil {
			continue
		}
		g := &sharedBatch{Supervisor: c.s, gather: with.gather, joining: make(chan struct{}, 1)}
		c.batches[with] = g
		c.running.Go(func() { g.run(ctx) })
	}
}

// batchKey holds the properties that the consumers of a shared batch have in common. Preparers
// have a batch of their own: other writers wait for the rows that they lock, and must not wait
// for the writes of read models. An Announcer waits for the read models, and no other consumer
// must wait with it.
type batchKey struct {
	gather              time.Duration
	prepares, announces bool
}

func batchKeyOf(c Consumer) batchKey {
	_, prepares := c.(Preparer)
	_, announces := c.(Announcer)
	return batchKey{gatherOf(c), prepares, announces}
}

// gatherOf is how long a lazy consumer gathers events; zero: it follows at once.
func gatherOf(c Consumer) time.Duration {
	if lazy, ok := c.(Lazy); ok {
		return lazy.Gather()
	}
	return 0
}

// startRunner starts a runner for the generation, if its code is in this binary and
// it has none.
func (c *runnerSet) startRunner(ctx context.Context, g generation.Generation) {
	wanted := byName(c.consumers, g.Name)
	if wanted == nil || generation.VersionOf(wanted) != g.Version {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started[g.Schema] != nil {
		return
	}
	r := c.s.newRunner(wanted, g)
	r.batch, r.came = c.batches[batchKeyOf(wanted)], c.s.scan.Await()
	c.started[g.Schema] = r
	c.running.Go(func() {
		r.run(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.started, g.Schema)
	})
}

// remindRunner tells the generation's runner that an event is to be tried again.
func (c *runnerSet) remindRunner(schema string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.started[schema]; r != nil {
		r.remindSetAside()
	}
}

// byName is the consumer of that name, nil if there is none here.
func byName(consumers []Consumer, name string) Consumer {
	for _, c := range consumers {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// projectorNamed is the projector of that name, nil if this process has none.
func (s *Supervisor) projectorNamed(name string) Projector {
	p, _ := byName(s.consumers, name).(Projector)
	return p
}

// newOwner makes the name of a holder of leases: the machine, the process, its session, and a
// unique id.
func (s *Supervisor) newOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown" // the rest tells owners apart
	}
	return fmt.Sprintf("%s:%d/%s.%s", host, os.Getpid(), s.session, uuid.NewString())
}

func (s *Supervisor) newRunner(c Consumer, g generation.Generation) *runner {
	_, raw := c.(RawConsumer)
	r := &runner{
		Supervisor: s, log: s.log.WithFields(logrus.Fields{"consumer": g.Name, "schema": g.Schema}),
		consumer: c, handles: handledBy(c), raw: raw, owner: s.newOwner(), target: g,
		setAsideDue: make(chan struct{}, 1), families: map[string]bool{},
	}
	if _, prepares := c.(Preparer); prepares {
		for eventType := range r.handles {
			r.families[familyOf(eventType)] = true
		}
	}
	return r
}

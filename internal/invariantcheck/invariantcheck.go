// Package invariantcheck runs the checks of the invariants beside the service, once a day
// and when an operator asks for one. One runs at a time over all processes, bounded and
// cancellable. The progress and the findings of a check are in Postgres (schema checkup), so
// that any process can show them. The clock is Postgres'.
package invariantcheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/internal/backoff"
	"humanqa/internal/metrics"
	"humanqa/internal/pgpool"
)

const (
	// beatEvery is how often a check says that it runs, and looks whether it should
	// go on.
	beatEvery = time.Second
	// longest bounds a check.
	longest = time.Hour
	// MaxFindings is how many findings are kept of a check.
	MaxFindings = 200
	// settleWithin bounds the write of a check's result.
	settleWithin = 10 * time.Second
	// scrapeLimit bounds the query of a scrape.
	scrapeLimit = time.Second
	// LookEvery is how often a process looks whether a check is due.
	LookEvery = 10 * time.Minute
	// ByItself is the person of a check that nobody started.
	ByItself = "daily"
)

// Result is the outcome of a check.
type Result struct {
	Events   int             `json:"events"`
	Jobs     int             `json:"jobs"`
	Findings []audit.Finding `json:"findings"`
}

// kept are the findings that are kept, as JSON.
func (r Result) kept() (string, error) {
	kept, err := json.Marshal(append([]audit.Finding{}, r.Findings[:min(len(r.Findings), MaxFindings)]...)) // never null
	return string(kept), err
}

// Progress reports the step of a check, and how many events it has read.
type Progress func(step string, events int)

// Run checks everything once. It ends early with its context's error.
type Run func(ctx context.Context, tell Progress) (Result, error)

// Check is one that was started.
type Check struct {
	ID        uuid.UUID       `db:"id"`
	PersonID  string          `db:"person_id"`
	StartedAt time.Time       `db:"started_at"`
	EndedAt   *time.Time      `db:"ended_at"`
	State     string          `db:"state"` // running, done, cancelled, failed
	Cancel    bool            `db:"cancel"`
	Step      string          `db:"step"`
	Events    int             `db:"events"`
	Jobs      int             `db:"jobs"`
	Found     int             `db:"found"`
	Raw       json.RawMessage `db:"findings"`
	Problem   string          `db:"problem"`
}

// Running says that it has not ended.
func (c Check) Running() bool { return c.State == "running" }

// Took is how long it took.
func (c Check) Took() time.Duration {
	if c.EndedAt == nil {
		return 0
	}
	return c.EndedAt.Sub(c.StartedAt)
}

// Findings are the first MaxFindings.
func (c Check) Findings() (found []audit.Finding) {
	if err := json.Unmarshal(c.Raw, &found); err != nil {
		return nil // written by us
	}
	return found
}

// Checks starts checks and tells of them. It may be used by many goroutines.
type Checks struct {
	metrics.Found

	db  *sqlx.DB
	run Run
	log logrus.FieldLogger

	since time.Time // this process runs

	mu      sync.Mutex
	running sync.WaitGroup
	stopped bool
	stop    context.CancelFunc
	ctx     context.Context
}

// New makes Checks; Stop ends what still runs.
func New(db *sqlx.DB, run Run, log logrus.FieldLogger) *Checks {
	ctx, stop := context.WithCancel(context.Background())
	return &Checks{db: db, run: run, log: log.WithField("component", "checkup"), since: time.Now(), ctx: ctx, stop: stop}
}

// Stop cancels a check that runs here and waits until its result is written.
func (c *Checks) Stop() {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.stop()
	c.running.Wait()
}

// A check ends with its process.
const buryChecksSQL = `
UPDATE checkup.checks
SET state = 'failed',
    ended_at = beat_at,
    problem = 'the process that ran it is gone'
WHERE state = 'running'
  AND beat_at < clock_timestamp() - interval '30 seconds'`

// With $3 a check starts only if none of so many seconds is there. A time ahead of now does
// not count. A check that failed is repeated after an hour.
const startCheckSQL = `
INSERT INTO checkup.checks (id, person_id, started_at, beat_at, state)
SELECT $1, $2, clock_timestamp(), clock_timestamp(), 'running'
WHERE $3::float8 = 0
   OR NOT EXISTS (
    SELECT FROM checkup.checks
    WHERE started_at BETWEEN clock_timestamp() - make_interval(secs => CASE state WHEN 'done' THEN $3 ELSE least($3, 3600) END)
                         AND clock_timestamp())
ON CONFLICT (id) DO NOTHING`

const beatCheckSQL = `
UPDATE checkup.checks
SET beat_at = clock_timestamp(),
    step = $2,
    events = $3
WHERE id = $1
  AND state = 'running'
RETURNING cancel`

const endCheckSQL = `
UPDATE checkup.checks
SET beat_at = clock_timestamp(),
    ended_at = clock_timestamp(),
    state = $2,
    events = $3,
    jobs = $4,
    found = $5,
    findings = $6,
    problem = $7
WHERE id = $1
  AND state = 'running'`

const cancelCheckSQL = `
UPDATE checkup.checks
SET cancel = TRUE
WHERE id = $1
  AND state = 'running'`

const listChecksSQL = `
SELECT id, person_id, started_at, ended_at, state, cancel, step, events, jobs, found, findings, problem
FROM checkup.checks
ORDER BY started_at DESC
LIMIT $1`

const lastDoneSQL = `
SELECT id, person_id, started_at, ended_at, state, cancel, step, events, jobs, found, findings, problem
FROM checkup.checks
WHERE state = 'done'
ORDER BY started_at DESC
LIMIT 1`

// Repeat starts a check whenever no process has done one for so long. It looks again and
// again until ctx ends, and first after one pause: a start has enough to do.
func (c *Checks) Repeat(ctx context.Context, every, look time.Duration) error {
	for backoff.Wait(ctx, look) == nil {
		err := c.start(ctx, uuid.New(), ByItself, every)
		if err != nil && ctx.Err() == nil && !domain.IsKind(err, domain.KindConflict) { // another process was first
			c.log.WithError(err).Warn("the invariants could not be checked, trying again")
		}
	}
	return nil
}

// Start runs a check in this process. The same id again is a repeat; while another
// one runs it is a conflict.
func (c *Checks) Start(ctx context.Context, id uuid.UUID, personID string) error {
	return c.start(ctx, id, personID, 0)
}

// start starts a check, unless one is less than so old.
func (c *Checks) start(ctx context.Context, id uuid.UUID, personID string, every time.Duration) error {
	if err := pgpool.Exec(ctx, c.db, "end checks that no process runs", buryChecksSQL); err != nil {
		return err
	}
	n, err := pgpool.ExecCount(ctx, c.db, "start a check", startCheckSQL, id, personID, every.Seconds())
	if taken, ok := errors.AsType[*pq.Error](err); ok && taken.Constraint == "checks_running" {
		return domain.Conflict("a check is under way").WithHint("wait for it, or cancel it")
	}
	if err != nil || n == 0 {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return c.end(id, "failed", Result{}, "the service was stopping")
	}
	c.running.Go(func() { c.watch(id) })
	return nil
}

// watch runs the check and beats beside it.
func (c *Checks) watch(id uuid.UUID) {
	ctx, cancel := context.WithTimeout(c.ctx, longest)
	defer cancel()
	var (
		now   atomic.Pointer[Check] // the step, and the events that were read
		asked bool                  // to cancel
		out   Result
		err   error
	)
	now.Store(&Check{})
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer end()
		out, err = c.guarded(ctx, func(step string, events int) { now.Store(&Check{Step: step, Events: events}) })
	}()
	for backoff.Wait(running, beatEvery) == nil {
		stop, err := pgpool.One[bool](ctx, c.db, "whether a check is to end", beatCheckSQL, id, now.Load().Step, now.Load().Events)
		if err != nil && ctx.Err() == nil {
			c.log.WithError(err).Warn("a check that runs could not say so")
		}
		if stop {
			asked = true
			cancel()
		}
	}
	state, problem := "done", ""
	switch {
	case err == nil:
		if n := len(out.Findings); n > 0 {
			c.log.WithField("findings", n).Error("invariants do not hold: `humanqa fsck` says which")
		}
	case asked:
		state = "cancelled"
	default:
		state, problem = "failed", err.Error()
		c.log.WithError(err).Warn("a check ended before it was through")
	}
	if err := c.end(id, state, out, problem); err != nil {
		c.log.WithError(err).Warn("what a check found was not kept")
	}
}

// guarded makes an error of a panic: a check must not end the service.
func (c *Checks) guarded(ctx context.Context, tell Progress) (r Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return c.run(ctx, tell)
}

func (c *Checks) end(id uuid.UUID, state string, r Result, problem string) error {
	ctx, cancel := context.WithTimeout(context.Background(), settleWithin)
	defer cancel()
	findings, err := r.kept()
	if err != nil {
		return err
	}
	return pgpool.Exec(ctx, c.db, "end a check", endCheckSQL, id, state, r.Events, r.Jobs, len(r.Findings), findings, problem)
}

// Cancel asks the process that runs the check to end it. A check that has ended is not
// found.
func (c *Checks) Cancel(ctx context.Context, id uuid.UUID) error {
	return pgpool.ExecOne(ctx, c.db, domain.NotFound("check that runs"), "cancel a check", cancelCheckSQL, id)
}

// List gives the newest checks.
func (c *Checks) List(ctx context.Context, limit int) ([]Check, error) {
	if err := pgpool.Exec(ctx, c.db, "end checks that no process runs", buryChecksSQL); err != nil {
		return nil, err
	}
	return pgpool.List[Check](ctx, c.db, "checks", listChecksSQL, limit)
}

// LastDone is the newest check that ran to its end; found is false before the first.
func (c *Checks) LastDone(ctx context.Context) (last Check, found bool, err error) {
	return pgpool.Find[Check](ctx, c.db, "the last check", lastDoneSQL)
}

const recordSQL = `
INSERT INTO checkup.checks (id, person_id, started_at, beat_at, ended_at, state, events, jobs, found, findings)
VALUES ($1, $2, clock_timestamp() - make_interval(secs => $3), clock_timestamp(), clock_timestamp(), 'done', $4, $5, $6, $7)`

// Record keeps the result of a check that ran outside of the service.
func Record(ctx context.Context, db *sqlx.DB, personID string, took time.Duration, r Result) error {
	findings, err := r.kept()
	if err != nil {
		return err
	}
	return pgpool.Exec(ctx, db, "keep a check", recordSQL, uuid.New(), personID, took.Seconds(), r.Events, r.Jobs, len(r.Findings),
		findings)
}

// Problem describes the findings of the last check in one sentence; empty if there are none.
func (c *Checks) Problem(ctx context.Context) (string, error) {
	last, _, err := c.LastDone(ctx)
	if err != nil || last.Found == 0 {
		return "", err
	}
	return fmt.Sprintf("the check of the invariants of %s has %d findings: humanqa fsck", last.StartedAt.UTC().Format(time.RFC3339), last.Found), nil
}

// Collect implements prometheus.Collector. Without Postgres there are no numbers.
func (c *Checks) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	last, found, err := c.LastDone(ctx)
	if err != nil {
		return
	}
	since := c.since
	if found {
		since = last.StartedAt
	}
	gauge := metrics.Gauges(out)
	gauge("humanqa_fsck_findings", "The findings of the last check of the invariants.", float64(last.Found))
	gauge("humanqa_fsck_age_seconds", "How long ago the last complete check of the invariants began; before the first one, how long this "+
		"process runs.", max(time.Since(since).Seconds(), 0))
}

package overall

import (
	"context"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/internal/backoff"
	"humanqa/internal/metrics"
	"humanqa/internal/pgpool"
)

const (
	// scrapeLimit bounds how long a scrape waits.
	scrapeLimit = 2 * time.Second
	// countBatch bounds how many events are counted at a time.
	countBatch = 500
	// countRetry is the pause after a read of the log that failed.
	countRetry = time.Second
	// weighEvery is how often the evidence is summed up: that reads all of its rows.
	weighEvery = 10 * time.Minute
	// weighLimit bounds one sum.
	weighLimit = time.Minute
	// keyPresence and pagePresence are how long a checker counts as present after a
	// request with their key, and after one of their pages. The pages note it once a
	// minute.
	keyPresence  = time.Minute
	pagePresence = 5 * time.Minute
)

// Business gives the business metrics: the queue, the checkers who work on it, and counts
// of the log's events since the process started. Every process with these metrics reports
// the same log.
type Business struct {
	metrics.Found

	reads  *Reads
	db     *sqlx.DB
	source consumer.Source
	now    func() time.Time
	log    logrus.FieldLogger

	claims, misses, granted, used, refunded prometheus.Counter
	evidence                                prometheus.Gauge
	own                                     *prometheus.Registry // with these
}

// NewBusiness prepares; Run makes the counters move.
func NewBusiness(db *sqlx.DB, source consumer.Source, now func() time.Time, log logrus.FieldLogger) *Business {
	own := prometheus.NewRegistry()
	counter := func(name, help string) prometheus.Counter {
		return promauto.With(own).NewCounter(prometheus.CounterOpts{Name: name, Help: help + " since this process started."})
	}
	return &Business{
		reads: NewReads(db), db: db, source: source, now: now, log: log.WithField("component", "metrics"),
		claims:   counter("humanqa_claims_total", "Claims of jobs"),
		misses:   counter("humanqa_sla_misses_total", "Times that a job's SLA ended without a report"),
		granted:  counter("humanqa_credits_granted_total", "Credits granted"),
		used:     counter("humanqa_credits_used_total", "Credits that jobs were charged"),
		refunded: counter("humanqa_credits_refunded_total", "Credits given back"),
		own:      own,
		evidence: promauto.With(own).NewGauge(prometheus.GaugeOpts{
			Name: "humanqa_evidence_bytes", Help: "Evidence and recordings that are kept, summed up every ten minutes.",
		}),
	}
}

// Run counts the log's events after a position, and sums up the evidence, until ctx ends.
func (b *Business) Run(ctx context.Context, from domain.Position) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := b.weigh(ctx); err != nil && ctx.Err() == nil {
				b.log.WithError(err).Warn("what the evidence takes is not known, and looked for again in ten minutes")
			}
			_ = backoff.Wait(ctx, weighEvery)
		}
	}()
	at := eventstore.Checkpoint{Position: from, Start: from == domain.Position{}}
	for ctx.Err() == nil {
		page, err := b.source.Next(ctx, at, countBatch, nil)
		var unreadable *eventstore.DecodeError
		switch {
		case errors.As(err, &unreadable):
			at = eventstore.At(unreadable.Position) // it stops the read models, which report it
		case err != nil:
			_ = backoff.Wait(ctx, countRetry)
		default:
			at = eventstore.At(page.Next)
			for _, e := range page.Events {
				b.count(e.Event)
			}
		}
	}
	<-done
	return nil
}

func (b *Business) count(e domain.Event) {
	switch e := e.(type) {
	case *job.Claimed:
		b.claims.Inc()
	case *job.SLAMissed:
		b.misses.Inc()
	case *credits.Granted:
		b.granted.Add(float64(e.Amount))
	case *credits.Debited:
		b.used.Add(float64(e.Amount))
	case *credits.Refunded:
		b.refunded.Add(float64(e.Amount))
	}
}

// evidenceSQL reads a row a file. A recording that became a piece of evidence is not
// counted again.
const evidenceSQL = `
SELECT (SELECT COALESCE(SUM(size), 0) FROM http_evidence WHERE stored_at IS NOT NULL)
     + (SELECT COALESCE(SUM(size), 0) FROM http_recordings WHERE attached_at IS NULL)`

func (b *Business) weigh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, weighLimit)
	defer cancel()
	bytes, err := pgpool.One[float64](ctx, b.db, "the sum of the evidence", evidenceSQL)
	if err == nil {
		b.evidence.Set(bytes)
	}
	return err
}

// Collect implements prometheus.Collector.
func (b *Business) Collect(to chan<- prometheus.Metric) {
	b.own.Collect(to)
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	if err := b.look(ctx, metrics.Gauges(to)); err != nil {
		b.log.WithError(err).Debug("the queue's metrics cannot be read")
	}
}

// presentSQL holds for a checker c who is present: $1 is since when a key was used, in
// microseconds, $2 since when a page, $3 is now (presence). It looks a few rows up for
// each checker.
const presentSQL = `(EXISTS (
               SELECT
               FROM http_rate r
               WHERE r.caller = 'checker:' || c.checker_id
                 AND r.at > $1)
              OR EXISTS (
               SELECT
               FROM readmodel.person_roles p
               JOIN signin.sessions s ON s.person_id = p.person_id
               WHERE p.checker_id = c.checker_id
                 AND p.checker_id <> ''
                 AND s.seen_at > $2
                 AND s.expires_at > $3))`

// presence are the parameters of presentSQL.
func presence(now time.Time) []any {
	return []any{now.Add(-keyPresence).UnixMicro(), now.Add(-pagePresence), now}
}

const atWorkSQL = `
SELECT COUNT(*) FILTER (
           WHERE ` + presentSQL + `) AS present,
       COALESCE(SUM((
           SELECT COUNT(*)
           FROM readmodel.jobs j
           WHERE j.checker_id = c.checker_id
             AND j.checker_id <> ''
             AND j.completed_at IS NULL
             AND j.status = 'claimed')), 0) AS claims
FROM readmodel.checkers c`

func (b *Business) look(ctx context.Context, gauge metrics.Gauge) error {
	now := b.now()
	queue, err := b.reads.Queue(ctx, now)
	if err != nil {
		return err
	}
	for _, priority := range []string{"urgent", "normal"} {
		jobs, age, used := 0, 0.0, 0.0
		for _, q := range queue {
			if q.Urgent == (priority == "urgent") {
				jobs = q.Jobs
				age = max(now.Sub(*q.Oldest).Seconds(), 0)
				used = max(q.Used, 0)
			}
		}
		gauge("humanqa_queue_jobs", "Jobs that wait for a checker.", float64(jobs), "priority", priority)
		gauge("humanqa_queue_oldest_seconds", "How long ago the oldest job came that waits for a checker.", age, "priority", priority)
		gauge("humanqa_queue_sla_used_ratio", "The part of its SLA that a waiting job has used, of the job with the largest part; above 1 "+
			"the SLA is over.", used, "priority", priority)
	}
	atWork, err := pgpool.One[struct{ Present, Claims float64 }](ctx, b.db, "the checkers at work", atWorkSQL, presence(now)...)
	if err != nil {
		return err
	}
	gauge("humanqa_checkers_present", "Checkers who used their key within a minute, or a page within five.", atWork.Present)
	gauge("humanqa_live_claims", "Jobs that checkers work on.", atWork.Claims)
	return nil
}

package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"

	"humanqa/eventstore"
	"humanqa/eventstore/generation"
	"humanqa/internal/metrics"
	"humanqa/internal/pgpool"
)

// scrapeLimit bounds the one query that a scrape makes.
const scrapeLimit = time.Second

// Collector gives the metrics of the serving generations, wherever they run. A
// scrape that cannot reach Postgres gives none.
func (s *Supervisor) Collector() prometheus.Collector { return collector{s: s} }

type collector struct {
	metrics.Found

	s *Supervisor
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	list, err := c.s.Status(ctx)
	if err != nil {
		c.s.log.WithError(err).Debug("the projections' metrics cannot be read")
		return
	}
	sizes, err := Sizes(ctx, c.s.db)
	if err != nil {
		c.s.log.WithError(err).Debug("the projections' sizes cannot be read")
	}
	for _, status := range list {
		if !status.Serving || status.Foreign {
			continue
		}
		gauge := func(name, help string, value float64) {
			metrics.Gauges(to)("humanqa_projection_"+name, help, value, "projection", status.Name)
		}
		stopped := 0.0
		if status.Failure != nil {
			stopped = 1
		}
		gauge("lag", "Positions between the projection and the end of the log: events, or bytes of an original server.", float64(status.Lag))
		if late, err := c.s.lateness(ctx, status, time.Now()); err == nil {
			gauge("lag_seconds", "Age of the first event that the projection has not seen, 0 at the end of the log.", late.Seconds())
		} else {
			c.s.log.WithError(err).WithField("consumer", status.Name).Debug("how late it is cannot be read")
		}
		gauge("stalled_seconds", "How long the projection has stood still short of the end of the log.", status.Stalled.Seconds())
		gauge("stopped", "1 while the projection waits for an operator.", stopped)
		gauge("applied_events", "Events that the serving generation has applied.", float64(status.Applied))
		gauge("unknown_events", "Events passed over because their type was not known.", float64(status.Unknown))
		gauge("skipped_events", "Events passed over by an operator's word.", float64(status.Skipped))
		if size, known := sizes[status.Schema]; known {
			gauge("bytes", "What the generation's tables take on disk, indexes included.", float64(size))
		}
		gauge("set_aside_streams", "Streams that the projection goes on without, because an event of theirs cannot be applied.", float64(len(status.SetAside)))
	}
}

// lateness is the age of the first event that a generation has not seen: positions are
// bytes on an original server, and do not say how late the rows are.
func (s *Supervisor) lateness(ctx context.Context, of Status, now time.Time) (time.Duration, error) {
	at := eventstore.Checkpoint{Position: of.Position, Start: !of.Started}
	for head := headOf(s.source); !generation.AtLeast(at, head); {
		page, err := s.source.Next(ctx, at, 1, nil)
		var undecodable *eventstore.DecodeError
		switch {
		case errors.As(err, &undecodable):
			return max(now.Sub(undecodable.Stored.Created), 0), nil
		case err != nil:
			return 0, fmt.Errorf("read the log behind %s: %w", at.Position, err)
		case len(page.Events) > 0:
			return max(now.Sub(page.Events[0].Stored.Created), 0), nil
		}
		at = eventstore.At(page.Next) // past the server's own events
	}
	return 0, nil
}

const sizesSQL = `
SELECT n.nspname AS schema, SUM(pg_total_relation_size(c.oid)) AS bytes
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN projection_checkpoints g ON g.schema_name = n.nspname
WHERE c.relkind = 'r'
GROUP BY n.nspname`

// Sizes gives the size of each generation on disk, indexes included, in bytes by schema.
func Sizes(ctx context.Context, db *sqlx.DB) (map[string]int64, error) {
	rows, err := pgpool.List[struct {
		Schema string `db:"schema"`
		Bytes  int64  `db:"bytes"`
	}](ctx, db, "the generations' sizes", sizesSQL)
	sizes := make(map[string]int64, len(rows))
	for _, r := range rows {
		sizes[r.Schema] = r.Bytes
	}
	return sizes, err
}

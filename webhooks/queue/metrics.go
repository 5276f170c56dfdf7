package queue

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"humanqa/internal/metrics"
)

// scrapeLimit bounds the one query that a scrape makes.
const scrapeLimit = time.Second

// Collector gives the figures of the endpoints.
func (q *Queue) Collector(log logrus.FieldLogger) prometheus.Collector {
	return endpointsCollector{db: q.db, log: log}
}

// endpointsCollector reads Postgres, so its numbers are those of all processes. A scrape
// that cannot reach Postgres gives no numbers.
type endpointsCollector struct {
	metrics.Found
	db  *sqlx.DB
	log logrus.FieldLogger
}

const readEndpoints = `
SELECT (
	SELECT count(*)
	FROM webhooks.endpoints
	WHERE NOT enabled
) AS disabled, (
	SELECT count(*)
	FROM webhooks.endpoints
	WHERE last_error = '` + sealedSecret + `'
) AS sealed, (
	SELECT extract(epoch FROM now() - min(d.due_at))
	FROM webhooks.endpoints e
	CROSS JOIN LATERAL (
		SELECT d.due_at
		FROM webhooks.deliveries d
		WHERE d.project_id = e.project_id AND d.state = 'pending' AND d.due_at > '-infinity' AND d.id <> ALL(e.in_flight)
		ORDER BY d.due_at
		LIMIT 1
	) d
	WHERE e.due_at IS NOT NULL AND d.due_at <= now()
) AS oldest`

// Collect implements prometheus.Collector.
func (c endpointsCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	var now struct {
		Disabled int             `db:"disabled"`
		Sealed   int             `db:"sealed"`
		Oldest   sql.NullFloat64 `db:"oldest"`
	}
	if err := c.db.GetContext(ctx, &now, readEndpoints); err != nil {
		c.log.WithError(err).Debug("the webhooks' metrics cannot be read")
		return
	}
	gauge := metrics.Gauges(to)
	gauge("humanqa_webhook_disabled_endpoints", "Webhooks that are disabled because a delivery failed for good.", float64(now.Disabled))
	gauge("humanqa_webhook_sealed_endpoints", "Webhooks that nothing is sent to because their signing secret cannot be opened.", float64(now.Sealed))
	gauge("humanqa_webhook_oldest_due_seconds", "How long the oldest delivery that is due has waited.", now.Oldest.Float64)
}

package send

import (
	"context"
	"database/sql"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"humanqa/webhooks/queue"
)

// metrics counts the attempts of this process.
type metrics struct {
	outcomes *prometheus.CounterVec
	took     prometheus.Histogram
}

func newMetrics() metrics {
	m := metrics{
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "humanqa_webhook_attempts_total",
			Help: "Attempts to deliver, by what they led to: delivered, retry, exhausted (the webhook is disabled), postponed, undelivered (a test event).",
		}, []string{"outcome"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "humanqa_webhook_attempt_seconds",
			Help:    "How long an attempt took.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
	}
	for _, v := range []queue.Result{queue.Delivered, queue.Retry, queue.Exhausted, queue.Postponed, queue.Undelivered} {
		m.outcomes.WithLabelValues(string(v))
	}
	return m
}

func (m metrics) countOutcomes(done []queue.Outcome) {
	for _, o := range done {
		m.outcomes.WithLabelValues(string(o.Result)).Inc()
		if !o.Unsent {
			m.took.Observe(o.Took.Seconds())
		}
	}
}

// scrapeLimit bounds the one query that a scrape makes.
const scrapeLimit = time.Second

var (
	disabledDesc = prometheus.NewDesc("humanqa_webhook_disabled_endpoints",
		"Webhooks that are disabled because a delivery failed for good.", nil, nil)
	sealedDesc = prometheus.NewDesc("humanqa_webhook_sealed_endpoints",
		"Webhooks that nothing is sent to because their signing secret cannot be opened.", nil, nil)
	oldestDueDesc = prometheus.NewDesc("humanqa_webhook_oldest_due_seconds",
		"How long the oldest delivery that is due has waited.", nil, nil)
)

// endpointsCollector reads Postgres, so its numbers are those of all processes. A scrape
// that cannot reach Postgres gives no numbers.
type endpointsCollector struct{ *Dispatcher }

// Describe implements prometheus.Collector.
func (endpointsCollector) Describe(to chan<- *prometheus.Desc) {
	to <- disabledDesc
	to <- sealedDesc
	to <- oldestDueDesc
}

const readEndpoints = `
SELECT (
	SELECT count(*)
	FROM webhooks.endpoints
	WHERE NOT enabled
) AS disabled, (
	SELECT count(*)
	FROM webhooks.endpoints
	WHERE last_error = '` + queue.SealedSecret + `'
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
	if err := c.queue.DB.GetContext(ctx, &now, readEndpoints); err != nil {
		c.log.WithError(err).Debug("the webhooks' metrics cannot be read")
		return
	}
	to <- prometheus.MustNewConstMetric(disabledDesc, prometheus.GaugeValue, float64(now.Disabled))
	to <- prometheus.MustNewConstMetric(sealedDesc, prometheus.GaugeValue, float64(now.Sealed))
	to <- prometheus.MustNewConstMetric(oldestDueDesc, prometheus.GaugeValue, now.Oldest.Float64)
}
